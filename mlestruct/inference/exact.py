"""Exact log Z and marginals of any structure, by the cheapest way that its kind has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from mlestruct import limits
from mlestruct.errors import Infeasible
from mlestruct.inference import grids, subsets
from mlestruct.inference.elimination import MEMORY, eliminated, estimate, two_to
from mlestruct.inference.forests import ForwardBackward
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.lazy import getter
from mlestruct.native._door import Dag, path_marginals
from mlestruct.structures import (
    BipartiteMatching,
    BMatching,
    FactorGraph,
    Flow,
    Ising,
    Matching,
    Paths,
    RegionGraph,
)
from mlestruct.structures.base import Array, Ints, Marks, Structure, kept
from mlestruct.structures.batch import Batch, as_scores
from mlestruct.structures.entropy import Entropy

__getattr__ = getter(__name__, {})

LARGEST = 1 << 24  # numbers in one listing
FEW, SMALL = 4, 0.01  # more examples of small grids are quicker eliminated side by side
LISTABLE = FactorGraph | BipartiteMatching | Matching | Paths | BMatching | Flow


@dataclass(frozen=True)
class Exact:
    """log Σ exp⟨score, v⟩ over all outcomes v, and E[v] under the distribution it normalises."""

    log_z: float
    tau: Array


@overload
def exact(problem: Batch[Any], scores: ArrayLike, *, memory: float = ...) -> Beliefs: ...


@overload
def exact(problem: Structure, scores: ArrayLike, *, memory: float = ...) -> Exact: ...


def exact(
    problem: Batch[Any] | Structure, scores: ArrayLike, *, memory: float = MEMORY
) -> Beliefs | Exact:
    """log Σ exp⟨score, v⟩ over all outcomes v, and E[v]; or a ValueError with what it would take.

    For one structure, or for a batch (log Z per example, τ flat). Forests and paths: O(size).
    Other labelled graphs: elimination in min-fill order, O(Σ tables), grids site by site.
    Region graphs likewise.
    Matchings: subsets of nodes, of the cheaper side if bipartite. B-matchings, flows: listed, up
    to about 19 free coordinates. ``memory`` is in GiB. A score of −inf forbids its coordinate.

    >>> exact(FactorGraph([2], []), [0.0, 0.0]).tau.tolist()
    [0.5, 0.5]
    """
    values = as_scores(problem, scores)
    if isinstance(problem, Structure):
        one, point = solve(problem, values[None], memory)
        return Exact(float(one[0]), point[0])
    log_z, tau = np.empty(len(problem)), np.empty(problem.size)
    for structure, members in problem.groups():
        for part in limits.parts(len(members), 2 * FEW):
            some = members[part]
            if limits.late():
                log_z[some], rows = np.nan, np.full((len(some), structure.size), np.nan)
            else:
                log_z[some], rows = solve(structure, problem.rows(values, some), memory)
            tau[problem.index(some)] = rows.ravel()
    return Beliefs(log_z, tau)


@singledispatch
def solve(structure: Structure, scores: Array, memory: float) -> tuple[Array, Array]:
    """log Z and τ for every row of ``scores``. Register your own kind of structure here."""
    return over_rows(outcomes(structure), scores)


def over_rows(rows: Array, scores: Array) -> tuple[Array, Array]:
    """log Z and τ for every row of ``scores``, summed over the outcomes that are listed in rows."""
    if len(rows) == 0:
        raise Infeasible("no outcome respects the fixed coordinates")
    shut = np.isneginf(scores)
    total = np.where(shut, 0.0, scores) @ rows.T
    if shut.any():
        total[shut @ rows.T > 0] = -np.inf
    top = total.max(axis=1, keepdims=True)
    if np.isneginf(top).any():
        raise Infeasible("no outcome has a finite score")
    log_z = np.log(np.exp(total - top).sum(axis=1)) + top[:, 0]
    return log_z, np.exp(total - log_z[:, None]) @ rows


@solve.register
def _(structure: FactorGraph, scores: Array, memory: float) -> tuple[Array, Array]:
    if structure.is_forest:
        batch = Batch.of(structure, count=len(scores))
        found = ForwardBackward().many(batch, scores.ravel())
        return found.log_z, found.tau.reshape(scores.shape)
    shape, states = grids.sides(structure), int(structure.cards.max(initial=1))
    together = len(scores) > FEW and estimate(structure).seconds < SMALL
    if shape is None or together or not all(grids.safe(*shape, states, row) for row in scores):
        return eliminated(structure, scores, memory)
    each = [grids.grid_by_rows(*shape, states, row, memory) for row in scores]
    return np.array([log_z for log_z, _ in each]), np.array([tau for _, tau in each])


solve.register(BipartiteMatching, subsets.bipartite)
solve.register(Matching, subsets.general)


@solve.register
def _(structure: Paths, scores: Array, memory: float) -> tuple[Array, Array]:
    """One pass from the source and one from the sink. O(arcs) a row."""
    log_z, tau = np.empty(len(scores)), np.zeros_like(scores)
    path_marginals(graph_of(structure), len(scores), scores, tau, log_z)
    lost = np.flatnonzero(~np.isfinite(log_z))
    if len(lost):
        why = structure.impossible() or "no path has a finite score"
        raise Infeasible(f"example {lost[0]}: {why}")
    return log_z, tau


@kept
def graph_of(paths: Paths) -> Dag:
    """Return the graph as kernels take it."""
    ends, order = paths.arcs.ravel(), paths.usable
    return Dag(paths.n_nodes, paths.source, paths.sink, len(paths.arcs), len(order), ends, order)


@solve.register
def _(structure: Ising, scores: Array, memory: float) -> tuple[Array, Array]:
    """Labellings, of which those that are each other's flips are one."""
    graph = _agreeing(structure)
    tables = np.zeros((len(scores), structure.size, 4))
    tables[:, :, [0, 3]] = np.where(structure.fixed == 0, -np.inf, scores)[:, :, None]
    tables[:, structure.fixed == 1, 1:3] = -np.inf
    nodes = np.zeros((len(scores), 2 * structure.n))
    rows = np.concatenate([nodes, tables.reshape(len(scores), -1)], axis=1)
    log_z, tau = solve(graph, rows, memory)
    agree = tau[:, 2 * structure.n :].reshape(tables.shape)[:, :, [0, 3]].sum(axis=2)
    flips = int(structure.component.max(initial=-1)) + 1
    return log_z - flips * np.log(2.0), agree


@kept
def _agreeing(structure: Ising) -> FactorGraph:
    """The graph of an Ising model's nodes."""
    return FactorGraph([2] * structure.n, structure.edges)


@solve.register
def _(structure: RegionGraph, scores: Array, memory: float) -> tuple[Array, Array]:
    """Labellings: every region of several variables is a factor, the others are nodes' tables."""
    graph, places = _labelled(structure)
    table, fixed = structure.table_of, structure.fixed
    shut = (fixed == 0) | (np.isin(table, table[fixed == 1]) & (fixed != 1))
    rows = np.zeros((len(scores), graph.size))
    for row, score in zip(rows, scores, strict=True):
        np.add.at(row, places, np.where(shut, -np.inf, score))
    log_z, tau = solve(graph, rows, memory)
    return log_z, tau[:, places]


@kept
def _labelled(structure: RegionGraph) -> tuple[FactorGraph, Ints]:
    """The factor graph with the regions' tables, and where each coordinate is in it."""
    cards = structure.cards
    wide = {frozenset(region): region for region in structure.regions if len(region) > 1}
    graph = FactorGraph(cards, list(wide.values()))  # sepsets may repeat variables
    start = dict(zip(wide, graph.table_start[:-1].tolist(), strict=True))
    places = []
    for region in structure.regions:
        own = wide.get(frozenset(region), region)
        first = start.get(frozenset(region), graph.node_start[region[0]])
        table = np.arange(cards[list(own)].prod()).reshape(cards[list(own)])
        places.append(first + table.transpose([own.index(v) for v in region]).ravel())
    return graph, np.concatenate(places)


def outcomes(structure: Structure) -> Array:
    """Every vertex that respects the fixed coordinates, one per row; a ValueError for too many."""
    if not isinstance(structure, LISTABLE):
        raise ValueError(f"outcomes of a {type(structure).__name__} cannot be listed")
    rows: Any
    if isinstance(structure, FactorGraph):
        _refuse_large(two_to(float(np.log2(structure.cards).sum())), structure, "all labellings")
        rows = [structure.encode(states) for states in np.ndindex(*structure.cards)]
    elif isinstance(structure, Paths):
        rows = [structure.encode(path) for path in _paths(structure)]
    elif isinstance(structure, BipartiteMatching | Matching):
        _refuse_large(64.0, structure, "a list of matchings")
        alone, most = np.zeros(structure.n_nodes, dtype=bool), LARGEST // max(structure.size, 1)
        alone[structure.optional] = True
        ends = np.stack(structure.nodes_of(np.arange(structure.size)), axis=1)
        rows = _matchings(alone, ends, most)
    else:
        open_ = np.flatnonzero(structure.fixed < 0)
        _refuse_large(two_to(len(open_)), structure, "all 0/1 vectors")
        rows = np.tile(np.maximum(structure.fixed, 0).astype(float), (1 << len(open_), 1))
        rows[:, open_] = np.arange(1 << len(open_))[:, None] >> np.arange(len(open_)) & 1
    listed = np.asarray(rows, dtype=float).reshape(-1, structure.size)
    return listed[structure.contains(listed)]


def _refuse_large(count: float, structure: Structure, what: str) -> None:
    """A ValueError with the number, above what is worth listing."""
    if count * structure.size > LARGEST:
        numbers = f"{count * structure.size:.3g} entries of {what}"
        raise ValueError(f"{numbers}; exact inference stops at {LARGEST:.3g}")


def _paths(structure: Paths) -> Iterator[list[int]]:
    """All paths in lexicographic order, on a stack: they may be longer than recursion is deep."""
    stack: list[tuple[int, list[int]]] = [(structure.source, [])]
    while stack:
        node, path = stack.pop()
        if node == structure.sink:
            yield path
            continue
        for arc in np.flatnonzero(structure.arcs[:, 0] == node)[::-1].tolist():
            stack.append((int(structure.arcs[arc, 1]), [*path, arc]))


def matchings(n: int, edges: ArrayLike, *, perfect: bool = True, limit: int = 1 << 18) -> Array:
    """All (perfect) matchings of a general graph as 0/1 rows over its edges.

    Stops with a ValueError beyond ``limit`` of them.

    >>> len(matchings(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
    3
    """
    return _matchings(np.full(n, not perfect), np.asarray(edges, np.int64).reshape(-1, 2), limit)


def _matchings(alone: Marks, pairs: Ints, limit: int) -> Array:
    """All matchings of so many nodes, of which some may stay ``alone``."""
    n = len(alone)
    at: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(pairs.tolist()):
        at[i].append((e, j))
        at[j].append((e, i))
    found: list[list[int]] = []
    stack: list[tuple[int, int, list[int]]] = [(0, 0, [])]  # a node, bits of those taken, edges
    while stack:
        node, taken, chosen = stack.pop()
        while node < n and taken >> node & 1:
            node += 1
        if node == n:
            if len(found) >= limit:
                raise ValueError(f"the graph has more than {limit} matchings; too many to list")
            found.append(chosen)
            continue
        taken |= 1 << node
        if alone[node]:
            stack.append((node + 1, taken, chosen))
        for e, other in reversed(at[node]):
            if not taken >> other & 1:
                stack.append((node + 1, taken | 1 << other, [*chosen, e]))
    rows = np.zeros((len(found), len(pairs)))
    for row, chosen in zip(rows, found, strict=True):
        row[chosen] = 1.0
    return rows


@dataclass(frozen=True)
class ExactSums(Routine):
    """log Z and τ of paths, of junction forests of regions and of Ising forests.

    The tables of a junction forest are as large as those of elimination, so sums are in reach.
    """

    memory: float = MEMORY
    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> ExactSums | None:
        """Serve entropies that equal the outcomes' own."""
        return cls() if all(part.bound.kind == "exact" for part in entropy.parts) else None

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        """Compute log Z and marginals; there is nothing to keep for the next call."""
        return exact(batch, scores, memory=self.memory)
