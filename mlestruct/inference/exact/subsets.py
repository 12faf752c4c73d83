"""Matchings by dynamic programming over subsets of nodes.

Products of e^score are summed as they are, where no weight exceeds 1: twenty times faster than in
logarithms, which serve general graphs whose outcomes are all so improbable by those weights that
products vanish. Ryser's formula takes as long (2ⁿ·n) but subtracts: on 20 × 20 it loses ten
digits. Sums over subsets only add.
"""

from __future__ import annotations

import numpy as np

from mlestruct.native._door import (
    PlaceWeights,
    sum_pairs,
    sum_sets_by_items,
    sum_sets_by_rows,
)
from mlestruct.structures.base import Array


def sets_of_weights(
    weights: Array, alone: Array, idle: Array, full: bool, by_rows: bool
) -> tuple[Array, Array]:
    """Z and Z · tau of every matrix of weights, by its rows or by its items.

    ``idle`` weighs every place that is not taken; if matchings are ``full``, there is none.
    """
    z, tau = np.empty(len(weights)), np.empty(weights.shape)
    count, items, places = weights.shape
    given = PlaceWeights(count, items, places, weights, alone, idle, full)
    (sum_sets_by_rows if by_rows else sum_sets_by_items)(given, z, tau)
    return z, tau


def pairs_of_weights(weights: Array, alone: Array) -> tuple[Array, Array]:
    """Matchings of graphs whose pairs u < v weigh ``weights[u, v]``: Z, and Z · tau. O(2ⁿ · n)."""
    z, tau = np.empty(len(weights)), np.empty(weights.shape)
    sum_pairs(len(weights), weights.shape[1], weights, alone, z, tau)
    return z, tau


def pairs_in_logarithms(score: Array, alone: Array, tau: Array) -> float:
    """As :func:`pairs_of_weights`, by sums of logarithms: log Z, and τ. O(2ⁿ · n), by arrays."""
    n = len(score)
    inside, outside = np.full(1 << n, -np.inf), np.full(1 << n, -np.inf)
    inside[0] = outside[-1] = 0.0
    for i in range(n):
        rest, left = inside[: 1 << i], inside[1 << i : 2 << i]
        left[:] = rest + alone[i]
        for j in range(i):
            _add(left.reshape(-1, 2, 1 << j)[:, 1], rest.reshape(-1, 2, 1 << j)[:, 0] + score[j, i])
    log_z = float(inside[-1])
    for i in range(n if log_z > -np.inf else 0)[::-1]:
        rest, left = outside[: 1 << i], outside[1 << i : 2 << i]
        _add(rest, left + alone[i])
        for j in range(i):
            given = left.reshape(-1, 2, 1 << j)[:, 1] + score[j, i]
            without = inside[: 1 << i].reshape(-1, 2, 1 << j)[:, 0]
            _add(rest.reshape(-1, 2, 1 << j)[:, 0], given)
            tau[j, i] = np.exp(without + given - log_z).sum()
    return log_z


def _add(to: Array, more: Array) -> None:
    to[...] = np.logaddexp(to, more)
