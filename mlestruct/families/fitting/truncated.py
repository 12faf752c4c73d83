"""T iterations of messages: beliefs, and the exact gradient of any loss of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from mlestruct import Batch, FactorGraph
from mlestruct.errors import Unserved
from mlestruct.inference.layouts import plan
from mlestruct.native._door import (
    MessageGraph,
    TruncatedOrder,
    TruncatedRun,
    send_truncated,
    unsend_truncated,
)
from mlestruct.structures.base import Array, Ints, as_numbers, kept
from mlestruct.structures.entropy import Rho, counting_numbers
from mlestruct.structures.graph import only_graphs

LANES = 8  # examples that run side by side


class Sweep(NamedTuple):
    """One iteration: factors of one group read the same state, then all send at once."""

    group: Ints
    """Visits group[g]:group[g + 1] form group g."""
    factor: Ints


Order = Callable[[FactorGraph], Sweep]


def one_by_one(factors: Sequence[int] | Ints) -> Sweep:
    """Each visit a group of its own."""
    return Sweep(np.arange(len(factors) + 1), np.asarray(factors, dtype=np.int64))


def there_and_back(graph: FactorGraph) -> Sweep:
    """On a grid: vertical factors in raster order, horizontal ones, then exactly the reverse.

    On other graphs factors whose variables lie farthest apart come first.
    """
    first = np.minimum.reduceat(graph.scope, graph.scope_start[:-1])
    last = np.maximum.reduceat(graph.scope, graph.scope_start[:-1])
    order = np.lexsort((first, first - last))
    return one_by_one(np.concatenate([order, order[::-1]]))


def flooding(graph: FactorGraph) -> Sweep:
    """All factors at once."""
    return Sweep(np.array([0, graph.n_factors]), np.arange(graph.n_factors))


class CompiledGraph(NamedTuple):
    """One graph, compiled for truncated iterations."""

    kernel: MessageGraph
    order: TruncatedOrder
    start: Ints
    """Where every table begins, of nodes, then of factors."""
    table_of: Ints
    counts: Array
    """The counting number of every entry of a factor's table, as a column."""
    whole: Array
    """c_i + Σ c_α around the node of every node's entry, as a column."""
    home: Ints
    """Every slot's states among those of nodes."""
    agree: sp.csr_array
    """Which states of slots every entry of a factor's table has."""
    scatter: sp.csr_array
    """Which slots' states are a node's, as sums over them."""


@kept
def compiled(graph: FactorGraph, numbers: bytes, order: Order) -> CompiledGraph:
    """For counting numbers that are positive on factors."""
    only_graphs([graph], "truncated inference")
    if (graph.fixed >= 0).any():
        k = int(np.argmax(graph.fixed >= 0))
        raise Unserved(f"coordinate {k} is fixed; truncated inference takes free graphs only")
    counting = np.frombuffer(numbers)
    if (counting[graph.n_nodes :] <= 0).any():
        f = int(np.argmin(counting[graph.n_nodes :]))
        number = counting[graph.n_nodes + f]
        raise Unserved(f"factor {f} counts {number:g}; messages need it positive")
    n, scope = graph.n_nodes, graph.scope
    kernel, sweep = plan(graph, counting), order(graph)
    place, counts, whole = kernel.place, kernel.counts, kernel.whole
    width = np.diff(place[graph.scope_start])
    entry, node, slot = graph.below
    sent = place[slot] + node - graph.node_start[scope[slot]]
    tape = np.append(0, np.cumsum(width[sweep.factor]))
    visits = len(sweep.factor), len(sweep.group) - 1, graph.n_factors
    turns = TruncatedOrder(*visits, sweep.group, sweep.factor, tape)
    nodes, states = int(graph.node_start[-1]), np.arange(place[-1])
    home = states + np.repeat(graph.node_start[scope] - place[:-1], np.diff(place))
    tables, over = (graph.size - nodes, len(states)), (nodes, len(states))
    return CompiledGraph(
        kernel,
        turns,
        np.concatenate([graph.node_start[:-1], graph.table_start[:-1]]),
        graph.table_of,
        counts[graph.table_of[nodes:] - n][:, None],
        np.repeat(whole, graph.cards)[:, None],
        home,
        sp.csr_array((np.ones(len(sent)), (entry - nodes, sent)), tables),
        sp.csr_array((np.ones(len(states)), (home, states)), over),
    )


class Run(Protocol):
    """Beliefs of some examples after T iterations, one row each, and the way back.

    Interface: ``tau``; ``pull(slope)``, slopes by log-beliefs → slopes by scores, (sets × examples
    × coordinates). Where factors were not asked for, their part of both is 0.
    """

    tau: Array

    def pull(self, slope: Array) -> Array: ...


class Iteration(Protocol):
    """An iteration that can be cut short.

    Interface: ``run(graph, scores, iterations, whole)`` → :class:`Run`; ``scores`` (sets ×
    examples × coordinates) has a set per iteration, the last serving all that follow;
    ``whole`` asks for factor beliefs too.
    """

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run: ...


@dataclass(frozen=True)
class Messages:
    """Sum-product with counting numbers ρ (1: belief propagation), from messages 1.

    ``order`` makes one iteration's :class:`Sweep`.
    """

    rho: Rho = 1.0
    order: Order = there_and_back

    def run(self, graph: FactorGraph, scores: Array, iterations: int, whole: bool) -> Run:
        only_graphs([graph], "truncated inference")
        ready = compiled(graph, counting_numbers(graph, self.rho).tobytes(), self.order)
        return MessageRun(ready, as_numbers(scores, "scores"), iterations, whole)


class MessageRun:
    """Messages on graphs of any order, cards and counting numbers."""

    def __init__(self, ready: CompiledGraph, scores: Array, iterations: int, whole: bool) -> None:
        self.ready, self.whole, self.count = ready, whole, scores.shape[1]
        self.scores = side_by_side(scores)
        sets, size, lanes = self.scores.shape
        graph, nodes = ready.kernel, len(ready.whole)
        self.last = min(max(iterations, 1), sets) - 1
        top = np.maximum.reduceat(self.scores, ready.start, axis=1)
        less = self.scores - top[:, ready.table_of]
        table = np.zeros_like(less)
        np.exp(less[:, nodes:] / ready.counts, out=table[:, nodes:])
        belief, message = less[0, :nodes] / ready.whole, np.zeros((len(ready.home), lanes))
        width = int(ready.order.tape[-1])
        near, sums = np.empty((2, iterations, width, lanes))
        self.tape = TruncatedRun(sets, size, iterations, width, self.scores, table, near, sums)
        send_truncated(graph, ready.order, self.tape, belief, message)
        tau = np.zeros((size, lanes))
        tau[:nodes] = normalised(belief, graph.node_start)
        if whole and graph.factors:
            inside = ready.agree @ (belief[ready.home] - message)
            inside += self.scores[self.last, nodes:] / ready.counts
            tau[nodes:] = normalised(inside, graph.table_start - nodes)
        self.tau = np.ascontiguousarray(tau[:, : self.count].T)

    def pull(self, slope: Array) -> Array:
        ready, out = self.ready, np.zeros_like(self.scores)
        nodes = len(ready.whole)
        _, size, lanes = self.scores.shape
        used, tables = (size, None) if self.whole else (nodes, ready.kernel.nodes)
        held = np.add.reduceat(slope[:, :used], ready.start[:tables], axis=1)
        change = np.zeros((size, lanes))
        some = slope[:, :used] - self.tau[:, :used] * held[:, ready.table_of[:used]]
        change[:used, : self.count] = some.T
        belief, message = change[:nodes].copy(), np.zeros((len(ready.home), lanes))
        if self.whole and ready.kernel.factors:
            inside = change[nodes:]
            out[self.last, nodes:] = inside / ready.counts
            message = -(ready.agree.T @ inside)
            belief -= ready.scatter @ message
        unsend_truncated(ready.kernel, ready.order, self.tape, belief, message, out)
        out[0, :nodes] += belief / ready.whole
        return out[:, :, : self.count].transpose(0, 2, 1)


def normalised(x: Array, start: Ints) -> Array:
    """exp x, each table summing to 1."""
    sizes = np.diff(start)
    chance = np.exp(x - np.repeat(np.maximum.reduceat(x, start[:-1]), sizes, axis=0))
    chance /= np.repeat(np.add.reduceat(chance, start[:-1]), sizes, axis=0)
    return np.asarray(chance)


def side_by_side(scores: Array) -> Array:
    """(sets × coordinates × lanes), the last example filling those left."""
    count = scores.shape[1]
    if count > LANES:
        raise ValueError(f"{count} examples at once; truncated inference runs {LANES} together")
    lanes = np.minimum(np.arange(LANES), count - 1)
    return np.ascontiguousarray(scores[:, lanes].transpose(0, 2, 1))


def groups(batch: Batch[Any]) -> Iterator[tuple[Any, Ints]]:
    """Structures with at most ``LANES`` of their examples."""
    for structure, members in batch.groups():
        for first in range(0, len(members), LANES):
            yield structure, members[first : first + LANES]


def rows(batch: Batch[Any], sets: Sequence[Array], members: Ints) -> Array:
    """(sets × examples × coordinates) of flat scores."""
    return np.stack([batch.rows(scores, members) for scores in sets])


def beliefs(
    batch: Batch[Any], sets: Sequence[Array], method: Iteration, iterations: int, whole: bool = True
) -> Array:
    """What the iterations believe; a set of scores per iteration, the last for all that follow."""
    tau = np.empty(batch.size)
    for structure, members in groups(batch):
        run = method.run(structure, rows(batch, sets, members), iterations, whole)
        tau[batch.index(members)] = run.tau.ravel()
    return tau
