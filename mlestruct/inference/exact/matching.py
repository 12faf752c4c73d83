"""Exact log Z and marginals of matchings of up to some twenty nodes a side."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.inference.exact.common import Exact, refuse_memory
from mlestruct.inference.exact.subsets import (
    items_of_weights,
    items_to_subsets,
    pairs_in_subsets,
    pairs_of_weights,
    rows_of_weights,
    rows_to_subsets,
)
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array

VANISHING = 1e-100  # of a sum of products that none exceeds 1: below it logarithms are summed


def bipartite(structure: BipartiteMatching, score: Array, memory: float) -> Exact:
    """Subsets of the cheaper side; 20 × 20: .03 s perfect, .9 s partial, two-sided memory."""
    closed = _closed(structure.fixed, score).reshape(structure.shape)
    rows, columns = structure.shape
    if structure.kind != "partial" and rows * 2.0**columns <= columns**2 * 2.0**rows:
        refuse_memory(2.2 * 2.0**columns, memory, f"sums over the sets of {columns} columns")
        return _found(structure, *_rows(closed, structure.kind == "perfect"))
    flip = columns > rows
    table = np.ascontiguousarray(closed.T if flip else closed)
    items, places = table.shape
    refuse_memory((items + 3) * 2.0**places, memory, f"sums over the sets of {places} places")
    must = (structure.fixed.reshape(structure.shape) == 1).any(axis=int(not flip))
    log_z, tau = _items(table, np.where(must, -np.inf, 0.0), structure.kind == "one_sided")
    return _found(structure, log_z, tau.T if flip else tau)


def general(structure: Matching, score: Array, memory: float) -> Exact:
    """The lowest unmatched node chooses, over all 2ⁿ sets of nodes left: n = 20 takes .03 s."""
    n = structure.n_nodes
    refuse_memory(2.0 * 2.0**n, memory, f"sums over the sets of {n} nodes")
    table = np.full((n, n), -np.inf)
    low, high = np.sort(structure.ends, axis=1).T
    table[low, high] = _closed(structure.fixed, score)
    alone = np.full(n, 0.0 if structure.kind == "partial" else -np.inf)
    alone[structure.ends[structure.fixed == 1]] = -np.inf
    log_z, tau = _pairs(table, alone)
    return _found(structure, log_z, tau[low, high])


def _rows(score: Array, full: bool) -> tuple[float, Array]:
    top, tau = _top(score.max(axis=1)), np.zeros(score.shape)
    z = rows_of_weights(np.exp(score - top[:, None]), full, tau)
    if z > VANISHING:
        return np.log(z) + top.sum(), tau / z
    tau[:] = 0.0
    return rows_to_subsets(score, full, tau), tau


def _items(score: Array, alone: Array, full: bool) -> tuple[float, Array]:
    top, tau = _top(np.maximum(alone, score.max(axis=1))), np.zeros(score.shape)
    z = items_of_weights(np.exp(score - top[:, None]), np.exp(alone - top), full, tau)
    if z > VANISHING:
        return np.log(z) + top.sum(), tau / z
    tau[:] = 0.0
    return items_to_subsets(score, alone, full, tau), tau


def _pairs(score: Array, alone: Array) -> tuple[float, Array]:
    """Of a pair's score half is each node's, so that no weight exceeds 1."""
    pairs = np.maximum(score.max(axis=0), score.max(axis=1))
    top, tau = _top(np.maximum(alone, pairs / 2.0)), np.zeros(score.shape)
    z = pairs_of_weights(np.exp(score - top[:, None] - top), np.exp(alone - top), tau)
    if z > VANISHING:
        return np.log(z) + top.sum(), tau / z
    tau[:] = 0.0
    return pairs_in_subsets(score, alone, tau), tau


def _top(score: Array) -> Array:
    """Best scores; whoever has no choice at all keeps none."""
    return np.where(np.isfinite(score), score, 0.0)


def _closed(fixed: ArrayLike, score: Array) -> Array:
    return np.where(np.asarray(fixed) == 0, -np.inf, score)


def _found(structure: BipartiteMatching | Matching, log_z: float, tau: Array) -> Exact:
    if not np.isfinite(log_z):
        raise Infeasible(structure.impossible() or "no matching has a finite score")
    return Exact(float(log_z), np.minimum(tau, 1.0).ravel())
