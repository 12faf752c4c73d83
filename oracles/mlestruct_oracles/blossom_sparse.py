"""The blossom kernel on lists of edges."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import Array, Ints
from mlestruct_oracles.blossom import (
    ALLOWED,
    ProvenMatching,
    answer,
    certified_gap,
    check_answer,
    node_duals,
    refuse_odd,
    search,
    stranded,
)


def perfect_matching_sparse(n: int, edges: ArrayLike, weights: ArrayLike) -> ProvenMatching:
    """The heaviest perfect matching of the graph with these edges: O(n m log n) at worst.

    Trees stay small as a rule, and an event costs what its tree does: 100,000 nodes of degree 4 to
    10 take twelve to forty times what 10,000 take.

    Parameters
    ----------
    n: number of nodes, even.
    edges: (m, 2) node numbers; of parallel edges the heaviest counts.
    weights: one per edge; -inf forbids it.

    Raises Infeasible and ValueError as ``perfect_matching`` does.

    Examples
    --------
    >>> perfect_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([1, 0, 3, 2])
    """
    refuse_odd(n)
    return match_edges(n, *checked_edges(n, edges, weights), perfect=True)


def maximum_weight_matching_sparse(n: int, edges: ArrayLike, weights: ArrayLike) -> ProvenMatching:
    """The heaviest matching of the graph with these edges; nodes may stay single.

    With all weights 1 it has as many edges as possible.

    Examples
    --------
    >>> maximum_weight_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([-1,  2,  1, -1])
    """
    return match_edges(n, *checked_edges(n, edges, weights), perfect=False)


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
    from mlestruct_oracles.blossom_sparse_kernel import shared_duals

    sets = matching.odd_sets
    place = np.empty(n, np.int64)
    place[sets.order] = np.arange(n)
    outside_in = np.lexsort((-sets.last, sets.first))
    total = np.empty(len(ends))
    ordered = sets.first[outside_in], sets.last[outside_in], matching.z[outside_in]
    if not shared_duals(*ordered, place[ends], total):
        raise ValueError("odd sets must lie inside one another or apart")
    return total


def match_edges(n: int, ends: Ints, scores: Array, perfect: bool) -> ProvenMatching:
    forest, left = search(adjacency(n, ends, scores), n, perfect)
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
    loops = ends[:, 0] == ends[:, 1]
    if loops.any() or ends.min(initial=0) < 0 or ends.max(initial=-1) >= n:
        k = np.flatnonzero(np.any((ends < 0) | (ends >= n), axis=1) | loops)[0]
        raise ValueError(f"edges[{k}] is {ends[k].tolist()}; use two different nodes below {n}")
    for k in np.flatnonzero(~allowed_weights(scores))[:1]:
        raise ValueError(f"weights[{k}] is {scores[k]}; {ALLOWED}")
    allowed = scores > -math.inf
    if not allowed.all():
        ends, scores = ends[allowed], scores[allowed]
    # a kernel compiles anew for arrays that are strided or read-only
    return np.require(ends, np.int64, ["C", "W"]), np.require(scores, np.float64, ["C", "W"])


def allowed_weights(scores: Array) -> NDArray[np.bool_]:
    allowed: NDArray[np.bool_] = (np.abs(scores) < 1e300) | (scores == -math.inf)
    return allowed


def adjacency(n: int, ends: Ints, scores: Array) -> Any:
    """The kernel's rows of neighbours: O(m)."""
    from mlestruct_oracles.blossom_sparse_kernel import EDGE, Neighbours, fill_rows

    start, edge = np.zeros(n + 2, np.int64), np.empty(2 * len(ends), EDGE)
    fill_rows(ends, scores, start, edge)
    return Neighbours(start[:-1], edge)


def used_weights(ends: Ints, scores: Array, partner: Ints) -> Array:
    """The weight of each matched pair: the heaviest of its parallel edges."""
    inside = partner[ends[:, 0]] == ends[:, 1]
    weights = np.full(len(partner), -math.inf)
    np.maximum.at(weights, np.minimum(ends[:, 0], ends[:, 1])[inside], scores[inside])
    used = weights[np.flatnonzero(np.arange(len(partner)) < partner)]
    if np.any(used == -math.inf):
        raise ValueError("the matching uses a pair that is not an edge")
    return used
