"""Weights shared over a labelled graph: features of variables and factors × their states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.batch import Batch
from mlestruct.features.base import (
    Columns,
    check_parts,
    power,
    refuse_none,
    refuse_nonfinite,
    restart,
)
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, as_numbers, as_vector, sound
from mlestruct.structures.graph import FactorGraph, only_graphs


@dataclass(frozen=True)
class Tied:
    """Weights shared over a labelled graph: node features × states, factor features × tables.

    θ = [node weights (p × K) | factor weights (q × table)], C order; every variable has K states
    and every factor the same table. Never expanded: O(nnz · K) per call.
    """

    nodes: Any
    factors: Any
    node_start: Ints
    factor_start: Ints
    offsets: Ints
    states: int
    table: int

    @classmethod
    def of(cls, batch: Batch[FactorGraph], nodes: Any, factors: Any = None) -> Tied:
        """``nodes`` (variables × p) and ``factors`` (factors × q; default a constant 1), stacked.

        Either may be dense or scipy.sparse, or a list with one matrix per example.
        """
        only_graphs(batch.structures, "a table of tied weights")
        cards = {int(k) for s in batch.structures for k in s.cards}
        tables = {int(t) for s in batch.structures for t in np.diff(s.table_start)}
        if len(cards) > 1 or len(tables) > 1:
            raise ValueError(f"tied weights need one size of tables, got {cards} and {tables}")
        n_nodes = np.array([s.n_nodes for s in batch.structures])[batch.which]
        n_factors = np.array([s.n_factors for s in batch.structures])[batch.which]
        if factors is None:
            factors = np.ones((n_factors.sum(), 1))
        node_start = np.concatenate([[0], np.cumsum(n_nodes)])
        factor_start = np.concatenate([[0], np.cumsum(n_factors)])
        features = cls(
            _rows_of(nodes, node_start, "node"),
            _rows_of(factors, factor_start, "factor"),
            node_start,
            factor_start,
            batch.offsets,
            cards.pop(),
            tables.pop() if tables else 0,
        )
        refuse_none(features)
        return features

    @property
    def split(self) -> int:
        """Where factor weights start in θ."""
        return int(self.nodes.shape[1]) * self.states

    @property
    def d(self) -> int:
        return self.split + int(self.factors.shape[1]) * self.table

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.offsets) - 1)

    def potentials(self, theta: Array) -> Array:
        theta = as_vector(theta, "theta", self.d)
        out = np.empty(int(self.offsets[-1]))
        node = self.nodes @ theta[: self.split].reshape(-1, self.states)
        _scatter(self.offsets, self.node_start, self.node_start, np.ascontiguousarray(node), 0, out)
        if self.table:
            pair, shift = theta[self.split :].reshape(-1, self.table), self.states
            if self._single:
                scale = np.ascontiguousarray(self.factors).ravel()
                _scatter_tied(
                    self.offsets, self.node_start, self.factor_start, scale, pair[0], shift, out
                )
            else:
                rows = np.ascontiguousarray(self.factors @ pair)
                _scatter(self.offsets, self.node_start, self.factor_start, rows, shift, out)
        return out

    def squares(self, v: Array) -> Array:
        return replace(self, nodes=power(self.nodes), factors=power(self.factors)).moments(v)

    @property
    def _single(self) -> bool:
        """One number per factor: tables are multiples of one, and no matrix is needed."""
        return bool(self.factors.shape[1] == 1 and not sp.issparse(self.factors))

    def moments(self, tau: Array) -> Array:
        tau = as_vector(tau, "tau", int(self.offsets[-1]))
        out = np.empty(self.d)
        node = self.nodes.T @ self.node_part(tau)
        out[: self.split] = np.asarray(node).ravel()
        if self.table and self._single:
            pair, scale = np.zeros(self.table), np.ascontiguousarray(self.factors).ravel()
            _gather_tied(
                self.offsets, self.node_start, self.factor_start, scale, tau, self.states, pair
            )
            out[self.split :] = pair
        elif self.table:
            out[self.split :] = np.asarray(self.factors.T @ self.factor_part(tau)).ravel()
        return out

    def node_part(self, tau: Array) -> Array:
        """(variables × states) of flat coordinates."""
        tau = as_vector(tau, "tau", int(self.offsets[-1]))
        out = np.empty((int(self.node_start[-1]), self.states))
        _gather(self.offsets, self.node_start, self.node_start, tau, 0, out)
        return out

    def factor_part(self, tau: Array) -> Array:
        """(factors × configurations) of flat coordinates."""
        tau = as_vector(tau, "tau", int(self.offsets[-1]))
        out = np.empty((int(self.factor_start[-1]), self.table))
        _gather(self.offsets, self.node_start, self.factor_start, tau, self.states, out)
        return out

    def each(self, tau: Array) -> Array:
        tau = as_vector(tau, "tau", int(self.offsets[-1]))
        out = np.empty((len(self.offsets) - 1, self.d))
        node = self.node_part(tau)
        pair = self.factor_part(tau)
        for m in range(len(out)):
            rows = slice(self.node_start[m], self.node_start[m + 1])
            out[m, : self.split] = np.asarray(self.nodes[rows].T @ node[rows]).ravel()
            rows = slice(self.factor_start[m], self.factor_start[m + 1])
            if self.table:
                out[m, self.split :] = np.asarray(self.factors[rows].T @ pair[rows]).ravel()
        return out.ravel()

    def select(self, members: Ints) -> Tied:
        return Tied(
            _take(self.nodes, self.node_start, members),
            _take(self.factors, self.factor_start, members),
            restart(self.node_start, members),
            restart(self.factor_start, members),
            restart(self.offsets, members),
            self.states,
            self.table,
        )


def _rows_of(given: Any, start: Ints, unit: str) -> Any:
    """All rows in one matrix, from one matrix or one per example."""
    listed = isinstance(given, (list, tuple))
    places = [f"example {m}: " for m in range(len(given))] if listed else [""]
    each = zip(given if listed else [given], places, strict=True)
    parts = [_matrix(part, place + unit) for part, place in each]
    if listed:
        check_parts(parts, np.diff(start), unit)
    sparse = sp.issparse(parts[0])
    array: Any = sp.csr_array(sp.vstack(parts, format="csr")) if sparse else np.concatenate(parts)
    if array.ndim != 2 or array.shape[0] != start[-1]:
        raise ValueError(f"{unit} features have shape {array.shape}; expected {start[-1]} rows")
    if sparse and not array.has_canonical_format:
        array.sum_duplicates()
    refuse_nonfinite(array, start, unit)
    return array


def _matrix(part: Any, unit: str) -> Any:
    if hasattr(part, "tocsr"):  # of scipy.sparse
        if part.dtype.kind not in "biuf":
            raise ValueError(f"{unit} features have dtype {part.dtype}; expected numbers")
        return sound(part, f"{unit} features").astype(float)
    return as_numbers(part, f"{unit} features")


def _take(matrix: Any, start: Ints, members: Ints) -> Any:
    rows = np.concatenate([np.arange(start[m], start[m + 1]) for m in members])
    return matrix[rows]


# Tied weights: an example's coordinates are its variables' states, then its factors' tables.


@kernel
def _scatter(offsets: Ints, nodes: Ints, start: Ints, rows: Array, states: int, out: Array) -> None:
    for m in range(len(offsets) - 1):
        k = offsets[m] + states * (nodes[m + 1] - nodes[m])
        for i in range(start[m], start[m + 1]):
            for j in range(rows.shape[1]):
                out[k] = rows[i, j]
                k += 1


@kernel
def _gather(offsets: Ints, nodes: Ints, start: Ints, flat: Array, states: int, rows: Array) -> None:
    for m in range(len(offsets) - 1):
        k = offsets[m] + states * (nodes[m + 1] - nodes[m])
        for i in range(start[m], start[m + 1]):
            for j in range(rows.shape[1]):
                rows[i, j] = flat[k]
                k += 1


@kernel
def _scatter_tied(
    offsets: Ints, nodes: Ints, start: Ints, scale: Array, table: Array, states: int, out: Array
) -> None:
    for m in range(len(offsets) - 1):
        k = offsets[m] + states * (nodes[m + 1] - nodes[m])
        for i in range(start[m], start[m + 1]):
            for j in range(len(table)):
                out[k + j] = scale[i] * table[j]
            k += len(table)


@kernel
def _gather_tied(
    offsets: Ints, nodes: Ints, start: Ints, scale: Array, flat: Array, states: int, table: Array
) -> None:
    for m in range(len(offsets) - 1):
        k = offsets[m] + states * (nodes[m + 1] - nodes[m])
        for i in range(start[m], start[m + 1]):
            for j in range(len(table)):
                table[j] += scale[i] * flat[k + j]
            k += len(table)
