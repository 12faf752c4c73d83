"""Matchings by dynamic programming over subsets of nodes.

Products of e^score are summed as they are, where no weight exceeds 1: twenty times faster than in
logarithms, which serve general graphs whose outcomes are all so improbable by those weights that
products vanish. Ryser's formula takes as long (2ⁿ·n) but subtracts: on 20 × 20 it loses ten
digits. Sums over subsets only add.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array


@kernel
def sets_of_weights(
    weights: Array, alone: Array, idle: Array, full: bool, by_rows: bool
) -> tuple[Array, Array]:
    """Z and Z · tau of every matrix of weights, by its rows or by its items.

    ``idle`` weighs every place that is not taken; if matchings are ``full``, there is none.
    """
    count, _, places = weights.shape
    z, tau, left = np.empty(count), np.zeros(weights.shape), np.empty(1 << places)
    for m in range(count):
        left[:] = 1.0
        for j in range(places):
            for k in range(len(left)):
                if not k >> j & 1:
                    left[k] *= 0.0 if full else idle[m, j]
        if by_rows:
            z[m] = _by_rows(weights[m], left, tau[m])
        else:
            z[m] = _by_items(weights[m], alone[m], left, tau[m])
    return z, tau


@kernel
def _by_items(weight: Array, alone: Array, idle: Array, tau: Array) -> float:
    """Items take at most one place each: Z, and Z · tau[item, place]. O(items · 2^places · places).

    ``alone[i]`` is the weight of item i without a place, ``idle[taken]`` that of all places that
    are not taken; it is overwritten.
    """
    items, places = weight.shape
    size = 1 << places
    before = np.zeros((items + 1, size))
    before[0, 0] = 1.0
    for i in range(items):
        _more(before[i + 1], before[i], alone[i])
        for j in range(places):
            _take(before[i], before[i + 1], j, weight[i, j])
    after, fresh = idle, np.empty(size)
    z = _product(before[items], after)
    for i in range(items - 1, -1, -1):
        fresh[:] = 0.0
        _more(fresh, after, alone[i])
        for j in range(places):
            _give(after, fresh, j, weight[i, j])
            tau[i, j] = weight[i, j] * _meet(before[i], after, j)
        after, fresh = fresh, after
    return z


@kernel
def _more(to: Array, source: Array, weight: float) -> None:
    for k in range(len(to)):
        to[k] += weight * source[k]


@kernel(fastmath={"reassoc", "contract"})
def _product(one: Array, other: Array) -> float:
    total = 0.0
    for k in range(len(one)):
        total += one[k] * other[k]
    return total


@kernel
def _take(source: Array, to: Array, j: int, weight: float) -> None:
    """Every set with j gets ``weight`` times what the set without it has."""
    half = 1 << j
    for low in range(0, len(source), 2 * half):
        for k in range(low, low + half):
            to[k + half] += weight * source[k]


@kernel
def _give(source: Array, to: Array, j: int, weight: float) -> None:
    """Every set without j gets ``weight`` times what the set with it has."""
    half = 1 << j
    for low in range(0, len(source), 2 * half):
        for k in range(low, low + half):
            to[k] += weight * source[k + half]


@kernel(fastmath={"reassoc", "contract"})
def _meet(without: Array, have: Array, j: int) -> float:
    """Sum over sets without j of what they have in one array, times what they have with j."""
    half, total = 1 << j, 0.0
    for low in range(0, len(have), 2 * half):
        for k in range(low, low + half):
            total += without[k] * have[k + half]
    return total


@kernel
def _by_rows(weight: Array, idle: Array, tau: Array) -> float:
    """Every row takes one column: a set of k columns is filled by the first k rows. Z, Z · tau.

    O(2^columns · columns): one set holds one row's worth of work. ``idle[taken]`` is the weight of
    all columns that are not taken; it is overwritten.
    """
    rows, columns = weight.shape
    size = 1 << columns
    count = np.zeros(size, dtype=np.int8)
    before, after = np.zeros(size), idle
    before[0] = 1.0
    for taken in range(1, size):
        count[taken] = count[taken >> 1] + (taken & 1)
        if count[taken] <= rows:
            i, mass = count[taken] - 1, 0.0
            for j in range(columns):  # without j in it, the set finds itself: 0 so far
                mass += before[taken & ~(1 << j)] * weight[i, j]
            before[taken] = mass
    z = 0.0
    for taken in range(size - 1, -1, -1):
        i = count[taken]
        if i == rows:
            z += before[taken] * after[taken]
        elif i < rows:
            after[taken], mass = 0.0, 0.0  # with j in it, the set finds itself
            for j in range(columns):
                there = weight[i, j] * after[taken | 1 << j]
                mass += there
                tau[i, j] += before[taken] * there
            after[taken] = mass
    return z


@kernel
def pairs_of_weights(weights: Array, alone: Array) -> tuple[Array, Array]:
    """Matchings of graphs whose pairs u < v weigh ``weights[u, v]``: Z, and Z · tau. O(2ⁿ · n)."""
    z, tau = np.empty(len(weights)), np.zeros(weights.shape)
    for m in range(len(weights)):
        z[m] = _by_pairs(weights[m], alone[m], tau[m])
    return z, tau


@kernel
def _by_pairs(weight: Array, alone: Array, tau: Array) -> float:
    """The highest node first."""
    n = len(weight)
    inside, outside = np.zeros(1 << n), np.zeros(1 << n)
    inside[0] = outside[-1] = 1.0
    for i in range(n):
        rest, left = inside[: 1 << i], inside[1 << i : 2 << i]
        _more(left, rest, alone[i])
        for j in range(i):
            _take(rest, left, j, weight[j, i])
    for i in range(n - 1, -1, -1):
        rest, left = outside[: 1 << i], outside[1 << i : 2 << i]
        _more(rest, left, alone[i])
        for j in range(i):
            _give(left, rest, j, weight[j, i])
            tau[j, i] = weight[j, i] * _meet(inside[: 1 << i], left, j)
    return inside[-1]


def pairs_in_logarithms(score: Array, alone: Array, tau: Array) -> float:
    """As :func:`_by_pairs`, by sums of logarithms: log Z, and τ. O(2ⁿ · n), array by array."""
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
