"""What a method ran: beliefs after T iterations, and their adjoints back over the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlestruct.families.fitting.truncated.compiled import CompiledGraph
from mlestruct.native._door import (
    TruncatedRun,
    begin_truncated,
    normalise_tables,
    send_truncated,
    sweep_truncated,
    unsend_truncated,
    unsweep_truncated,
)
from mlestruct.structures.base import Array, Ints

LANES = 8  # examples that run side by side
MEMORY = 1 << 22  # numbers a tape may hold before states are kept at intervals instead

State = tuple[Array, ...]
Steps = Callable[[int, int, State, Any], None]


class Tape:
    """Runs ``forward(begin, end, state, tape)`` and, for adjoints, ``backward`` over the same.

    Where all T steps do not fit, the state is copied every ``length`` steps and the steps between
    are done again on the way back: one more forward pass, √T memory.
    """

    def __init__(self, steps: int, numbers: int, room: Callable[[int], Any]) -> None:
        fits = max(1, MEMORY // max(numbers, 1))
        self.steps = steps
        self.length = max(1, steps if steps <= fits else min(fits, round(steps**0.5)))
        self.tape = room(self.length)
        self.kept: list[State] = []

    def run(self, forward: Steps, state: State) -> None:
        """All steps; ``state`` is changed in place."""
        self.kept = []
        for begin in range(0, self.steps, self.length):
            self.kept.append(tuple(part.copy() for part in state))
            forward(begin, min(begin + self.length, self.steps), state, self.tape)

    def back(self, forward: Steps, backward: Steps, adjoint: State) -> None:
        """Adjoints of the last state become those of the first, in place."""
        for number in range(len(self.kept) - 1, -1, -1):
            begin = number * self.length
            end = min(begin + self.length, self.steps)
            if number < len(self.kept) - 1:
                forward(begin, end, self.kept[number], self.tape)
            backward(begin, end, adjoint, self.tape)


class MessageRun:
    """Any order, cards and counting numbers; ``linear`` where the state is exponentiated."""

    def __init__(self, ready: CompiledGraph, scores: Array, iterations: int, whole: bool) -> None:
        self.ready, self.whole, self.count = ready, whole, scores.shape[1]
        self.scores = side_by_side(scores)
        sets, size, lanes = self.scores.shape
        graph, nodes = ready.kernel, len(ready.whole)
        self.last = min(max(iterations, 1), sets) - 1
        table, reach = np.empty_like(self.scores), np.empty((graph.nodes, lanes))
        state: State = np.empty((nodes, lanes)), np.zeros((len(ready.home), lanes))
        fits = begin_truncated(graph, sets, lanes, self.scores, table, state[0], reach)
        self.linear = linear = ready.bethe and fits
        state = tuple(np.exp(part) for part in state) if linear else state
        width = int(graph.tape[-1])

        def room(length: int) -> TruncatedRun:
            near, sums = np.empty((2, length, width, lanes))
            return TruncatedRun(lanes, sets, size, length, width, self.scores, table, near, sums)

        self.tape = Tape(iterations, 2 * lanes * width, room)
        self.tape.run(self._forward, state)
        belief, message = (np.log(part) for part in state) if linear else state
        tau = np.zeros((size, lanes))
        tau[:nodes] = normalised(belief, graph.node_start)
        if whole and graph.factors:
            inside = np.add.reduceat(belief[ready.node] - message[ready.sent], ready.first)
            inside += self.scores[self.last, nodes:] / ready.counts
            tau[nodes:] = normalised(inside, graph.table_start - nodes)
        self.tau = np.ascontiguousarray(tau[:, : self.count].T)

    def _forward(self, begin: int, end: int, state: State, tape: Any) -> None:
        send_truncated(self.ready.kernel, tape, self.linear, begin, end, *state)

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
            message = -np.add.reduceat(inside[ready.entry], ready.sent_first)
            np.subtract.at(belief, ready.home, message)

        def backward(begin: int, end: int, state: State, tape: Any) -> None:
            belief, message = state
            unsend_truncated(ready.kernel, tape, begin, end, belief, message, out)

        self.tape.back(self._forward, backward, (belief, message))
        out[0, :nodes] += belief / ready.whole
        return out[:, :, : self.count].transpose(0, 2, 1)


class FieldRun:
    """Mean field of any order and cards."""

    def __init__(self, ready: CompiledGraph, scores: Array, iterations: int, whole: bool) -> None:
        self.ready, self.whole, self.count = ready, whole, scores.shape[1]
        self.scores = side_by_side(scores)
        sets, size, lanes = self.scores.shape
        nodes = len(ready.whole)
        self.q = normalised(np.zeros((nodes, lanes)), ready.kernel.node_start)

        def room(length: int) -> TruncatedRun:
            tape = np.empty((length, nodes, lanes))
            return TruncatedRun(lanes, sets, size, length, nodes, self.scores, None, tape, None)

        self.tape = Tape(iterations, lanes * nodes, room)
        self.tape.run(self._forward, (self.q,))
        self.tau = np.zeros((self.count, size))
        self.tau[:, :nodes] = self.q.T[: self.count]
        if whole and ready.kernel.factors:
            inside = np.multiply.reduceat(self.q[ready.node], ready.first)
            self.tau[:, nodes:] = inside.T[: self.count]

    def _forward(self, begin: int, end: int, state: State, tape: Any) -> None:
        sweep_truncated(self.ready.kernel, tape, begin, end, *state)

    def pull(self, slope: Array) -> Array:
        ready, out = self.ready, np.zeros_like(self.scores)
        log_q, nodes = np.zeros(self.q.shape), len(self.q)
        log_q[:, : self.count] = slope[:, :nodes].T
        if self.whole and ready.kernel.factors:
            inside = np.add.reduceat(slope.T[nodes:][ready.entry], ready.sent_first)
            np.add.at(log_q[:, : self.count], ready.home, inside)

        def backward(begin: int, end: int, state: State, tape: Any) -> None:
            q, log_q = state
            unsweep_truncated(ready.kernel, tape, begin, end, q, log_q, out)

        self.tape.back(self._forward, backward, (self.q.copy(), log_q))
        return out[:, :, : self.count].transpose(0, 2, 1)


def normalised(x: Array, start: Ints) -> Array:
    """exp x, each table summing to 1."""
    chance = x.copy()
    normalise_tables(len(start) - 1, start, x.shape[1], chance)
    return chance


def side_by_side(scores: Array) -> Array:
    """(sets × coordinates × lanes): one lane, or eight, the last example filling those left."""
    count = scores.shape[1]
    if count > LANES:
        raise ValueError(f"{count} examples at once; truncated inference runs {LANES} together")
    lanes = np.minimum(np.arange(LANES if count > 1 else 1), count - 1)
    return np.ascontiguousarray(scores[:, lanes].transpose(0, 2, 1))
