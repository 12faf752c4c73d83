"""What a method ran: beliefs after T iterations, and their adjoints back over the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlestruct.families.fitting.truncated import (
    field_steps,
    message_steps,
    odds_steps,
)
from mlestruct.families.fitting.truncated.compiled import CompiledGraph
from mlestruct.inference.graph.plan import MessagePlan
from mlestruct.structures.base import Array

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
    """Any order, cards and counting numbers; ``linear`` where the state may be exponentiated."""

    def __init__(
        self,
        ready: CompiledGraph,
        scores: Array,
        iterations: int,
        whole: bool,
        linear: bool = False,
    ) -> None:
        self.linear = linear
        self.plan, self.visits, self.scores, self.whole = ready.plan, ready.visits, scores, whole
        sets, count, size = scores.shape
        nodes, slots = int(self.plan.table_start[0]), int(self.plan.place[-1])
        self.last = min(max(iterations, 1), sets) - 1
        self.table = np.empty((sets, count, size - nodes))
        message_steps.exponentials(scores, self.plan, self.table)
        cards = np.diff(self.plan.node_start)
        top = np.maximum.reduceat(scores[0, :, :nodes], self.plan.node_start[:-1], axis=1)
        belief = scores[0, :, :nodes] - np.repeat(top, cards, axis=1)
        state: State = belief / np.repeat(self.plan.whole, cards), np.zeros((count, slots))
        state = tuple(np.exp(part) for part in state) if linear else state
        width = int(self.visits.tape[-1])
        self.tape = Tape(
            iterations, 2 * count * width, lambda length: np.empty((2, count, length, width))
        )
        self.tape.run(self._forward, state)
        self.tau, near = np.zeros((count, size)), np.empty((count, slots))
        table = self.table[self.last]
        belief, message = (np.log(part) for part in state) if linear else state
        where = self.plan, self.visits.home
        message_steps.beliefs(table, belief, message, near, self.tau, whole, *where)

    def _forward(self, begin: int, end: int, state: State, tape: Any) -> None:
        (belief, message), (near, sums), how = state, tape, (self.linear, self.plan, self.visits)
        message_steps.forward(
            self.scores, self.table, begin, end, belief, message, near, sums, *how
        )

    def pull(self, slope: Array) -> Array:
        out = np.zeros(self.scores.shape)
        nodes = int(self.plan.table_start[0])
        state = np.empty((len(slope), nodes)), np.zeros((len(slope), int(self.plan.place[-1])))
        last, where = out[self.last], (self.plan, self.visits.home)
        message_steps.unbeliefs(self.tau, slope, *state, last, self.whole, *where)

        def backward(begin: int, end: int, state: State, tape: Any) -> None:
            (belief, message), (near, sums), fixed = state, tape, (self.plan, self.visits)
            message_steps.backward(
                self.scores, self.table, begin, end, belief, message, near, sums, out, *fixed
            )

        self.tape.back(self._forward, backward, state)
        out[0, :, :nodes] += state[0] / np.repeat(self.plan.whole, np.diff(self.plan.node_start))
        return out


class OddsRun:
    """Binary pairwise belief propagation, a few examples at a time."""

    def __init__(self, ready: CompiledGraph, scores: Array, iterations: int, whole: bool) -> None:
        self.shape = scores.shape
        self.tau = np.zeros(scores.shape[1:])
        lanes = range(0, scores.shape[1], odds_steps.LANES)
        self.groups = [slice(first, first + odds_steps.LANES) for first in lanes]
        self.runs = [
            Lanes(ready, np.ascontiguousarray(scores[:, group]), iterations, whole, self.tau[group])
            for group in self.groups
        ]

    def pull(self, slope: Array) -> Array:
        out = np.empty(self.shape)
        for group, run in zip(self.groups, self.runs, strict=True):
            out[:, group] = run.pull(slope[group])
        return out


class Lanes:
    """At most LANES examples, side by side in memory."""

    def __init__(
        self, ready: CompiledGraph, scores: Array, iterations: int, whole: bool, tau: Array
    ) -> None:
        self.plan, self.visits, self.whole, self.tau = ready.plan, ready.visits, whole, tau
        sets, nodes, factors = len(scores), len(self.plan.whole), len(self.plan.counts)
        self.last = min(max(iterations, 1), sets) - 1
        lanes = odds_steps.LANES
        self.odds = np.empty((sets, nodes, lanes))
        self.table = np.empty((sets, factors, 4, lanes))
        odds_steps.load(scores, self.plan, self.odds, self.table)
        state = self.odds[0].copy(), np.ones((2 * factors, lanes))
        visits = len(self.visits.factor)
        self.tape = Tape(
            iterations,
            2 * visits * lanes,
            lambda length: np.empty((length, visits, 2, lanes)),
        )
        self.tape.run(self._forward, state)
        near = np.empty((factors, 2, lanes))
        odds_steps.beliefs(self.table[self.last], *state, near, tau, whole, self.plan)

    def _forward(self, begin: int, end: int, state: State, tape: Any) -> None:
        (belief, message), fixed = state, (self.plan, self.visits)
        odds_steps.forward(self.odds, self.table, begin, end, belief, message, tape, *fixed)

    def pull(self, slope: Array) -> Array:
        slopes = np.zeros(self.odds.shape), np.zeros(self.table.shape)
        state = np.empty(self.odds.shape[1:]), np.empty((len(self.table[0]) * 2, odds_steps.LANES))
        last = slopes[1][self.last]
        odds_steps.unbeliefs(self.tau, slope, *state, last, self.whole, self.plan)

        def backward(begin: int, end: int, state: State, tape: Any) -> None:
            (belief, message), fixed = state, (self.plan, self.visits)
            odds_steps.backward(self.table, begin, end, belief, message, tape, *slopes, *fixed)

        self.tape.back(self._forward, backward, state)
        out = np.empty((len(self.odds), *self.tau.shape))
        odds_steps.unload(state[0], *slopes, out, self.plan)
        return out


class FieldRun:
    """Mean field of any order and cards."""

    def __init__(self, full: MessagePlan, scores: Array, iterations: int, whole: bool) -> None:
        self.plan, self.scores, self.whole = full, scores, whole
        _, count, size = scores.shape
        nodes = int(full.table_start[0])
        sizes = np.diff(full.node_start)
        self.q = np.tile(np.repeat(1.0 / sizes, sizes), (count, 1))
        self.tape = Tape(iterations, count * nodes, lambda length: np.empty((count, length, nodes)))
        self.tape.run(self._forward, (self.q,))
        self.tau = np.zeros((count, size))
        field_steps.beliefs(self.q, self.tau, whole, full)

    def _forward(self, begin: int, end: int, state: State, tape: Any) -> None:
        (q,) = state
        field_steps.forward(self.scores, begin, end, q, tape, self.plan)

    def pull(self, slope: Array) -> Array:
        out = np.zeros(self.scores.shape)
        state = self.q.copy(), np.empty(self.q.shape)
        field_steps.unbeliefs(slope, state[1], self.whole, self.plan)

        def backward(begin: int, end: int, state: State, tape: Any) -> None:
            q, log_q = state
            field_steps.backward(self.scores, begin, end, q, log_q, tape, out, self.plan)

        self.tape.back(self._forward, backward, state)
        return out
