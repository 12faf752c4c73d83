"""The blossom kernel on lists of edges, and on complete graphs too large to hold, by pricing.

Pricing solves a graph of each node's best edges, then looks through all scores, a block of rows at
a time, for edges the duals do not cover. With none left the answer is optimal among all edges.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct_oracles.blossom import (
    Floats,
    Integers,
    Matching,
    answer,
    certified_gap,
    check_answer,
    node_duals,
    odd_groups,
    refuse_odd,
    search,
    sets_around,
)

Rows = Callable[[int, int], ArrayLike]


def perfect_matching_sparse(
    n: int, edges: ArrayLike, weights: ArrayLike, warm: Matching | None = None
) -> Matching:
    """The heaviest perfect matching of the graph with these edges: O(n (m + n²/64)) at worst.

    Parameters
    ----------
    n: number of nodes, even.
    edges: (m, 2) node numbers; of parallel edges the heaviest counts.
    weights: one per edge; -inf forbids it.
    warm: the answer to similar weights.

    Raises Infeasible and ValueError as ``perfect_matching`` does.

    Examples
    --------
    >>> perfect_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([1, 0, 3, 2])
    """
    refuse_odd(n)
    return match_edges(n, *checked_edges(n, edges, weights), warm, perfect=True)


def maximum_weight_matching_sparse(
    n: int, edges: ArrayLike, weights: ArrayLike, warm: Matching | None = None
) -> Matching:
    """The heaviest matching of the graph with these edges; nodes may stay single.

    With all weights 1 it has as many edges as possible.

    Examples
    --------
    >>> maximum_weight_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([-1,  2,  1, -1])
    """
    return match_edges(n, *checked_edges(n, edges, weights), warm, perfect=False)


def prove_sparse(n: int, edges: ArrayLike, weights: ArrayLike, matching: Matching) -> float:
    """No matching of these edges is heavier by more than the returned gap; O(m depth).

    Examples
    --------
    >>> edges, weights = [(0, 1), (1, 2), (2, 3)], [1, 9, 1]
    >>> prove_sparse(4, edges, weights, perfect_matching_sparse(4, edges, weights))
    0.0
    """
    ends, scores = checked_edges(n, edges, weights)
    check_answer(n, matching)
    y, around = node_duals(matching), sets_around(n, matching)
    uncovered = scores - y[ends[:, 0]] - y[ends[:, 1]]
    for k in np.flatnonzero(uncovered > 0):
        u, v = ends[k]
        uncovered[k] -= matching.z[[i for i in around[u] if i in around[v]]].sum()
    shortfall = max(0.0, float(uncovered.max(initial=0.0)))
    return certified_gap(matching, used_weights(ends, scores, matching.partner), shortfall)


def perfect_matching_priced(
    n: int, rows: Rows, candidates: int = 16, block: int = 512, warm: Matching | None = None
) -> Matching:
    """The heaviest perfect matching of a complete graph whose scores are computed block by block.

    Memory O(n (candidates + block)). Time: one pass over the scores per round, usually 2 to 6
    rounds. ``upper`` includes what rounding leaves uncovered, so ``gap`` is certified.

    Parameters
    ----------
    rows: ``rows(first, last)`` gives the scores of nodes first to last - 1 with all n nodes, a
        (last - first, n) array of a symmetric matrix; the diagonal is ignored, -inf forbids.
    candidates: how many best edges per node to start with, and to add per node and round.

    Examples
    --------
    >>> x = np.array([0.0, 5.0, 1.0, 6.0])
    >>> perfect_matching_priced(4, lambda i, j: -np.abs(x[i:j, None] - x), candidates=1).partner
    array([2, 3, 0, 1])
    """
    refuse_odd(n)
    if candidates < 1 or block < 1:
        raise ValueError(f"candidates ({candidates}) and block ({block}) must be at least 1")
    pool = Pool(n)
    for first, scores in blocks(n, rows, block):
        pool.add(*best_of_rows(first, scores, candidates))
    while True:
        forest, left = search(pool.graph(), n, warm, perfect=True)
        if left:
            join_odd_groups(n, rows, block, forest, pool)
            continue
        warm = pool.answer(forest)
        shortfall = price(n, rows, block, candidates, warm, pool)
        if shortfall is not None:
            upper = warm.weight + certified_gap(warm, pool.used(warm.partner), shortfall)
            return Matching(warm.partner, warm.weight, upper, warm.y, warm.odd_sets, warm.z, True)


class Pool:
    """The edges a pricing loop has collected, both ends smaller first."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.ends: Integers = np.zeros((0, 2), np.int64)
        self.scores: Floats = np.zeros(0)

    def add(self, u: Integers, v: Integers, scores: Floats) -> int:
        """Take in new finite edges; how many were new."""
        keys = np.minimum(u, v) * self.n + np.maximum(u, v)
        old = self.ends[:, 0] * self.n + self.ends[:, 1]
        keys, where = np.unique(keys[scores > -math.inf], return_index=True)
        fresh = ~np.isin(keys, old, assume_unique=True)
        ends = np.stack([keys[fresh] // self.n, keys[fresh] % self.n], axis=1)
        self.ends = np.concatenate([self.ends, ends])
        self.scores = np.concatenate([self.scores, scores[scores > -math.inf][where][fresh]])
        return int(fresh.sum())

    def graph(self) -> Any:
        return adjacency(self.n, self.ends, self.scores)

    def used(self, partner: Integers) -> Floats:
        return used_weights(self.ends, self.scores, partner)

    def answer(self, forest: Any) -> Matching:
        partner = forest.node["mate"][: self.n].astype(np.int64)
        return answer(forest, partner, self.used(partner), perfect=True)


def match_edges(
    n: int, ends: Integers, scores: Floats, warm: Matching | None, perfect: bool
) -> Matching:
    forest, left = search(adjacency(n, ends, scores), n, warm, perfect)
    if left:
        raise Infeasible(odd_groups(forest))
    partner = forest.node["mate"][:n].astype(np.int64)
    return answer(forest, partner, used_weights(ends, scores, partner), perfect)


def checked_edges(n: int, edges: ArrayLike, weights: ArrayLike) -> tuple[Integers, Floats]:
    """The allowed edges and their weights, or ValueError naming the first bad one."""
    ends = np.asarray(edges)
    scores = np.asarray(weights, dtype=np.float64)
    if ends.size == 0:
        ends = np.zeros((0, 2), np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or scores.shape != ends.shape[:1]:
        raise ValueError(f"edges {ends.shape} must be (m, 2), weights {scores.shape} then (m,)")
    if not np.issubdtype(ends.dtype, np.integer):
        raise ValueError(f"edges must be whole node numbers, not {ends.dtype}")
    wrong = np.any((ends < 0) | (ends >= n), axis=1) | (ends[:, 0] == ends[:, 1])
    for k in np.flatnonzero(wrong)[:1]:
        raise ValueError(f"edges[{k}] is {ends[k].tolist()}; use two different nodes below {n}")
    for k in np.flatnonzero(~(scores < math.inf))[:1]:
        raise ValueError(f"weights[{k}] is {scores[k]}; use numbers, and -inf for forbidden edges")
    allowed = scores > -math.inf
    return ends[allowed].astype(np.int64), scores[allowed]


def adjacency(n: int, ends: Integers, scores: Floats) -> Any:
    """The kernel's rows of neighbours: O(m log m)."""
    from mlestruct_oracles.blossom_rows import Edges

    source = np.concatenate([ends[:, 0], ends[:, 1]])
    target = np.concatenate([ends[:, 1], ends[:, 0]])
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(n + 1)).astype(np.int64)
    return Edges(np.zeros((0, 0)), start, target[order], np.concatenate([scores, scores])[order])


def used_weights(ends: Integers, scores: Floats, partner: Integers) -> Floats:
    """The weight of each matched pair: the heaviest of its parallel edges."""
    inside = partner[ends[:, 0]] == ends[:, 1]
    weights = np.full(len(partner), -math.inf)
    np.maximum.at(weights, ends[inside].min(axis=1), scores[inside])
    used = weights[np.flatnonzero(np.arange(len(partner)) < partner)]
    if np.any(used == -math.inf):
        raise ValueError("the matching uses a pair that is not an edge")
    return used


def blocks(n: int, rows: Rows, block: int) -> Any:
    """Each block's first node and its checked scores, the diagonal -inf."""
    for first in range(0, n, block):
        last = min(first + block, n)
        scores = np.array(rows(first, last), dtype=np.float64)
        wanted = (last - first, n)
        if scores.shape != wanted:
            raise ValueError(f"rows({first}, {last}) has shape {scores.shape}, not {wanted}")
        scores[np.arange(last - first), np.arange(first, last)] = -math.inf
        if not np.all(scores < math.inf):
            i, j = np.argwhere(~(scores < math.inf))[0]
            raise ValueError(f"the score of nodes {first + i} and {j} is {scores[i, j]}")
        yield first, scores


def best_of_rows(first: int, scores: Floats, count: int) -> tuple[Integers, Integers, Floats]:
    """Each row's best entries as edges, columns shuffled so that ties do not all pick the same."""
    shuffle = np.random.default_rng(first).permutation(scores.shape[1])
    count = min(count, scores.shape[1] - 1)
    best = shuffle[np.argpartition(-scores[:, shuffle], count - 1, axis=1)[:, :count]]
    u = np.repeat(np.arange(first, first + len(scores)), count)
    return u, best.ravel(), np.take_along_axis(scores, best, axis=1).ravel()


def price(
    n: int, rows: Rows, block: int, count: int, matching: Matching, pool: Pool
) -> float | None:
    """Add each node's most uncovered edges to the pool; the greatest shortfall if none is left."""
    shortfall, added = 0.0, 0
    for first, scores in blocks(n, rows, block):
        last = first + len(scores)
        rounding = 1e-13 * max(1.0, float(np.abs(scores[scores > -math.inf]).max(initial=0.0)))
        uncovered = scores - matching.y[first:last, None] - matching.y
        for index, nodes in enumerate(matching.odd_sets):
            here = nodes[(nodes >= first) & (nodes < last)] - first
            uncovered[np.ix_(here, nodes)] -= matching.z[index]
        shortfall = max(shortfall, float(uncovered.max(initial=0.0)))
        if uncovered.max(initial=0.0) > rounding:
            u, v, _ = best_of_rows(first, uncovered, count)
            open_edges = uncovered[u - first, v] > rounding
            u, v = u[open_edges], v[open_edges]
            added += pool.add(u, v, scores[u - first, v])
    return None if added else shortfall


def join_odd_groups(n: int, rows: Rows, block: int, forest: Any, pool: Pool) -> None:
    """Add each stranded node's best edge out of its odd group; Infeasible if no group has any."""
    from mlestruct_oracles.blossom_forest import INNER, OUTER

    label, added = forest.node["label"][forest.top], 0
    for first, scores in blocks(n, rows, block):
        group = forest.top[first : first + len(scores)]
        scores[:, label == INNER] = -math.inf
        scores[group[:, None] == forest.top] = -math.inf
        scores[forest.node["label"][group] != OUTER] = -math.inf
        best = np.argmax(scores, axis=1)
        u = np.arange(first, first + len(scores))
        added += pool.add(u, best, scores[u - first, best])
    if not added:
        raise Infeasible(odd_groups(forest))
