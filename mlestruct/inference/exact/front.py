"""Exact inference on any structure, by the cheapest routine that its kind has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from mlestruct import limits
from mlestruct.inference.exact import elimination, grids, matching, paths
from mlestruct.inference.exact.common import MEMORY, Exact, over_rows, refuse_large, two_to
from mlestruct.inference.exact.enumeration import outcomes
from mlestruct.inference.exact.kasteleyn import kasteleyn
from mlestruct.inference.exact.treewidth import estimate
from mlestruct.inference.graph.forward_backward import ForwardBackward
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.inference.scores import as_scores
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
from mlestruct.structures.base import Array, Ints, Structure, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

PFAFFIAN = 0.05  # seconds of elimination above which a Pfaffian is faster
DOUBT = 1e-9  # of the Pfaffian's probabilities, above which elimination is asked after all
FEW, SMALL = 4, 0.01  # more examples of small grids are quicker eliminated side by side
LISTABLE = 20  # coordinates of a structure known by its constraints alone


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
    to 20 coordinates. ``memory`` is in GiB. A score of −inf forbids its coordinate.

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


@solve.register
def _(structure: FactorGraph, scores: Array, memory: float) -> tuple[Array, Array]:
    if structure.is_forest:
        batch = Batch.of(structure, count=len(scores))
        found = ForwardBackward().many(batch, scores.ravel())
        return found.log_z, found.tau.reshape(scores.shape)
    shape = grids.sides(structure)
    states = int(structure.cards.max(initial=1))
    together = len(scores) > FEW and estimate(structure).seconds < SMALL
    if shape is None or together or not all(grids.safe(*shape, states, row) for row in scores):
        return elimination.marginals(structure, scores, memory)
    return _each([grids.grid_by_rows(*shape, states, row, memory) for row in scores])


solve.register(BipartiteMatching, matching.bipartite)
solve.register(Matching, matching.general)


@solve.register
def _(structure: Paths, scores: Array, memory: float) -> tuple[Array, Array]:
    return paths.marginals(structure, scores)


@solve.register
def _(structure: Ising, scores: Array, memory: float) -> tuple[Array, Array]:
    """Labellings up to flips: eliminated, or a Pfaffian where that is wide and planar."""
    graph = _agreeing(structure)
    free = (structure.fixed < 0).all() and np.isfinite(scores).all()
    if free and estimate(graph).seconds > PFAFFIAN and _planar(structure):
        found = [kasteleyn(structure, row) for row in scores]
        if max(f.doubt for f in found) <= DOUBT:
            return np.array([f.log_z for f in found]), np.array([f.agree for f in found])
    tables = np.zeros((len(scores), structure.size, 4))
    tables[:, :, [0, 3]] = np.where(structure.fixed == 0, -np.inf, scores)[:, :, None]
    tables[:, structure.fixed == 1, 1:3] = -np.inf
    nodes = np.zeros((len(scores), 2 * structure.n))
    rows = np.concatenate([nodes, tables.reshape(len(scores), -1)], axis=1)
    log_z, tau = solve(graph, rows, memory)
    agree = tau[:, 2 * structure.n :].reshape(tables.shape)[:, :, [0, 3]].sum(axis=2)
    flips = int(structure.component.max(initial=-1)) + 1
    return log_z - flips * np.log(2.0), agree


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


@kept
def _agreeing(structure: Ising) -> FactorGraph:
    """The graph of an Ising model's nodes."""
    return FactorGraph([2] * structure.n, structure.edges)


def _planar(structure: Ising) -> bool:
    import networkx as nx

    return bool(nx.check_planarity(nx.Graph(structure.edges.tolist()))[0])


@solve.register(BMatching)
@solve.register(Flow)
def _(structure: Structure, scores: Array, memory: float) -> tuple[Array, Array]:
    """By trying every 0/1 vector: those that meet the stated constraints are the outcomes."""
    open_ = np.flatnonzero(structure.fixed < 0)
    refuse_large(two_to(len(open_)) * LISTABLE, "0/1 entries of all vectors")
    rows = np.tile(np.maximum(structure.fixed, 0).astype(float), (1 << len(open_), 1))
    rows[:, open_] = np.arange(1 << len(open_))[:, None] >> np.arange(len(open_)) & 1
    return over_rows(rows[structure.contains(rows)], scores)


def _each(found: list[Exact]) -> tuple[Array, Array]:
    return np.array([f.log_z for f in found]), np.array([f.tau for f in found])


@dataclass(frozen=True)
class ExactSums(Routine):
    """log Z and τ of junction forests of regions and of Ising forests, by elimination.

    The tables of a junction forest are as large as those of elimination, so sums are in reach.
    """

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> ExactSums | None:
        """Serve entropies that equal the outcomes' own."""
        return cls() if entropy.bound.kind == "exact" else None

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        """Compute log Z and marginals; there is nothing to keep for the next call."""
        from mlestruct.inference.exact import exact

        return exact(batch, scores)
