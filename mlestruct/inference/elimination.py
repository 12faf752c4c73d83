"""Exact labelled graphs of small width: sum variables out one by one, then walk back.

An order of elimination, and what it would cost, is found before any number is summed. Summing
variable v out of the tables that hold it leaves a message over its neighbours S, and p(v | S) =
table / message. Those conditionals are numbers in [0, 1], so that everything on the way back
(marginals, samples) is free of logarithms, divisions and underflow.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.graph import FactorGraph

MEMORY = 2.0  # GiB that tables may take
CHUNK = 1 / 32  # GiB of tables of examples that are worked on together
HOPELESS = 45.0  # log2 of a table's entries at which the search for an order stops
NANOSECONDS = 30.0  # per table entry, both ways, measured on binary grids
NARROW = 8  # width up to which no other order than min-fill is tried
CROWDED = 24  # neighbours above which missing links are not counted any more
HUGE = 1e300  # where nothing is possible, in the place of infinities
AXES = 62  # NumPy's limit, less one for the examples
ADVICE = "raise it, or use marginals() for a surrogate with a certificate"


def two_to(power: float) -> float:
    """2 to this power, at most 2**1000: beyond 2**1023 Python raises and NumPy warns."""
    return float(2.0 ** min(power, 1000.0))


def refuse_memory(numbers: float, memory: float, what: str) -> None:
    """A ValueError with the size, above ``memory`` GiB."""
    gib = 8.0 * numbers / 2**30
    if gib > memory:
        raise ValueError(
            f"{what} would need {gib:.3g} GiB, the limit is memory={memory:g} GiB: {ADVICE}"
        )


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


class Clique(NamedTuple):
    """A variable to sum out and those it is then conditioned on, in the order they will be."""

    variable: int
    given: tuple[int, ...]
    shape: tuple[int, ...]  # numbers of states of the variable and of those given
    own: list[tuple[slice, tuple[int, ...], Any]]  # a table's entries, shape, and missing axes
    children: list[tuple[int, tuple[int, ...]]]  # cliques whose sums come here, with their shapes
    parent: int  # position of the clique that receives the sum; −1: none
    above: tuple[int, ...]  # the parent's axes that the sum does not have


class EliminationPlan(NamedTuple):
    """Cliques in elimination order, the states that are possible, and what is certain already."""

    cliques: list[Clique]
    states: list[Ints]  # the possible states of every variable
    entries: Ints  # the coordinates of all tables' entries, one table after the other
    certain: list[int]  # coordinates every outcome uses
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
    found = EliminationPlan([], states, np.zeros(0, dtype=np.int64), [], cost)
    if not complete:
        return found
    position = {v: i for i, v in enumerate(order)}
    for v, near in zip(order, given, strict=True):
        around = tuple(sorted(near, key=position.__getitem__))
        # A sum goes to the clique of the first of its variables to be summed out next.
        parent = position[around[0]] if around else -1
        shape = tuple(len(states[u]) for u in (v, *around))
        found.cliques.append(Clique(v, around, shape, [], [], parent, ()))
    for i, clique in enumerate(found.cliques):
        if clique.parent >= 0:
            other = found.cliques[clique.parent]
            axes, inside = (other.variable, *other.given), set(clique.given)
            shape = tuple(n if u in inside else 1 for u, n in zip(axes, other.shape, strict=True))
            other.children.append((i, shape))
            above = tuple(1 + k for k, u in enumerate(axes) if u not in inside)
            found.cliques[i] = clique._replace(above=above)
    entries, done = list[Ints](), 0
    scopes = [*([v] for v in range(graph.n_nodes)), *_scopes(graph)]
    starts = [*graph.node_start[:-1].tolist(), *graph.table_start[:-1].tolist()]
    for scope, first in zip(scopes, starts, strict=True):
        sizes = graph.cards[scope]
        whole = first + np.arange(sizes.prod()).reshape(tuple(sizes))
        place = np.squeeze(whole[np.ix_(*(states[v] for v in scope))])
        free = [v for v in scope if len(states[v]) > 1]
        if not free:
            found.certain.append(int(place))
            continue
        clique = found.cliques[min(position[v] for v in free)]
        axes = (clique.variable, *clique.given)
        entries.append(place.transpose(np.argsort([axes.index(v) for v in free])).ravel())
        own = tuple(n if u in free else 1 for u, n in zip(axes, clique.shape, strict=True))
        rest = tuple(1 + np.flatnonzero(np.equal(own, 1)))
        clique.own.append((slice(done, done + place.size), own, rest))
        done += place.size
    return found._replace(entries=np.concatenate([found.entries, *entries]))


def possible_states(graph: FactorGraph) -> list[Ints]:
    """Every variable's states that are not fixed away."""
    open_ = np.split(~graph.closed()[: graph.node_start[-1]], graph.node_start[1:-1])
    found = [np.flatnonzero(states) for states in open_[: graph.n_nodes]]
    for i, states in enumerate(found):
        if len(states) == 0:
            raise Infeasible(f"variable {i} has no possible state left")
    return found


def _scopes(graph: FactorGraph) -> list[list[int]]:
    parts = np.split(graph.scope, graph.scope_start[1:-1])
    return [part.tolist() for part in parts][: graph.n_factors]


class Order(NamedTuple):
    """Variables as they are summed out, and the neighbours each one then has."""

    variables: list[int]
    given: list[set[int]]
    complete: bool


@kept
def _best_order(graph: FactorGraph) -> tuple[Order, Estimate]:
    """The cheaper of min-fill and the variables as numbered.

    Min-fill breaks ties badly on large grids: width 35 on 24 × 24, where row by row needs 24.
    """
    states = possible_states(graph)
    near: dict[int, set[int]] = {v: set() for v, s in enumerate(states) if len(s) > 1}
    for scope in _scopes(graph):
        free = near.keys() & scope
        for v in free:
            near[v] |= free - {v}
    bits = np.log2([len(s) for s in states])
    found = [_summed_out(near, bits)]
    if found[0][1].width > NARROW:
        found.append(_summed_out(near, bits, numbered=True))
    return min(found, key=lambda one: (not one[1].complete, one[1].seconds))


def _summed_out(
    linked: dict[int, set[int]], bits: Array, numbered: bool = False
) -> tuple[Order, Estimate]:
    """Sum variables out as they are numbered, or that first whose neighbours need fewest new links.

    Ties are broken by the size of tables. The search ends where a table becomes hopeless.
    """

    def fill(v: int) -> tuple[float, float]:
        around, links = near[v], 0
        if numbered:
            return float(v), 0.0
        if len(around) <= CROWDED:  # beyond, counting costs more than it decides
            links = sum(len(around & near[u]) for u in around)
        missing = (len(around) * (len(around) - 1) - links) / 2
        return missing, float(sum(bits[u] for u in around))

    near, order, size, width = {v: set(u) for v, u in linked.items()}, Order([], [], True), 0.0, 0
    rank = {v: fill(v) for v in near}
    heap = [(key, v) for v, key in rank.items()]
    heapq.heapify(heap)
    while heap and order.complete:
        key, v = heapq.heappop(heap)
        if v not in near or key != rank[v]:
            continue
        around = near.pop(v)
        order.variables.append(v)
        order.given.append(around)
        for u in around:
            near[u].discard(v)
            near[u].update(around - {u})
        table = bits[v] + sum(bits[u] for u in around)
        size, width = size + two_to(table), max(width, len(around))
        if table > HOPELESS or len(around) >= AXES:
            order = order._replace(complete=False)
        for u in () if numbered else around.union(*(near[u] for u in around)):
            rank[u] = fill(u)
            heapq.heappush(heap, (rank[u], u))
    return order, Estimate(width, 8.0 * size / 2**30, NANOSECONDS * 1e-9 * size, order.complete)


def affordable(graph: FactorGraph, memory: float) -> EliminationPlan:
    """The plan, or a ValueError that says what it would have needed."""
    cost = estimate(graph)
    if not cost.complete or cost.gib > memory:
        raise ValueError(
            f"exact inference on this graph has {cost}; the limit is memory={memory:g} GiB: "
            f"{ADVICE}"
        )
    return plan(graph)


def eliminated(graph: FactorGraph, scores: Array, memory: float = MEMORY) -> tuple[Array, Array]:
    """log Z and all node and factor tables, for every row of ``scores``. O(Σ table sizes) a row.

    Refuses with width, GiB and seconds what needs more than ``memory``.
    """
    found = affordable(graph, memory)
    log_z, tau = np.empty(len(scores)), np.zeros_like(scores)
    tau[:, found.certain], tables = 1.0, np.empty((len(scores), len(found.entries)))
    for rows in _shares(found, len(scores)):
        log_z[rows], joint = _forward(graph, found, scores[rows], _sum_out)
        for clique, part in zip(found.cliques[::-1], joint[::-1], strict=True):
            if clique.parent >= 0:  # conditionals become joint tables, from the last to the first
                part *= np.add.reduce(joint[clique.parent], axis=clique.above)[:, None]
            for some, _, rest in clique.own:
                tables[rows, some] = np.add.reduce(part, axis=rest).reshape(len(part), -1)
    tau[:, found.entries] = tables
    return log_z, tau


def _shares(found: EliminationPlan, count: int) -> list[slice]:
    """Examples that are worked on together: tables of a size that caches like."""
    step = max(1, int(CHUNK / max(found.estimate.gib, 1e-9)))
    return [slice(start, start + step) for start in range(0, count, step)]


def _forward(
    graph: FactorGraph,
    todo: EliminationPlan,
    scores: Array,
    take_out: Callable[[Array], tuple[Array, Array]],
) -> tuple[Array, list[Array]]:
    """log Z, and what is kept of each clique's table: axes (example, variable, given…)."""
    values, count = np.where(graph.closed(), -np.inf, scores), len(scores)
    log_z, tables = values[:, todo.certain].sum(axis=1), values[:, todo.entries]
    messages: dict[int, Array] = {}
    known: list[Array] = []
    for i, clique in enumerate(todo.cliques):
        parts = [tables[:, some].reshape(count, *shape) for some, shape, _ in clique.own]
        parts += [messages.pop(k).reshape(count, *shape) for k, shape in clique.children]
        table, full = (
            reduce(np.add, sorted(parts, key=lambda part: part.size)),
            (count, *clique.shape),
        )
        table = table if table.shape == full else np.broadcast_to(table, full).copy()
        messages[i], whole = take_out(table)
        known.append(whole)
        if clique.parent < 0:
            log_z = log_z + messages.pop(i)
    if np.isneginf(log_z).any():
        why = graph.impossible() or "no labelling has a finite score"
        raise Infeasible(f"example {int(np.isneginf(log_z).argmax())}: {why}")
    return log_z, known


def _sum_out(table: Array) -> tuple[Array, Array]:
    """The message over the other axes; the table becomes p(variable | others) in place."""
    top = np.maximum.reduce(table, axis=1, keepdims=True)
    table -= np.maximum(top, -HUGE)
    np.exp(table, out=table)
    mass = np.maximum(np.add.reduce(table, axis=1, keepdims=True), 1.0 / HUGE)
    table /= mass
    message = np.log(mass, out=mass)
    message += top
    return message[:, 0], table


def best_states(graph: FactorGraph, scores: Array, memory: float = MEMORY) -> Ints:
    """The best labelling for every row of ``scores``: maxima in the place of sums."""
    todo = affordable(graph, memory)
    _, choices = _forward(graph, todo, scores, lambda t: (t.max(axis=1), t.argmax(axis=1)))
    chosen = np.zeros((len(todo.states), len(scores)), dtype=np.int64)
    row = np.arange(len(scores))
    for clique, choice in zip(todo.cliques[::-1], choices[::-1], strict=True):
        chosen[clique.variable] = choice[(row, *(chosen[v] for v in clique.given))]
    return np.stack([alive[chosen[v]] for v, alive in enumerate(todo.states)], axis=1)


def sample_states(graph: FactorGraph, scores: Array, count: int, rng: np.random.Generator) -> Ints:
    """``count`` independent exact labellings per row of ``scores``: (rows, count, variables)."""
    found = affordable(graph, MEMORY)
    states = np.empty((len(scores), count, graph.n_nodes), dtype=np.int64)
    for rows in _shares(found, len(scores)):
        _, conditionals = _forward(graph, found, scores[rows], _sum_out)
        row = np.arange(len(scores[rows]))[:, None]
        chosen = np.zeros((len(found.states), len(row), count), dtype=np.int64)
        for clique, conditional in zip(found.cliques[::-1], conditionals[::-1], strict=True):
            given = tuple(chosen[v] for v in clique.given)
            p = conditional[(row, slice(None), *given)] if given else conditional[:, None, :]
            ladder = np.cumsum(p, axis=-1)
            draw = rng.random((len(row), count, 1)) * ladder[..., -1:]
            chosen[clique.variable] = (draw >= ladder[..., :-1]).sum(axis=-1)
        for v, alive in enumerate(found.states):
            states[rows, :, v] = alive[chosen[v]]
    return states
