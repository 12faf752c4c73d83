"""Perfect and maximum-weight matchings of general graphs, each with a proof of its optimality.

The dual of a matching puts y on nodes and z >= 0 on odd sets of nodes, such that y[u] + y[v] plus
the z of every set holding both covers each edge's weight. Then no matching weighs more than
``sum(y) + sum(z * (size - 1) / 2)``: the ``upper`` that every answer here carries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.oracle import Answers, one_by_one
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from mlestruct.structures.matching import Matching
from mlestruct_oracles.native._door import (
    BlossomAnswer,
    blossom_dense,
    blossom_sparse,
    blossom_table,
)

LARGEST = 1e300  # beyond it sums of duals could overflow
ALLOWED = "use numbers below 1e300, and -inf for a forbidden edge"
SPARSE = 20  # with fewer than 1 / SPARSE of all pairs allowed, rows of neighbours are faster


@dataclass(frozen=True)
class Blossom:
    """The heaviest matching of a general graph; ``upper`` is the value of its duals.

    O(n³) per example and far less in practice, GIL released in the kernel; O(n²) memory, or
    O(edges) where less than a twentieth of all pairs is allowed.
    """

    polytope: str = "convex hull of matchings"

    def many(self, batch: Batch[Matching], scores: Array) -> Answers:
        return one_by_one(batch, scores, lambda structure: partial(_best, structure))


def _best(structure: Matching, score: Array) -> tuple[Array, float]:
    """A best vertex and a bound on the best score, required pairs included."""
    n, perfect = structure.n_nodes, structure.kind == "perfect"
    # Where nodes may stay single, required pairs are left out here, and come later.
    open_ = structure.fixed != 0 if perfect else structure.fixed < 0
    if SPARSE * 2 * structure.size < n**2:
        found = _match(n, perfect, score[open_], structure.ends[open_].astype(np.int64))
    elif structure.graph.complete:
        table = np.empty((n, n))
        blossom_table(n, np.where(open_, score, -np.inf), table)
        found = _match(n, perfect, table)
    else:
        table = np.full((n, n), -np.inf)
        u, v = structure.ends[open_].T
        table[u, v] = table[v, u] = score[open_]
        found = _match(n, perfect, table)
    vertex = np.zeros(structure.size)
    used = np.flatnonzero(found.partner > np.arange(n))
    vertex[structure.graph.place(used, found.partner[used])] = 1.0
    required = np.flatnonzero((structure.fixed == 1) & (vertex == 0))
    vertex[required] = 1.0
    return vertex, float(found.upper + score[required].sum())


@dataclass(frozen=True)
class ProvenMatching:
    """A matching and the duals that bound every other one: ``weight <= best <= upper``.

    Attributes
    ----------
    partner: each node's partner, -1 if it stays single.
    weight: the matching's weight, recomputed from the input.
    upper: the value of the duals; equal to ``weight`` at an optimum, up to rounding.
    y: the nodes' duals (not negative where nodes may stay single).
    order, first, last: odd set ``s`` with a positive dual holds the nodes
        ``order[first[s]:last[s]]``; sets lie inside one another or apart.
    z: the odd sets' duals.
    """

    partner: Ints
    weight: float
    upper: float
    y: Array
    order: Ints
    first: Ints
    last: Ints
    z: Array

    @property
    def gap(self) -> float:
        """How much heavier another matching could be."""
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
    scores = _symmetric(weights)
    return _match(len(scores), True, scores)


def maximum_weight_matching(weights: ArrayLike) -> ProvenMatching:
    """The heaviest matching, in which nodes may stay single: O(n³); as ``perfect_matching``.

    An edge of negative weight is never used. With weights 1 and -inf it is a matching with as many
    edges as possible.

    Examples
    --------
    >>> maximum_weight_matching([[0, 2, 3], [2, 0, -1], [3, -1, 0]]).partner
    array([ 2, -1,  0])
    """
    scores = _symmetric(weights)
    return _match(len(scores), False, scores)


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
    return _match(n, True, *_checked_edges(n, edges, weights))


def maximum_weight_matching_sparse(n: int, edges: ArrayLike, weights: ArrayLike) -> ProvenMatching:
    """The heaviest matching of the graph with these edges; nodes may stay single.

    With all weights 1 it has as many edges as possible.

    Examples
    --------
    >>> maximum_weight_matching_sparse(4, [(0, 1), (1, 2), (2, 3)], [1, 9, 1]).partner
    array([-1,  2,  1, -1])
    """
    return _match(n, False, *_checked_edges(n, edges, weights))


def _match(n: int, perfect: bool, weights: Array, ends: Ints | None = None) -> ProvenMatching:
    """Match the graph of a checked matrix, or of checked edges."""
    if perfect and n % 2:
        raise Infeasible(f"{n} nodes cannot all be paired: nodes 0 to {n - 1} are an odd number")
    order, first, last, witness = np.empty((4, n), np.int64)
    found = BlossomAnswer(
        n, np.empty(n, np.int64), np.empty(n), order, first, last, np.empty(n), witness
    )
    if ends is None:
        sets = blossom_dense(weights, perfect, found)
    else:
        sets = blossom_sparse(len(ends), ends, weights, perfect, found)
    if sets < 0:
        raise _stranded(found)
    partner, y, first, last, z = found.partner, found.y, first[:sets], last[:sets], found.z[:sets]
    used = np.flatnonzero(np.arange(n) < partner)
    if ends is None:
        paid = weights[used, partner[used]]
    else:  # of parallel edges the heaviest
        inside, most = partner[ends[:, 0]] == ends[:, 1], np.full(n, -math.inf)
        np.maximum.at(most, ends.min(axis=1, initial=n)[inside], weights[inside])
        paid = most[used]
    halves = z * ((last - first) // 2)
    upper = math.fsum([*y.tolist(), *halves.tolist()])
    return ProvenMatching(partner, math.fsum(paid), upper, y, order, first, last, z)


def _symmetric(weights: ArrayLike) -> Array:
    """A checked copy of the weights, zero on the diagonal."""
    scores = np.array(weights, np.float64, order="C")
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"weights must be a square matrix, not of shape {scores.shape}")
    np.fill_diagonal(scores, 0.0)
    allowed = (np.abs(scores) < LARGEST) | (scores == -math.inf)
    wrong = ~allowed | (scores != scores.T)
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        for place in ((i, j), (j, i)):
            if not allowed[place]:
                raise ValueError(f"weights[{place[0]}, {place[1]}] is {scores[place]}; {ALLOWED}")
        a, b = scores[i, j], scores[j, i]
        hint = "pass (W + W.T) / 2 if only rounding differs"
        raise ValueError(f"weights[{i}, {j}] is {a} but weights[{j}, {i}] is {b}; {hint}")
    return scores


def _checked_edges(n: int, edges: ArrayLike, weights: ArrayLike) -> tuple[Array, Ints]:
    """The allowed edges' weights and these edges, or ValueError naming the first bad one."""
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
    return scores[finite], ends[finite].astype(np.int64)


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
