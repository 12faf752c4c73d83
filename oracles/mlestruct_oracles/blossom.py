"""Perfect and maximum-weight matchings of general graphs, each with a proof of its optimality.

The dual of a matching puts y on nodes and z >= 0 on odd sets of nodes, such that y[u] + y[v] plus
the z of every set holding both covers each edge's weight. Then no matching weighs more than
``sum(y) + sum(z * (size - 1) / 2)``: the ``upper`` that every answer here carries.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Ints
from mlestruct_oracles.native._door import (
    BlossomAnswer,
    blossom_dense,
    blossom_fault,
    blossom_sparse,
)

LARGEST = 1e300  # beyond it sums of duals could overflow
ALLOWED = "use numbers below 1e300, and -inf for a forbidden edge"


@dataclass(frozen=True)
class OddSets(Sequence[Ints]):
    """Nested sets of nodes as places first to last - 1 of one order: O(n), however deep they nest.

    Examples
    --------
    >>> list(OddSets(np.array([2, 0, 1, 3]), np.array([0]), np.array([3])))
    [array([0, 1, 2])]
    """

    order: Ints
    first: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, index: Any) -> Any:
        return np.sort(self.order[self.first[index] : self.last[index]])

    @property
    def sizes(self) -> Ints:
        return self.last - self.first


@dataclass(frozen=True)
class ProvenMatching:
    """A matching and the duals that bound every other one: ``weight <= best <= upper``.

    Attributes
    ----------
    partner: each node's partner, -1 if it stays single.
    weight: the matching's weight, recomputed from the input.
    upper: the value of the duals; equal to ``weight`` at an optimum, up to rounding.
    y: the nodes' duals (not negative where nodes may stay single).
    odd_sets, z: the odd sets of nodes with a positive dual, and those duals; sets lie inside one
        another or apart.
    perfect: whether every node had to be matched.
    """

    partner: Ints
    weight: float
    upper: float
    y: Array
    odd_sets: OddSets
    z: Array
    perfect: bool

    @property
    def gap(self) -> float:
        """How much heavier another matching could be, trusting the duals; ``prove`` checks them."""
        return self.upper - self.weight


def perfect_matching(weights: ArrayLike) -> ProvenMatching:
    """The heaviest perfect matching of a complete or masked graph: O(n³), nearer O(n²) as a rule.

    Parameters
    ----------
    weights: symmetric (n, n) array, n even; -inf forbids an edge; the diagonal is ignored.

    Whole-number weights are solved without rounding while duals stay below 2**51 (on a complete
    graph, weights below 2**49 do): then ``gap`` is exactly 0.

    Raises
    ------
    Infeasible: no perfect matching exists; the message names the nodes that prevent it.
    ValueError: the array is not square and symmetric, or holds NaN or +inf.

    Examples
    --------
    >>> perfect_matching([[0, 3, 1, 1], [3, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]]).partner
    array([1, 0, 3, 2])
    """
    return _match_table(_symmetric(weights), perfect=True)


def maximum_weight_matching(weights: ArrayLike) -> ProvenMatching:
    """The heaviest matching, in which nodes may stay single: O(n³); as ``perfect_matching``.

    An edge of negative weight is never used. With weights 1 and -inf it is a matching with as many
    edges as possible.

    Examples
    --------
    >>> maximum_weight_matching([[0, 2, 3], [2, 0, -1], [3, -1, 0]]).partner
    array([ 2, -1,  0])
    """
    return _match_table(_symmetric(weights), perfect=False)


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
    return _match_edges(n, *_checked_edges(n, edges, weights), perfect=True)


def maximum_weight_matching_sparse(n: int, edges: ArrayLike, weights: ArrayLike) -> ProvenMatching:
    """The heaviest matching of the graph with these edges; nodes may stay single.

    With all weights 1 it has as many edges as possible.

    Examples
    --------
    >>> maximum_weight_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([-1,  2,  1, -1])
    """
    return _match_edges(n, *_checked_edges(n, edges, weights), perfect=False)


def prove(weights: ArrayLike, matching: ProvenMatching) -> float:
    """No matching of these weights is heavier than the given one by more than the returned gap.

    Looks at the answer alone, not at how it was found: O(n² depth of the odd sets). An edge that
    is not covered raises the bound by half its shortfall per node: rounding is accounted for.

    Examples
    --------
    >>> scores = [[0, 2, 3], [2, 0, -1], [3, -1, 0]]
    >>> prove(scores, maximum_weight_matching(scores))
    0.0
    """
    scores = _symmetric(weights)
    ends = np.argwhere(np.triu(scores > -math.inf, 1))
    return prove_sparse(len(scores), ends, scores[tuple(ends.T)], matching)


def prove_sparse(n: int, edges: ArrayLike, weights: ArrayLike, matching: ProvenMatching) -> float:
    """No matching of these edges is heavier by more than the returned gap; O(m depth).

    Examples
    --------
    >>> edges, weights = [(0, 1), (1, 2), (2, 3)], [1, 9, 1]
    >>> prove_sparse(4, edges, weights, perfect_matching_sparse(4, edges, weights))
    0.0
    """
    ends, scores = _checked_edges(n, edges, weights)
    _check_answer(n, matching)
    y = matching.y if matching.perfect else np.maximum(matching.y, 0.0)
    uncovered = scores - y[ends[:, 0]] - y[ends[:, 1]]
    left = np.flatnonzero(uncovered > 0)
    uncovered[left] -= _duals_around(n, matching, ends[left])
    bound = _dual_value(y, matching.odd_sets, matching.z)
    used = _used_weights(ends, scores, matching.partner)
    return bound + n / 2 * float(uncovered.max(initial=0.0)) - math.fsum(used)


def _match_table(scores: Array, perfect: bool) -> ProvenMatching:
    """Match the graph of a checked matrix."""
    n = len(scores)

    def used(partner: Ints) -> Array:
        nodes = np.flatnonzero(np.arange(n) < partner)
        return np.asarray(scores[nodes, partner[nodes]])

    return _match(n, perfect, lambda answer: blossom_dense(scores, perfect, answer), used)


def _match_edges(n: int, ends: Ints, scores: Array, perfect: bool) -> ProvenMatching:
    """Match the graph of checked edges."""
    return _match(
        n,
        perfect,
        lambda answer: blossom_sparse(len(ends), ends, scores, perfect, answer),
        lambda partner: _used_weights(ends, scores, partner),
    )


def _match(
    n: int, perfect: bool, search: Callable[[BlossomAnswer], int], used: Callable[[Ints], Array]
) -> ProvenMatching:
    """Search for a matching; ``used`` gives the weights of its pairs."""
    if perfect and n % 2:
        raise Infeasible(f"{n} nodes cannot all be paired: nodes 0 to {n - 1} are an odd number")
    order, first, last, witness = np.empty((4, n), np.int64)
    found = BlossomAnswer(
        n, np.empty(n, np.int64), np.empty(n), order, first, last, np.empty(n), witness
    )
    sets = search(found)
    if sets < 0:
        raise _stranded(found)
    partner, y, z = found.partner, found.y, found.z[:sets]
    odd_sets = OddSets(order, first[:sets], last[:sets])
    weight, upper = math.fsum(used(partner)), _dual_value(y, odd_sets, z)
    return ProvenMatching(partner, weight, upper, y, odd_sets, z, perfect)


def _dual_value(y: Array, sets: OddSets, z: Array) -> float:
    """``sum(y) + sum(z * (size - 1) / 2)``, summed without rounding."""
    halves = z * (sets.sizes // 2)
    return math.fsum([*y.tolist(), *halves.tolist()])


def _duals_around(n: int, matching: ProvenMatching, ends: Ints) -> Array:
    """The z of all odd sets that hold both ends, per edge: O(their depth)."""
    sets, place = matching.odd_sets, np.empty(n, np.int64)
    place[sets.order] = np.arange(n)
    # One set more holds all nodes. ``inner``: the smallest set around a place.
    order = np.lexsort((-sets.last, sets.first))
    last, z = np.append(sets.last[order], n), np.append(matching.z[order], 0.0)
    inner, around = np.full(n, len(sets)), np.full(len(sets) + 1, len(sets))
    for s, first in enumerate(sets.first[order]):
        around[s] = inner[first]
        if last[s] > last[around[s]]:
            raise ValueError("odd sets must lie inside one another or apart")
        inner[first : last[s]] = s
        z[s] += z[around[s]]
    low, high = np.sort(place[ends], axis=1).T
    found = inner[low]
    while (outside := last[found] <= high).any():
        found[outside] = around[found[outside]]
    return np.asarray(z[found])


def _check_answer(n: int, matching: ProvenMatching) -> None:
    """Raise ValueError unless the answer is a matching of n nodes with odd sets and z >= 0."""
    partner = matching.partner
    if partner.shape != (n,) or matching.y.shape != (n,):
        raise ValueError(f"the matching is for {len(partner)} nodes, the weights for {n}")
    matched = np.flatnonzero(partner >= 0)
    if np.any(partner >= n) or np.any(partner[partner[matched]] != matched):
        raise ValueError("partner is not a matching: some node's partner has another partner")
    if np.any(partner == np.arange(n)) or (matching.perfect and len(matched) < n):
        raise ValueError("partner leaves a node single or with itself")
    sets = matching.odd_sets
    if np.any(matching.z < 0) or len(matching.z) != len(sets):
        raise ValueError("each odd set needs a dual z >= 0")
    whole = np.array_equal(np.sort(sets.order), np.arange(n))
    inside = np.all((sets.first >= 0) & (sets.first < sets.last) & (sets.last <= n))
    if not whole or not inside or np.any(sets.sizes % 2 == 0):
        raise ValueError("not odd sets of nodes: no order of all, or places that do not fit it")


def _symmetric(weights: ArrayLike) -> Array:
    """The weights as a checked C-ordered float64 array, not copied where it already is one."""
    scores = np.asarray(weights, np.float64, order="C")
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"weights must be a square matrix, not of shape {scores.shape}")
    fault = blossom_fault(len(scores), scores, LARGEST)
    if fault >= 0:
        i, j = divmod(fault, len(scores))
        a, b = scores[i, j], scores[j, i]
        for weight, place in ((a, (i, j)), (b, (j, i))):
            if not (abs(weight) < LARGEST or weight == -math.inf):
                raise ValueError(f"weights[{place[0]}, {place[1]}] is {weight}; {ALLOWED}")
        hint = "pass (W + W.T) / 2 if only rounding differs"
        raise ValueError(f"weights[{i}, {j}] is {a} but weights[{j}, {i}] is {b}; {hint}")
    if not np.all(np.diagonal(scores) < LARGEST):
        scores = scores.copy()
        np.fill_diagonal(scores, 0.0)
    return scores


def _checked_edges(n: int, edges: ArrayLike, weights: ArrayLike) -> tuple[Ints, Array]:
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
    finite = np.abs(scores) < LARGEST
    for k in np.flatnonzero(~finite & (scores != -math.inf))[:1]:
        raise ValueError(f"weights[{k}] is {scores[k]}; {ALLOWED}")
    if not finite.all():
        ends, scores = ends[finite], scores[finite]
    return np.ascontiguousarray(ends, np.int64), np.ascontiguousarray(scores)


def _used_weights(ends: Ints, scores: Array, partner: Ints) -> Array:
    """The weight of each matched pair: the heaviest of its parallel edges."""
    inside = partner[ends[:, 0]] == ends[:, 1]
    weights = np.full(len(partner), -math.inf)
    np.maximum.at(weights, np.minimum(ends[:, 0], ends[:, 1])[inside], scores[inside])
    used = weights[np.flatnonzero(np.arange(len(partner)) < partner)]
    if np.any(used == -math.inf):
        raise ValueError("the matching uses a pair that is not an edge")
    return used


def _stranded(found: BlossomAnswer) -> Infeasible:
    """Return the error that names nodes without edges, or else Tutte's witness.

    That is a set of nodes which separates more odd groups than it has nodes.
    """
    isolated = np.flatnonzero(found.y == -math.inf)
    if len(isolated):
        groups = [[v] for v in isolated.tolist()]
        return Infeasible(f"no edge is allowed at node(s) {_some(isolated)}", (), groups)
    outer, separators = found.witness, np.flatnonzero(found.witness == -1)
    groups = [np.flatnonzero(outer == node).tolist() for node in np.unique(outer[outer >= 0])]
    groups.sort(key=len, reverse=True)
    named = "; ".join(_some(group) for group in groups[:4])
    more = f" and {len(groups) - 4} more" if len(groups) > 4 else ""
    apart = f"without node(s) {_some(separators)} the" if len(separators) else "the"
    return Infeasible(
        f"{apart} odd groups {named}{more} have no allowed edges to other nodes: {len(groups)} "
        f"group(s) need a partner outside and {len(separators)} node(s) can give one",
        separators.tolist(),
        groups,
    )


def _some(nodes: Sequence[int] | Ints) -> str:
    """Up to eight node numbers in words."""
    shown = ", ".join(str(int(v)) for v in nodes[:8])
    return f"[{shown}{', ...' if len(nodes) > 8 else ''}]"
