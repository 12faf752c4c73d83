"""Perfect and maximum-weight matchings of general graphs, each with a proof of its optimality.

The dual of a matching puts y on nodes and z >= 0 on odd sets of nodes, such that y[u] + y[v] plus
the z of every set holding both covers each edge's weight. Then no matching weighs more than
``sum(y) + sum(z * (size - 1) / 2)``: the ``upper`` that every answer here carries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Ints

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
    scores = symmetric(weights)
    refuse_odd(len(scores))
    return match(scores, perfect=True)


def maximum_weight_matching(weights: ArrayLike) -> ProvenMatching:
    """The heaviest matching, in which nodes may stay single: O(n³); as ``perfect_matching``.

    An edge of negative weight is never used. With weights 1 and -inf it is a matching with as many
    edges as possible.

    Examples
    --------
    >>> maximum_weight_matching([[0, 2, 3], [2, 0, -1], [3, -1, 0]]).partner
    array([ 2, -1,  0])
    """
    return match(symmetric(weights), perfect=False)


def match(scores: Array, perfect: bool) -> ProvenMatching:
    """Run the dense kernel on checked scores and read the answer and the duals off its forest."""
    n = len(scores)
    forest, left = search(scores, n, perfect)
    if left:
        raise stranded(forest)
    partner = forest.node["mate"][:n].astype(np.int64)
    used = np.flatnonzero(np.arange(n) < partner)
    return answer(forest, partner, scores[used, partner[used]], perfect)


def search(edges: Any, n: int, perfect: bool) -> tuple[Any, int]:
    """Run the kernel for a matrix or Neighbours: its forest, and how many trees are stuck."""
    from mlestruct_oracles.blossom_forest import half_maxima  # Numba: only when it is needed

    y = np.zeros(n)
    half_maxima(edges, y)
    if perfect:
        refuse_isolated(y)
    whole = bool(np.all((y == np.rint(2.0 * y) / 2.0) | (y == -math.inf)))
    if not perfect:
        np.maximum(y, 0.0, out=y)
    if whole:  # whole weights: whole duals at the start keep every later one a multiple of 1/2
        np.ceil(y, out=y)
    forest, left = _solver(edges)(edges, y, perfect)
    return forest, int(left)


def _solver(edges: Any) -> Any:
    if isinstance(edges, np.ndarray):
        from mlestruct_oracles.blossom_kernel import solve

        return solve
    from mlestruct_oracles.blossom_sparse_kernel import solve as solve_sparse

    return solve_sparse


def answer(forest: Any, partner: Ints, used: Array, perfect: bool) -> ProvenMatching:
    """The matching with these partners and used weights, and the duals the forest ended with."""
    from mlestruct_oracles.blossom_forest import in_order

    n = len(partner)
    y = forest.y.copy() if perfect else np.maximum(forest.y, 0.0)
    inside = (forest.node["parent"][n:] != np.arange(n, n + n // 2)) & (forest.half[n:] > 0)
    nodes = np.flatnonzero(inside) + n
    order, place = np.empty(n, np.int64), np.empty(n, np.int64)
    in_order(forest, order, place)
    first, last = place[forest.node["first"][nodes]], place[forest.node["last"][nodes]] + 1
    sets = OddSets(order, first, last)
    z = 2.0 * forest.half[nodes]
    return ProvenMatching(partner, math.fsum(used), dual_value(y, sets, z), y, sets, z, perfect)


def dual_value(y: Array, sets: OddSets, z: Array) -> float:
    """``sum(y) + sum(z * (size - 1) / 2)``, summed without rounding."""
    halves = z * (sets.sizes // 2)
    return math.fsum([*y.tolist(), *halves.tolist()])


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
    from mlestruct_oracles.blossom_sparse import prove_sparse

    scores = symmetric(weights)
    ends = np.argwhere(np.triu(scores > -math.inf, 1))
    return prove_sparse(len(scores), ends, scores[tuple(ends.T)], matching)


def node_duals(matching: ProvenMatching) -> Array:
    """The y that the proof uses: where nodes may stay single, negative ones count as 0."""
    return matching.y if matching.perfect else np.maximum(matching.y, 0.0)


def certified_gap(matching: ProvenMatching, used: Array, shortfall: float) -> float:
    """The duals' value, raised until they cover every edge, minus the weights used."""
    n = len(matching.partner)
    bound = dual_value(node_duals(matching), matching.odd_sets, matching.z)
    return bound + n / 2 * shortfall - math.fsum(used)


def check_answer(n: int, matching: ProvenMatching) -> None:
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


def symmetric(weights: ArrayLike) -> Array:
    """The weights as a checked C-ordered float64 array, not copied where it already is one."""
    from mlestruct_oracles.blossom_rows import LARGEST, first_fault

    scores = np.require(weights, np.float64, ["C", "W"])  # a kernel compiles anew for read-only
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"weights must be a square matrix, not of shape {scores.shape}")
    i, j = first_fault(scores)
    if i >= 0:
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


def refuse_odd(n: int) -> None:
    if n % 2:
        raise Infeasible(f"{n} nodes cannot all be paired: nodes 0 to {n - 1} are an odd number")


def refuse_isolated(greatest: Array) -> None:
    isolated = np.flatnonzero(greatest == -math.inf)
    if len(isolated):
        alone = [[int(v)] for v in isolated]
        raise Infeasible(f"no edge is allowed at node(s) {some(isolated)}", (), alone)


def stranded(forest: Any) -> Infeasible:
    """The failed tree as Tutte's witness: fewer separating nodes than odd groups they separate."""
    from mlestruct_oracles.blossom_forest import INNER, OUTER

    label = forest.node["label"][forest.top]
    separators = np.flatnonzero(label == INNER)
    outer = np.flatnonzero(label == OUTER)
    groups = [outer[forest.top[outer] == node] for node in np.unique(forest.top[outer])]
    groups.sort(key=len, reverse=True)
    named = "; ".join(some(group) for group in groups[:4])
    more = f" and {len(groups) - 4} more" if len(groups) > 4 else ""
    apart = f"without node(s) {some(separators)} the" if len(separators) else "the"
    return Infeasible(
        f"{apart} odd groups {named}{more} have no allowed edges to other nodes: {len(groups)} "
        f"group(s) need a partner outside and {len(separators)} node(s) can give one",
        separators.tolist(),
        [group.tolist() for group in groups],
    )


def some(nodes: Sequence[int] | Ints) -> str:
    """Up to eight node numbers in words."""
    shown = ", ".join(str(int(v)) for v in nodes[:8])
    return f"[{shown}{', ...' if len(nodes) > 8 else ''}]"
