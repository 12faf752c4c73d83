"""An order in which to sum variables out, and what it would cost, before any number is summed."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.exact.common import two_to
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.graph import FactorGraph

HOPELESS = 45.0  # log2 of a table's entries at which the search for an order stops
NANOSECONDS = 30.0  # per table entry, both ways, measured on binary grids
NARROW = 8  # width up to which no other order than min-fill is tried
CROWDED = 24  # neighbours above which missing links are not counted any more
AXES = 62  # NumPy's limit, less one for the examples


@dataclass(frozen=True)
class Estimate:
    """Width (the largest number of variables a table conditions on), GiB and seconds an example.

    ``complete`` is False where the search stopped early: the numbers are then lower bounds of what
    its order would have needed.
    """

    width: int
    gib: float
    seconds: float
    complete: bool = True

    def __str__(self) -> str:
        least = "" if self.complete else "at least "
        return (
            f"width {least}{self.width}: {least}{self.gib:.3g} GiB "
            f"and {least}{self.seconds:.2g} s an example"
        )


class PossibleEntries(NamedTuple):
    """The possible entries of one node or factor: variables of two or more states, coordinates."""

    scope: tuple[int, ...]
    place: Ints


class Clique(NamedTuple):
    """A variable to sum out and those it is then conditioned on, in the order they will be."""

    variable: int
    given: tuple[int, ...]
    parent: int  # position of the clique that receives the sum; −1: none
    tables: tuple[PossibleEntries, ...]  # ``place`` already has one axis per variable of the clique
    children: tuple[int, ...]


class EliminationPlan(NamedTuple):
    """Cliques in elimination order, the states that are possible, and what is certain already."""

    cliques: tuple[Clique, ...]
    states: tuple[Ints, ...]  # the possible states of every variable
    certain: Ints  # coordinates every outcome uses
    estimate: Estimate


def estimate(graph: FactorGraph) -> Estimate:
    """What elimination would cost, found without summing anything.

    >>> from mlestruct.structures import grid
    >>> estimate(grid(4, 4)).width
    4
    """
    return _best_order(graph)[1]


@kept
def plan(graph: FactorGraph) -> EliminationPlan:
    """The order, and everything about tables that does not depend on scores."""
    states = possible_states(graph)
    (order, given, complete), cost = _best_order(graph)
    if not complete:
        return EliminationPlan((), states, np.zeros(0, dtype=np.int64), cost)
    position = {v: i for i, v in enumerate(order)}
    assigned: list[list[PossibleEntries]] = [[] for _ in order]
    certain = []
    for table in _tables(graph, states):
        if table.scope:
            assigned[min(position[v] for v in table.scope)].append(table)
        else:
            certain.append(int(table.place))
    cliques = _cliques(order, given, position, assigned)
    return EliminationPlan(cliques, states, np.array(certain, dtype=np.int64), cost)


def _cliques(
    order: list[int],
    given: list[tuple[int, ...]],
    position: dict[int, int],
    assigned: list[list[PossibleEntries]],
) -> tuple[Clique, ...]:
    """A sum goes to the clique of the first of its variables to be summed out next."""
    ranked = [tuple(sorted(around, key=position.__getitem__)) for around in given]
    parent = [position[around[0]] if around else -1 for around in ranked]
    children: list[list[int]] = [[] for _ in order]
    for i, p in enumerate(parent):
        if p >= 0:
            children[p].append(i)
    return tuple(
        Clique(
            v,
            ranked[i],
            parent[i],
            tuple(_aligned(table, (v, *ranked[i])) for table in assigned[i]),
            tuple(children[i]),
        )
        for i, v in enumerate(order)
    )


def possible_states(graph: FactorGraph) -> tuple[Ints, ...]:
    """Every variable's states that are not fixed away."""
    open_ = ~graph.closed()
    found = []
    for i in range(graph.n_nodes):
        states = np.flatnonzero(open_[graph.node_start[i] : graph.node_start[i + 1]])
        if len(states) == 0:
            raise Infeasible(f"variable {i} has no possible state left")
        found.append(states)
    return tuple(found)


def _tables(graph: FactorGraph, states: tuple[Ints, ...]) -> list[PossibleEntries]:
    """Node and factor tables without impossible states and certain variables."""
    found = []
    for i, alive in enumerate(states):
        found.append(
            PossibleEntries((i,) if len(alive) > 1 else (), np.squeeze(graph.node_start[i] + alive))
        )
    for f in range(graph.n_factors):
        scope = graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]].tolist()
        whole = np.arange(graph.table_start[f], graph.table_start[f + 1])
        part = whole.reshape(tuple(graph.cards[scope]))[np.ix_(*(states[v] for v in scope))]
        found.append(
            PossibleEntries(tuple(v for v in scope if len(states[v]) > 1), np.squeeze(part))
        )
    return found


def _aligned(table: PossibleEntries, clique: tuple[int, ...]) -> PossibleEntries:
    """The table with its axes in the clique's order, and axes of length one for the others."""
    axis = [clique.index(v) for v in table.scope]
    rank = np.argsort(axis)
    shape = np.ones(len(clique), dtype=int)
    shape[axis] = table.place.shape
    return PossibleEntries(table.scope, table.place.transpose(rank).reshape(tuple(shape)))


class Order(NamedTuple):
    """Variables as they are summed out, and the neighbours each one then has."""

    variables: list[int]
    given: list[tuple[int, ...]]
    complete: bool


@kept
def _best_order(graph: FactorGraph) -> tuple[Order, Estimate]:
    """The cheapest of min-fill, the variables as numbered, and narrow-band (Cuthill-McKee).

    Min-fill breaks ties badly on large grids: width 35 on 24 × 24, where row by row needs 24.
    """
    states = possible_states(graph)
    near = _neighbours(graph, states)
    bits = np.log2([len(s) for s in states])
    found = [_min_fill({v: set(u) for v, u in near.items()}, bits)]
    cost = [_cost(bits, found[0])]
    if cost[0].width > NARROW:
        for sequence in (sorted(near), _banded(near)):
            found.append(_in_sequence({v: set(u) for v, u in near.items()}, bits, sequence))
            cost.append(_cost(bits, found[-1]))
    k = min(range(len(found)), key=lambda k: (not cost[k].complete, cost[k].seconds))
    return found[k], cost[k]


def _neighbours(graph: FactorGraph, states: tuple[Ints, ...]) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {v: set() for v, s in enumerate(states) if len(s) > 1}
    for f in range(graph.n_factors):
        scope = graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]].tolist()
        free = [v for v in scope if v in near]
        for v in free:
            near[v].update(u for u in free if u != v)
    return near


def _banded(near: dict[int, set[int]]) -> list[int]:
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    names = sorted(near)
    place = {v: i for i, v in enumerate(names)}
    pairs = np.array([(place[v], place[u]) for v in names for u in near[v]]).reshape(-1, 2)
    shape = (len(names), len(names))
    graph = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)
    return [names[i] for i in reverse_cuthill_mckee(sp.csr_matrix(graph), symmetric_mode=True)]


def _sum_out(near: dict[int, set[int]], bits: Array, v: int, order: Order) -> tuple[set[int], bool]:
    """Record v with its neighbours and link those; whether it is still worth going on."""
    around = near.pop(v)
    order.variables.append(v)
    order.given.append(tuple(around))
    for u in around:
        near[u].discard(v)
        near[u].update(around - {u})
    small = bits[v] + sum(bits[u] for u in around) <= HOPELESS and len(around) < AXES
    return around, small


def _in_sequence(near: dict[int, set[int]], bits: Array, sequence: list[int]) -> Order:
    order = Order([], [], True)
    for v in sequence:
        if not _sum_out(near, bits, v, order)[1]:
            return order._replace(complete=False)
    return order


def _min_fill(near: dict[int, set[int]], bits: Array) -> Order:
    """Sum out the variable whose neighbours need the fewest new links, ties by table size."""
    order = Order([], [], True)
    rank = {v: _fill(v, near, bits) for v in near}
    heap = [(*r, v) for v, r in rank.items()]
    heapq.heapify(heap)
    while heap:
        *seen, v = heapq.heappop(heap)
        if v not in near or tuple(seen) != rank[v]:
            continue
        around, small = _sum_out(near, bits, v, order)
        if not small:
            return order._replace(complete=False)
        for u in around.union(*(near[u] for u in around)):
            rank[u] = _fill(u, near, bits)
            heapq.heappush(heap, (*rank[u], u))
    return order


def _fill(v: int, near: dict[int, set[int]], bits: Array) -> tuple[float, float]:
    around = near[v]
    linked = 0
    if len(around) <= CROWDED:  # beyond, counting costs more than it decides
        linked = sum(len(around & near[u]) for u in around)
    missing = (len(around) * (len(around) - 1) - linked) / 2
    return missing, float(sum(bits[u] for u in around))


def _cost(bits: Array, order: Order) -> Estimate:
    sizes = [two_to(bits[v] + bits[list(g)].sum()) for v, g in zip(*order[:2], strict=True)]
    width = max((len(g) for g in order.given), default=0)
    total = sum(sizes)
    return Estimate(width, 8.0 * total / 2**30, NANOSECONDS * 1e-9 * total, order.complete)
