"""What every round of every solver says, and how a checkpoint holds what has been said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mlestruct.checkpoint import Loop
from mlestruct.dual import Certificate
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Cost:
    """What a run is expected to take at most; ``bytes`` of memory beside its data, 0 if unknown."""

    calls: int
    examples: int
    seconds_per_call: float
    bytes: int = 0

    @property
    def seconds(self) -> float:
        return self.calls * self.examples * self.seconds_per_call

    def __str__(self) -> str:
        per_call = f"{1e3 * self.seconds_per_call:.2g} ms"
        room = f", {self.bytes / 1e6:.3g} MB" if self.bytes else ""
        time = f"{self.calls} calls × {self.examples} examples × {per_call} ≈ {self.seconds:.2g} s"
        return time + room


@dataclass(frozen=True)
class State:
    """What a round has come to, certified before its steps are taken.

    ``theta`` are the weights that are proven best so far and ``tau`` the point of least objective,
    each from its own round; the certificate is theirs, and never rises. Its tangent was taken
    ``at`` another point: ``certificate(dual, oracle, theta, tau, at=at)`` finds it again.
    ``asking`` are the seconds of ``seconds`` in which the solver was waited for.
    ``cut``: the ``direct`` route's own τ lay outside the outcomes' hull, and this one is near it.
    ``short`` says why a last round has not reached what was asked of it: ``rounds``, ``seconds``,
    ``calls`` ran out, no ``step`` led on, or the ``proof`` leaves more.
    ``learned`` is what was learned of inference, beside θ: see :mod:`mlestruct.inference.choose`.
    Rounds that a checkpoint remembers come again without arrays, the last of them with its θ.
    """

    round: int
    calls: int
    seconds: float
    certificate: Certificate
    theta: Array
    tau: Array
    at: Array
    cost: Cost
    done: bool = False
    route: str = "frank_wolfe"
    cut: bool = False
    short: str = ""
    asking: float = 0.0
    learned: Tree = None

    @property
    def gap(self) -> float:
        return self.certificate.gap


NONE = np.zeros(0)
COLUMNS = 15  # numbers that are kept of a round


class Past:
    """The states of a loop so far: a row of numbers each, words that recur, and the last θ."""

    def __init__(self, tree: Tree = None) -> None:
        rows, words, self.theta, self.learned = ([], [], NONE, None) if tree is None else tree
        if np.size(rows) and np.shape(rows)[1:] != (COLUMNS,):
            raise ValueError(f"a checkpoint's rounds are {np.shape(rows)}, not rows of {COLUMNS}")
        self.rows: list[tuple[float, ...]] = [tuple(row) for row in np.asarray(rows).tolist()]
        self.words = {text: number for number, text in enumerate(words)}

    @property
    def seconds(self) -> float:
        return self.rows[-1][2] if self.rows else 0.0

    def tree(self) -> Tree:
        return np.array(self.rows, dtype=float), list(self.words), self.theta, self.learned

    def add(self, state: State) -> None:
        proof, cost = state.certificate, state.cost
        text = proof.polytope, proof.bound, proof.withheld, state.route, state.short
        self.rows.append((
            state.round, state.calls, state.seconds, proof.gap, proof.slack, proof.objective,
            proof.unused, cost.calls, cost.examples, cost.seconds_per_call, cost.bytes,
            state.done, state.cut, state.asking,
            self.words.setdefault(text, len(self.words)),
        ))  # fmt: skip
        self.theta, self.learned = state.theta, state.learned

    def states(self, heavy: tuple[Array, Array | None] | None) -> Iterator[State]:
        """All of them again; ``heavy`` are the last one's τ, and its tangent's point if another."""
        words = list(self.words)
        for row in self.rows[:-1]:
            yield _state(row, words)
        for row in self.rows[-1:]:
            tau, at = (NONE, None) if heavy is None else heavy
            at = tau if at is None else at
            last = replace(_state(row, words), theta=self.theta, learned=self.learned)
            yield replace(last, tau=tau, at=at)


def _state(row: tuple[float, ...], words: list[tuple[str, str, str | None, str, str]]) -> State:
    number, calls, seconds, gap, slack, objective, unused, *expected, done, cut, asking, text = row
    polytope, bound, withheld, route, short = words[int(text)]
    return State(
        round=int(number),
        calls=int(calls),
        seconds=seconds,
        certificate=Certificate(gap, slack, objective, polytope, bound, withheld, int(unused)),
        theta=NONE,
        tau=NONE,
        at=NONE,
        cost=Cost(int(expected[0]), int(expected[1]), expected[2], int(expected[3])),
        done=bool(done),
        route=route,
        cut=bool(cut),
        short=short,
        asking=asking,
    )


def noted(loop: Loop, rounds: Callable[[float], Iterator[State]]) -> Iterator[State]:
    """A loop's states: those it remembers, then those of ``rounds``, told the seconds spent."""
    if loop.writer is None:
        yield from rounds(loop.seconds)
        return
    past = Past(loop.past)
    if loop.done and not past.rows:
        raise ValueError("the checkpoint of a finished run holds no round")
    yield from past.states(loop.kept["heavy"])
    if loop.done:
        return
    loop.beside = past.tree
    loop.start(max(past.seconds, loop.seconds))
    for state in rounds(loop.seconds):
        past.add(state)
        if state.done:
            at = None if state.at is state.tau else state.at
            loop.finish(past.tree(), (state.tau, at))
        yield state
