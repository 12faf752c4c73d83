"""Exact log Z and marginals of any structure, by the cheapest way that its kind has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct import limits
from mlestruct.errors import Infeasible
from mlestruct.inference.elimination import MEMORY, eliminated, refuse_memory, two_to
from mlestruct.inference.forests import ForwardBackward
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.lazy import getter
from mlestruct.native._door import (
    Dag,
    PlaceWeights,
    path_marginals,
    sum_pairs,
    sum_sets_by_items,
    sum_sets_by_rows,
)
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
from mlestruct.structures.batch import Batch, as_scores
from mlestruct.structures.entropy import Entropy

__getattr__ = getter(__name__, {})

LARGEST = 1 << 24  # numbers in one listing
MET = 1e-9  # of a constraint's ends
EIGHT = 8  # examples between two looks at the clock
LISTABLE = FactorGraph | BipartiteMatching | Matching | Paths | BMatching | Flow


def exact(problem: Batch[Any] | Structure, scores: ArrayLike, *, memory: float = MEMORY) -> Beliefs:
    """log Σ exp⟨score, v⟩ over all outcomes v, and E[v]; or a ValueError with what it would take.

    For one structure, or for a batch (log Z per example, τ flat). Forests and paths: O(size).
    Other labelled graphs: elimination in min-fill order, O(Σ tables).
    Region graphs likewise.
    Matchings: subsets of nodes, of the cheaper side if bipartite. B-matchings, flows: listed, up
    to some 500,000. ``memory`` is in GiB. A score of −inf forbids its coordinate.

    >>> exact(FactorGraph([2], []), [0.0, 0.0]).tau.tolist()
    [0.5, 0.5]
    """
    values = as_scores(problem, scores)
    if isinstance(problem, Structure):
        one, point = solve(problem, values[None], memory)
        return Beliefs(float(one[0]), point[0])
    log_z, tau = np.empty(len(problem)), np.empty(problem.size)
    for structure, members in problem.groups():
        for part in limits.parts(len(members), EIGHT):
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
    return eliminated(structure, scores, memory)


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
    """Every vertex that respects the fixed coordinates, one per row; a ValueError for too many.

    Coordinate after coordinate, as long as every constraint can still be met.

    >>> len(outcomes(Matching(4)))
    3
    """
    stated = structure.stated
    if not isinstance(structure, LISTABLE) or stated is None:
        raise ValueError(f"outcomes of a {type(structure).__name__} cannot be listed")
    A, steps = stated.A.tocsc(), list[tuple[Ints, Array]]()
    least, most = (np.asarray(part.sum(axis=1)).ravel() for part in (A.minimum(0), A.maximum(0)))
    reached = np.zeros((1, len(least)))
    for k in range(structure.size):
        here = slice(A.indptr[k], A.indptr[k + 1])
        at, weight = A.indices[here], A.data[here]
        least[at] -= np.minimum(weight, 0.0)
        most[at] -= np.maximum(weight, 0.0)
        known = [v for v in (1.0, 0.0) if structure.fixed[k] in (-1, v)]
        parent, value = np.repeat(np.arange(len(reached)), len(known)), np.tile(known, len(reached))
        now = reached[parent][:, at] + np.outer(value, weight)
        met = (now + most[at] >= stated.lo[at] - MET) & (now + least[at] <= stated.hi[at] + MET)
        whole = met.all(axis=1)
        parent, value, reached = parent[whole], value[whole], reached[parent[whole]]
        reached[:, at] = now[whole]
        steps.append((parent, value))
        if len(parent) * structure.size > LARGEST:
            raise ValueError(
                f"more than {len(parent)} outcomes of {structure.size} numbers are too many to "
                f"list; exact inference stops at {LARGEST:.3g} numbers"
            )
    listed, row = np.empty((len(reached), structure.size)), np.arange(len(reached))
    for k, (parent, value) in reversed(list(enumerate(steps))):
        listed[:, k], row = value[row], parent[row]
    return listed[structure.contains(listed)]


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


# Matchings of up to some twenty nodes a side are summed over subsets of nodes. Products of e^score
# are summed as they are, where no weight exceeds 1: twenty times faster than in logarithms, which
# serve general graphs whose outcomes are all so improbable by those weights that products vanish.
# Ryser's formula takes as long (2ⁿ·n) but subtracts: on 20 × 20 it loses ten digits.

Sums = tuple[Array, Array]  # log Z and τ of every row of scores
Prices = tuple[Array, Array, Array]  # of every row's items and places, and what they come to
VANISHING = 1e-100  # of a sum of products that none exceeds 1: below it logarithms are summed


@solve.register(BipartiteMatching)
def bipartite(structure: BipartiteMatching, scores: Array, memory: float) -> Sums:
    """Subsets of the cheaper side; 20 × 20: .03 s perfect, .9 s partial, two-sided memory."""
    rows, columns = structure.shape
    closed = _closed(structure.fixed, scores).reshape(-1, rows, columns)
    if structure.kind != "partial" and rows * two_to(columns) <= columns**2 * two_to(rows):
        refuse_memory(2.2 * two_to(columns), memory, f"sums over the sets of {columns} columns")
        nobody, full = np.full(rows, -np.inf), structure.kind == "perfect"
        return _found(structure, *_sums(closed, nobody, full, by_rows=True))
    flip = columns > rows
    tables = np.ascontiguousarray(closed.transpose(0, 2, 1) if flip else closed)
    items, places = tables.shape[1:]
    refuse_memory((items + 3) * two_to(places), memory, f"sums over the sets of {places} places")
    must = (structure.fixed.reshape(structure.shape) == 1).any(axis=int(not flip))
    alone, full = np.where(must, -np.inf, 0.0), structure.kind == "one_sided"
    log_z, tau = _sums(tables, alone, full, by_rows=False)
    return _found(structure, log_z, tau.transpose(0, 2, 1) if flip else tau)


@solve.register(Matching)
def general(structure: Matching, scores: Array, memory: float) -> Sums:
    """The lowest unmatched node chooses, over all 2ⁿ sets of nodes left: n = 20 takes .03 s."""
    n = structure.n_nodes
    refuse_memory(2.0 * two_to(n), memory, f"sums over the sets of {n} nodes")
    tables = np.full((len(scores), n, n), -np.inf)
    low, high = np.sort(structure.ends, axis=1).T
    tables[:, low, high] = _closed(structure.fixed, scores)
    alone = np.full(n, 0.0 if structure.kind == "partial" else -np.inf)
    alone[structure.ends[structure.fixed == 1]] = -np.inf
    log_z, tau = _pairs(tables, alone)
    return _found(structure, log_z, tau[:, low, high])


def _sums(scores: Array, alone: Array, full: bool, by_rows: bool) -> Sums:
    """log Z and τ of weights e^score less prices: each item's best, else those of an assignment.

    By the first all products may vanish; by the others that of the best matching is 1.
    """
    item, place = _top(np.maximum(alone, scores.max(axis=2))), np.zeros(scores.shape[::2])
    total = item.sum(axis=1)
    log_z, tau = _priced(scores, alone, full, by_rows, (item, place, total))
    for m in np.flatnonzero(~(log_z > np.log(VANISHING) + total)):
        log_z[m], prices = -np.inf, _prices(scores[m], alone, full)
        if prices is not None:
            log_z[[m]], tau[[m]] = _priced(scores[[m]], alone, full, by_rows, prices)
    return log_z, tau


def _priced(scores: Array, alone: Array, full: bool, by_rows: bool, prices: Prices) -> Sums:
    item, place, total = prices
    weights, own = np.exp(scores - item[:, :, None] - place[:, None]), np.exp(alone - item)
    z, tau, (count, items, places) = np.empty(len(weights)), np.empty(weights.shape), weights.shape
    given = PlaceWeights(count, items, places, weights, own, np.exp(-place), full)
    (sum_sets_by_rows if by_rows else sum_sets_by_items)(given, z, tau)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(z) + total, tau / z[:, None, None]


def _prices(score: Array, alone: Array, full: bool) -> Prices | None:
    """Prices that no pair and nobody alone is worth more than, and their sum; None: no matching.

    The best matching is worth just these: they are the duals of an assignment in which everybody
    may take a stand-in of their own, and stand-ins each other.
    """
    from scipy.optimize import linear_sum_assignment

    items, places = score.shape
    worth = np.full((items + places, items + places), -np.inf)
    worth[:items, :places], worth[items:, places:] = score, 0.0
    np.fill_diagonal(worth[:items, places:], alone)
    np.fill_diagonal(worth[items:, :places], -np.inf if full else 0.0)
    try:
        row, column = linear_sum_assignment(worth, maximize=True)
    except ValueError:
        return None
    price, own = np.zeros(len(worth)), worth[row, column]
    for _ in row:
        least = (worth + (price[column] - own)[:, None]).max(axis=0)
        if (least <= price).all():
            break
        price = np.maximum(price, least)
    other = own - price[column]
    found = other[:items] + price[places:], price[:places] + other[items:], own.sum()
    return found[0][None], found[1][None], found[2][None]


def _pairs(scores: Array, alone: Array) -> Sums:
    """Of a pair's score half is each node's, so that no weight exceeds 1."""
    pairs = np.maximum(scores.max(axis=1), scores.max(axis=2))
    top = _top(np.maximum(alone, pairs / 2.0))
    weights, z = np.exp(scores - top[:, :, None] - top[:, None]), np.empty(len(scores))
    tau = np.empty(weights.shape)
    sum_pairs(len(weights), weights.shape[1], weights, np.exp(alone - top), z, tau)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_z, tau = np.log(z) + top.sum(axis=1), tau / z[:, None, None]
    for m in np.flatnonzero(~(z > VANISHING)):
        tau[m] = 0.0
        log_z[m] = _pairs_in_logarithms(scores[m], alone, tau[m])
    return log_z, tau


def _top(score: Array) -> Array:
    """Best scores; whoever has no choice at all keeps none."""
    return np.where(np.isfinite(score), score, 0.0)


def _closed(fixed: ArrayLike, score: Array) -> Array:
    return np.where(np.asarray(fixed) == 0, -np.inf, score)


def _found(structure: BipartiteMatching | Matching, log_z: Array, tau: Array) -> Sums:
    if not np.isfinite(log_z).all():
        raise Infeasible(structure.impossible() or "no matching has a finite score")
    return log_z, np.minimum(tau, 1.0).reshape(len(tau), -1)


def _pairs_in_logarithms(score: Array, alone: Array, tau: Array) -> float:
    """log Z and τ of one graph by sums of logarithms. O(2ⁿ · n), by arrays."""
    n = len(score)
    inside, outside = np.full(1 << n, -np.inf), np.full(1 << n, -np.inf)
    inside[0] = outside[-1] = 0.0
    for i in range(n):
        rest, left = inside[: 1 << i], inside[1 << i : 2 << i]
        left[:] = rest + alone[i]
        for j in range(i):
            at = left.reshape(-1, 2, 1 << j)[:, 1]
            np.logaddexp(at, rest.reshape(-1, 2, 1 << j)[:, 0] + score[j, i], out=at)
    log_z = float(inside[-1])
    for i in range(n if log_z > -np.inf else 0)[::-1]:
        rest, left = outside[: 1 << i], outside[1 << i : 2 << i]
        np.logaddexp(rest, left + alone[i], out=rest)
        for j in range(i):
            given = left.reshape(-1, 2, 1 << j)[:, 1] + score[j, i]
            without = inside[: 1 << i].reshape(-1, 2, 1 << j)[:, 0]
            at = rest.reshape(-1, 2, 1 << j)[:, 0]
            np.logaddexp(at, given, out=at)
            tau[j, i] = np.exp(without + given - log_z).sum()
    return log_z
