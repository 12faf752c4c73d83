"""Matchings by dynamic programming over subsets of nodes: kernels, in logarithms throughout.

Ryser's formula takes as long (2ⁿ·n) but subtracts: on 20 × 20 it loses ten digits. Sums over
subsets only add.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array


@kernel
def items_to_subsets(score: Array, alone: Array, full: bool, tau: Array) -> float:
    """Items take at most one place each: log Z, and tau[item, place]. O(items · 2^places · places).

    ``alone[i]`` is the score of item i without a place (−inf: it must have one); ``full``: every
    place must be taken.
    """
    items, places = score.shape
    size = 1 << places
    count = np.zeros(size, dtype=np.int8)
    for taken in range(1, size):
        count[taken] = count[taken >> 1] + (taken & 1)
    before = np.full((items + 1, size), -np.inf)
    before[0, 0] = 0.0
    for i in range(items):
        for taken in range(size):
            if count[taken] <= i + 1:
                before[i + 1, taken] = _enter(before[i], taken, score[i], alone[i])
    after, fresh = np.full(size, -np.inf), np.empty(size)
    if full:
        after[size - 1] = 0.0
    else:
        after[:] = 0.0
    log_z = _log_sum(before[items] + after)
    if log_z == -np.inf:
        return log_z
    for i in range(items - 1, -1, -1):
        for taken in range(size):
            if before[i, taken] == -np.inf:
                fresh[taken] = -np.inf
                continue
            fresh[taken] = _leave(after, taken, score[i], alone[i])
            for j in range(places):
                if not taken >> j & 1:
                    there = before[i, taken] + score[i, j] + after[taken | 1 << j] - log_z
                    tau[i, j] += np.exp(there)
        after, fresh = fresh, after
    return log_z


@kernel
def _enter(before: Array, taken: int, score: Array, alone: float) -> float:
    top = before[taken] + alone
    for j in range(len(score)):
        if taken >> j & 1:
            top = max(top, before[taken ^ 1 << j] + score[j])
    if top == -np.inf:
        return top
    mass = np.exp(before[taken] + alone - top)
    for j in range(len(score)):
        if taken >> j & 1:
            mass += np.exp(before[taken ^ 1 << j] + score[j] - top)
    return top + np.log(mass)


@kernel
def _leave(after: Array, taken: int, score: Array, alone: float) -> float:
    top = after[taken] + alone
    for j in range(len(score)):
        if not taken >> j & 1:
            top = max(top, after[taken | 1 << j] + score[j])
    if top == -np.inf:
        return top
    mass = np.exp(after[taken] + alone - top)
    for j in range(len(score)):
        if not taken >> j & 1:
            mass += np.exp(after[taken | 1 << j] + score[j] - top)
    return top + np.log(mass)


@kernel
def _log_sum(values: Array) -> float:
    top = values.max()
    return top + np.log(np.exp(values - top).sum()) if top > -np.inf else top


@kernel
def rows_to_subsets(score: Array, full: bool, tau: Array) -> float:
    """Every row takes one column: a set of k columns is filled by the first k rows.

    O(2^columns · columns): one set holds one row's worth of work.
    """
    rows, columns = score.shape
    size = 1 << columns
    count = np.zeros(size, dtype=np.int8)
    before = np.full(size, -np.inf)
    before[0] = 0.0
    for taken in range(1, size):
        count[taken] = count[taken >> 1] + (taken & 1)
        if count[taken] <= rows:
            before[taken] = _enter(before, taken, score[count[taken] - 1], -np.inf)
    after = np.full(size, -np.inf)
    log_z = -np.inf
    for taken in range(size - 1, -1, -1):
        if count[taken] == rows and (not full or taken == size - 1):
            after[taken] = 0.0
            log_z = np.logaddexp(log_z, before[taken])
    if log_z == -np.inf:
        return log_z
    for taken in range(size - 1, -1, -1):
        i = count[taken]
        if i >= rows or before[taken] == -np.inf:
            continue
        after[taken] = _leave(after, taken, score[i], -np.inf)
        for j in range(columns):
            if not taken >> j & 1:
                there = before[taken] + score[i, j] + after[taken | 1 << j] - log_z
                tau[i, j] += np.exp(there)
    return log_z


@kernel
def pairs_in_subsets(score: Array, alone: Array, tau: Array) -> float:
    """Matchings of a graph: the lowest node left takes a partner, or stays alone. O(2ⁿ · n).

    ``score[u, v]`` for u < v, −inf for no edge; ``inside[R]`` is log Z of the nodes R alone,
    ``outside[R]`` that of all ways to reach R from all nodes.
    """
    n = len(score)
    size = 1 << n
    inside = np.full(size, -np.inf)
    inside[0] = 0.0
    for left in range(1, size):
        inside[left] = _lowest(inside, left, score, alone)
    log_z = inside[size - 1]
    if log_z == -np.inf:
        return log_z
    outside = np.full(size, -np.inf)
    outside[size - 1] = 0.0
    for left in range(size - 1, 0, -1):
        if outside[left] == -np.inf or inside[left] == -np.inf:
            continue
        low = _first(left)
        rest = left ^ 1 << low
        outside[rest] = _add(outside[rest], outside[left] + alone[low])
        for j in range(low + 1, n):
            if rest >> j & 1 and score[low, j] > -np.inf:
                to, here = rest ^ 1 << j, outside[left] + score[low, j]
                outside[to] = _add(outside[to], here)
                tau[low, j] += np.exp(here + inside[to] - log_z)
    return log_z


@kernel
def _first(bits: int) -> int:
    low = 0
    while not bits >> low & 1:
        low += 1
    return low


@kernel
def _lowest(inside: Array, left: int, score: Array, alone: Array) -> float:
    n, low = len(score), _first(left)
    rest = left ^ 1 << low
    top = inside[rest] + alone[low]
    for j in range(low + 1, n):
        if rest >> j & 1:
            top = max(top, inside[rest ^ 1 << j] + score[low, j])
    if top == -np.inf:
        return top
    mass = np.exp(inside[rest] + alone[low] - top)
    for j in range(low + 1, n):
        if rest >> j & 1:
            mass += np.exp(inside[rest ^ 1 << j] + score[low, j] - top)
    return top + np.log(mass)


@kernel
def _add(a: float, b: float) -> float:
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    return max(a, b) + np.log1p(np.exp(-abs(a - b)))
