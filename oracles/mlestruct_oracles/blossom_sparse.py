"""The blossom kernel on lists of edges, and on complete graphs too large to hold, by pricing.

Pricing solves a graph of each node's best edges, then looks through all scores, a block of rows at
a time, for edges the duals do not cover. With none left the answer is optimal among all edges.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import Array, Ints
from mlestruct_oracles.blossom import (
    ALLOWED,
    OddSets,
    ProvenMatching,
    answer,
    certified_gap,
    check_answer,
    node_duals,
    refuse_odd,
    search,
    sets_around,
    stranded,
)

Rows = Callable[[int, int], ArrayLike]


def perfect_matching_sparse(
    n: int, edges: ArrayLike, weights: ArrayLike, warm: ProvenMatching | None = None
) -> ProvenMatching:
    """The heaviest perfect matching of the graph with these edges: O(n m) at worst.

    Trees stay small as a rule, and an event costs what its tree does: 100,000 nodes of degree 4 to
    10 take twelve to forty times what 10,000 take.

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
    n: int, edges: ArrayLike, weights: ArrayLike, warm: ProvenMatching | None = None
) -> ProvenMatching:
    """The heaviest matching of the graph with these edges; nodes may stay single.

    With all weights 1 it has as many edges as possible.

    Examples
    --------
    >>> maximum_weight_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([-1,  2,  1, -1])
    """
    return match_edges(n, *checked_edges(n, edges, weights), warm, perfect=False)


def prove_sparse(n: int, edges: ArrayLike, weights: ArrayLike, matching: ProvenMatching) -> float:
    """No matching of these edges is heavier by more than the returned gap; O(m depth).

    Examples
    --------
    >>> edges, weights = [(0, 1), (1, 2), (2, 3)], [1, 9, 1]
    >>> prove_sparse(4, edges, weights, perfect_matching_sparse(4, edges, weights))
    0.0
    """
    ends, scores = checked_edges(n, edges, weights)
    check_answer(n, matching)
    y = node_duals(matching)
    uncovered = scores - y[ends[:, 0]] - y[ends[:, 1]]
    left = np.flatnonzero(uncovered > 0)
    uncovered[left] -= duals_around(n, matching, ends[left])
    shortfall = max(0.0, float(uncovered.max(initial=0.0)))
    return certified_gap(matching, used_weights(ends, scores, matching.partner), shortfall)


def duals_around(n: int, matching: ProvenMatching, ends: Ints) -> Array:
    """The z of all odd sets that hold both ends, per edge: O(their depth)."""
    sets = matching.odd_sets
    if not isinstance(sets, OddSets):
        around = sets_around(n, matching)
        shared = [[i for i in around[u] if i in around[v]] for u, v in ends]
        return np.array([matching.z[indices].sum() for indices in shared])
    from mlestruct_oracles.blossom_rows import shared_duals

    place = np.empty(n, np.int64)
    place[sets.order] = np.arange(n)
    outside_in = np.lexsort((-sets.last, sets.first))
    total = np.empty(len(ends))
    ordered = sets.first[outside_in], sets.last[outside_in], matching.z[outside_in]
    if not shared_duals(*ordered, place[ends], total):
        raise ValueError("odd sets must lie inside one another or apart")
    return total


def perfect_matching_priced(
    n: int, rows: Rows, candidates: int = 16, block: int = 512, warm: ProvenMatching | None = None
) -> ProvenMatching:
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
    if n == 0:
        return perfect_matching_sparse(0, [], [])
    table = LazyScores(n, rows, block)
    pool = Pool(n)
    zero = np.zeros(n)
    table.price(zero, (), np.zeros(0), -math.inf, candidates, pool)
    while True:
        forest, left = search(pool.graph(), n, warm, perfect=True)
        if left:
            if not table.join_odd_groups(forest, pool):
                raise stranded(forest)
            continue
        warm = pool.answer(forest)
        rounding = 0.0 if whole_duals(warm) else 1e-13 * float(np.abs(warm.y).max(initial=1.0))
        added, shortfall = table.price(warm.y, warm.odd_sets, warm.z, rounding, candidates, pool)
        if not added:
            upper = warm.upper + n / 2 * max(0.0, shortfall)
            return replace(warm, upper=upper)


def whole_duals(matching: ProvenMatching) -> bool:
    """Whether the duals are multiples of 1/2, as whole weights have them: then nothing rounds."""
    doubled = 2.0 * np.concatenate([matching.y, matching.z])
    return bool(np.all(doubled == np.rint(doubled)))


def match_edges(
    n: int, ends: Ints, scores: Array, warm: ProvenMatching | None, perfect: bool
) -> ProvenMatching:
    forest, left = search(adjacency(n, ends, scores), n, warm, perfect)
    if left:
        raise stranded(forest)
    partner = forest.node["mate"][:n].astype(np.int64)
    return answer(forest, partner, used_weights(ends, scores, partner), perfect)


def checked_edges(n: int, edges: ArrayLike, weights: ArrayLike) -> tuple[Ints, Array]:
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
    for k in np.flatnonzero(~allowed_weights(scores))[:1]:
        raise ValueError(f"weights[{k}] is {scores[k]}; {ALLOWED}")
    allowed = scores > -math.inf
    return ends[allowed].astype(np.int64), scores[allowed]


def allowed_weights(scores: Array) -> NDArray[np.bool_]:
    allowed: NDArray[np.bool_] = (np.abs(scores) < 1e300) | (scores == -math.inf)
    return allowed


def adjacency(n: int, ends: Ints, scores: Array) -> Any:
    """The kernel's rows of neighbours: O(m)."""
    from mlestruct_oracles.blossom_rows import Neighbours, fill_rows

    start, target = np.zeros(n + 2, np.int64), np.empty(2 * len(ends), np.int64)
    weight = np.empty(2 * len(ends))
    fill_rows(ends, scores, start, target, weight)
    return Neighbours(np.zeros((0, 0)), start[:-1], target, weight)


def used_weights(ends: Ints, scores: Array, partner: Ints) -> Array:
    """The weight of each matched pair: the heaviest of its parallel edges."""
    inside = partner[ends[:, 0]] == ends[:, 1]
    weights = np.full(len(partner), -math.inf)
    np.maximum.at(weights, ends[inside].min(axis=1), scores[inside])
    used = weights[np.flatnonzero(np.arange(len(partner)) < partner)]
    if np.any(used == -math.inf):
        raise ValueError("the matching uses a pair that is not an edge")
    return used


class Pool:
    """The edges a pricing loop has collected, both ends smaller first."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.ends: Ints = np.zeros((0, 2), np.int64)
        self.scores: Array = np.zeros(0)

    def add(self, u: Ints, v: Ints, scores: Array) -> int:
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

    def used(self, partner: Ints) -> Array:
        return used_weights(self.ends, self.scores, partner)

    def answer(self, forest: Any) -> ProvenMatching:
        partner = forest.node["mate"][: self.n].astype(np.int64)
        return answer(forest, partner, self.used(partner), perfect=True)


@dataclass(frozen=True)
class LazyScores:
    """A symmetric matrix of scores that is never held, only looked through block by block."""

    n: int
    rows: Rows
    block: int

    def blocks(self) -> Iterator[tuple[int, Array]]:
        for first in range(0, self.n, self.block):
            last = min(first + self.block, self.n)
            scores = np.require(self.rows(first, last), np.float64, ["C", "W"])
            wanted = (last - first, self.n)
            if scores.shape != wanted:
                raise ValueError(f"rows({first}, {last}) has shape {scores.shape}, not {wanted}")
            yield first, scores

    def price(
        self, y: Array, sets: Sequence[Ints], z: Array, least: float, count: int, pool: Pool
    ) -> tuple[int, float]:
        """Pool each node's edges the duals leave most uncovered; how many, and the worst excess."""
        from mlestruct_oracles.blossom_rows import most_uncovered

        start, around = sets_by_node(self.n, sets)
        shortfall = -math.inf
        found = []
        for first, scores in self.blocks():
            ends = np.empty((len(scores), count), np.int64)
            worst, u, v = most_uncovered(
                scores, first, y, start, around, z, least, ends, np.empty(ends.shape)
            )
            if u >= 0:
                raise ValueError(f"the score of {u} and {v} is {scores[u - first, v]}; {ALLOWED}")
            shortfall = max(shortfall, worst)
            i, place = np.nonzero(ends >= 0)
            found.append((i + first, ends[i, place], scores[i, ends[i, place]]))
        return pool.add(*(np.concatenate(part) for part in zip(*found, strict=True))), shortfall

    def join_odd_groups(self, forest: Any, pool: Pool) -> int:
        """Pool each stranded node's best edge out of its odd group; how many edges there are."""
        from mlestruct_oracles.blossom_forest import INNER, OUTER

        label, added = forest.node["label"][forest.top], 0
        for first, scores in self.blocks():
            u = np.arange(first, first + len(scores))
            hidden = (forest.top[u, None] == forest.top) | (label == INNER)
            hidden[label[u] != OUTER] = True
            open_scores = np.where(hidden, -math.inf, scores)
            best = np.argmax(open_scores, axis=1)
            added += pool.add(u, best, open_scores[u - first, best])
        return added


def sets_by_node(n: int, sets: Sequence[Ints]) -> tuple[Ints, Ints]:
    """The numbers of the odd sets around each node, one node after the other, and their bounds."""
    members = np.concatenate([np.zeros(0, np.int64), *sets])
    index = np.repeat(np.arange(len(sets)), [len(nodes) for nodes in sets])
    order = np.argsort(members, kind="stable")
    return np.searchsorted(members[order], np.arange(n + 1)).astype(np.int64), index[order]
