"""The loop of every fit: it owns the clock, the budget, the checkpoint, and why a fit ends.

A :class:`mlestruct.drive.Method` says what each of its rounds has come to; nothing here is
numerical.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from mlestruct import limits
from mlestruct.checkpoint import AnyCheckpoint, Loop, Setting, begin
from mlestruct.dual import Certificate
from mlestruct.structures.base import Array, as_numbers
from mlestruct.trees import Tree

NONE = np.zeros(0)


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
class Progress:
    """What a round has come to.

    ``theta`` are the best weights so far and ``tau`` the point of least objective; the certificate
    is theirs. By Frank-Wolfe each is from its own round, and the certificate never rises. Its
    tangent was taken ``at`` another point: ``certificate(dual, oracle, theta, tau, at=at)`` finds
    it again. ``calls`` counts questions so far, of which the first round asked one per example;
    ``asking`` are the seconds of ``seconds`` in which a solver was waited for.
    ``cut``: the ``direct`` route's own τ lay outside the outcomes' hull, and this one is near it.
    ``learned`` is what was learned of inference, beside θ: see :mod:`mlestruct.inference.choose`.
    ``own`` is what else the method says of the round.

    A method ends by ``over``, which says why it can go no further, or where ``left`` (None: the
    certificate's relative gap) is within the tolerance it is given. ``prove`` is called with the
    reason before it ends, and says what the round has really come to: it may go on. A ``silent``
    round says nothing unless it is the last. A fit that is cut short ends with the round
    ``instead`` of its last, where there is one: its weights are proven to be better.

    ``seconds``, ``cost``, ``done`` and ``short`` are filled in by :func:`mlestruct.drive.drive`.
    ``short`` says why a last round has not reached what was asked of it: ``rounds``, ``seconds``,
    ``calls`` ran out, no ``step`` led on, or the ``proof`` leaves more. A method may have a word of
    its own for what a round lacks, where its rounds run out. Rounds that a checkpoint
    remembers come again without arrays, the last of them with its θ.
    """

    round: int
    calls: int
    examples: int
    certificate: Certificate
    theta: Array
    tau: Array = field(default_factory=lambda: NONE)
    at: Array = field(default_factory=lambda: NONE)
    route: str = "frank_wolfe"
    cut: bool = False
    asking: float = 0.0
    bytes: int = 0
    learned: Tree = None
    own: Any = None
    left: float | None = None
    over: str = ""
    prove: Callable[[str], Progress] | None = None
    silent: bool = False
    instead: Progress | None = None
    seconds: float = 0.0
    cost: Cost = Cost(0, 0, 0.0)
    done: bool = False
    short: str = ""

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def points(self) -> tuple[Array, Array | None]:
        """τ, and its tangent's point if another."""
        return self.tau, None if self.at is self.tau else self.at

    def within(self, tol: float) -> bool:
        """Whether the relative gap is at most ``tol``."""
        return (self.certificate.relative if self.left is None else self.left) <= tol


class Method(Protocol):
    """Minimises a problem in rounds; it knows neither clocks nor files nor when to stop.

    Interface: ``rounds(loop)`` yields a :class:`Progress` per round, for ever or until ``over``.
    Wherever another could go on it calls ``loop.save(where)``, ``where()`` a tree; ``loop.tree`` is
    None, or the tree to go on from: then the same bits follow. A method inside runs by
    ``drive(…, keeps=loop)``. ``name`` and ``setting()`` (names to values or digests) must be those
    of the fit that a checkpoint keeps; ``size`` coordinates are evaluated in a round.
    """

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def setting(self) -> Setting: ...
    def rounds(self, loop: Loop) -> Iterator[Progress]: ...


@dataclass(frozen=True)
class OwnRounds:
    """A method of functions, whose rounds are a learner's own."""

    name: str
    rounds: Callable[[Loop], Iterator[Progress]]
    setting: Callable[[], Setting]
    size: int = 0


COLUMNS = 15  # numbers that are kept of a round
UNSAID: dict[str, Any] = {"left": None, "over": "", "prove": None}
"""What is between a method and its loop."""
log = logging.getLogger("mlestruct")


@dataclass(frozen=True)
class Budget:
    """What a method may take until its relative gap is ``tol``; a ``unit`` is a round, by name.

    ``seconds`` are those of the whole fit, whose loops share one clock; a method inside another has
    the ``calls`` that are left. Every method counts rounds of its own.
    """

    tol: float
    rounds: int
    seconds: float | None = None
    calls: int | None = None
    unit: str = "rounds"

    def check(self) -> None:
        """A ValueError for a limit below 0."""
        for name in ("tol", "calls", "seconds"):
            limit = getattr(self, name)
            if (limit is not None or name == "tol") and not as_numbers(limit, name) >= 0:
                raise ValueError(f"{name} is {limit}; it must be 0 or more")

    def ended(self, said: Progress, seconds: float) -> str:
        """Why there is no round after this one, which would ask once per example; or nothing."""
        if self.late(seconds):
            return "seconds"
        out = self.calls is not None and said.calls + said.examples > self.calls
        return said.over or ("calls" if out else self.unit if said.round >= self.rounds else "")

    def late(self, seconds: float) -> bool:
        """No time is left after so many seconds, or by the limit of the call around."""
        return (self.seconds is not None and seconds > self.seconds) or limits.late()

    def spent(self, end: Progress) -> bool:
        """No time or no call is left for another method."""
        late = self.seconds is not None and end.seconds >= self.seconds
        return late or (self.calls is not None and end.calls >= self.calls)

    def short(self, said: Progress, why: str) -> str:
        """In the method's own word, if it has one, where only rounds ran out."""
        return said.short or why if why == self.unit else why

    def cost(self, said: Progress, pace: float) -> Cost:
        """By the solver's time a call so far; where there is none, by the first round's."""
        per_call = said.asking / said.calls if said.asking else pace
        return Cost(self.rounds, said.examples, per_call, said.bytes)


def drive(method: Method, budget: Budget, keeps: AnyCheckpoint = None) -> Iterator[Progress]:
    """Rounds until the tolerance is met or the budget is out; the last has ``done`` set.

    ``keeps`` is a checkpoint or the loop around this one: rounds that it remembers come again.
    """
    loop = begin(keeps, method.name, method.setting, method.size)
    clock, pace, past = loop.clock, None, None
    loop.late = lambda: budget.late(clock.seconds)
    if loop.writer is not None:
        past = Past(loop.past)
        yield from past.told(loop.kept["heavy"])
        if loop.done and not past.rows:
            raise ValueError("the checkpoint of a finished run holds no round")
        if loop.done:
            loop.finish()
            return
        clock.start(max(past.seconds, clock.seconds))
        loop.beside, pace = past.tree, past.pace
    for said in _in_time(method.rounds(loop)):
        why = budget.ended(said, clock.seconds)
        if said.prove is not None and (why or said.within(budget.tol)):
            said = said.prove(why)
            why = why or said.over
        elif said.silent:
            continue
        met, seconds = said.within(budget.tol), clock.seconds
        if why and not met and said.instead is not None:
            said = said.instead
            met = said.within(budget.tol)
        pace = seconds / max(said.calls, 1) if pace is None else pace
        cost = budget.cost(said, pace)
        if said.round == 0:
            log.info("%s: at most %s", method.name, cost)
        done, short = met or why != "", "" if met or not why else budget.short(said, why)
        said = replace(said, seconds=seconds, cost=cost, done=done, short=short, **UNSAID)
        said = replace(said, instead=None) if done else said
        if past is not None:
            past.add(said)
            if done:
                loop.finish(past.tree(), said.points)
        yield said
        if done:
            return


def _in_time(rounds: Iterator[Progress]) -> Iterator[Progress]:
    """The rounds, until a solver was out of time in one of them: then the last one ends it."""
    said = None
    try:
        for said in rounds:
            yield said
    except limits.OutOfTime:
        if said is None:
            raise
        yield said


def last(states: Iterator[Progress]) -> Progress:
    """What a fit ended with."""
    *_, found = states
    return found


def then(
    first: Iterator[Progress],
    follow: Callable[[Progress], Iterator[Progress] | None],
) -> Iterator[Progress]:
    """One method, and where it ends short another; the last round's proof is the better of both.

    Weights of 0, at which a descent was stuck, replace nothing: the other has compared its own.
    """
    for end in first:
        more = follow(end) if end.done else None
        yield replace(end, done=end.done and more is None)
    for on in () if more is None else more:
        if on.done and not on.gap <= end.gap and end.theta.any():
            on = replace(on, certificate=end.certificate, theta=end.theta, tau=end.tau, at=end.tau)
        yield replace(on, round=end.round + 1 + on.round, calls=end.calls + on.calls)


def within(solver: Any, loop: AnyCheckpoint, calls: int = 0) -> Any:
    """A solver inside a loop that has spent so many calls."""
    left = None if solver.calls is None else max(solver.calls - calls, 0)
    return replace(solver, checkpoint=loop, calls=left)


class Past:
    """The rounds of a loop so far: a row of numbers each, words that recur, and the last θ."""

    def __init__(self, tree: Tree = None) -> None:
        rows, words, self.theta, self.learned = ([], [], NONE, None) if tree is None else tree
        if np.size(rows) and np.shape(rows)[1:] != (COLUMNS,):
            raise ValueError(f"a checkpoint's rounds are {np.shape(rows)}, not rows of {COLUMNS}")
        self.rows: list[tuple[float, ...]] = [tuple(row) for row in np.asarray(rows).tolist()]
        self.words = {text: number for number, text in enumerate(words)}

    @property
    def seconds(self) -> float:
        return self.rows[-1][2] if self.rows else 0.0

    @property
    def pace(self) -> float | None:
        """Seconds a call, as the first round had them."""
        return self.rows[0][9] if self.rows else None

    def tree(self) -> Tree:
        return np.array(self.rows, dtype=float), list(self.words), self.theta, self.learned

    def add(self, said: Progress) -> None:
        proof, cost = said.certificate, said.cost
        text = proof.polytope, proof.bound, proof.withheld, said.route, said.short
        self.rows.append((
            said.round, said.calls, said.seconds, proof.gap, proof.slack, proof.objective,
            proof.unused, cost.calls, cost.examples, cost.seconds_per_call, cost.bytes,
            said.done, said.cut, said.asking,
            self.words.setdefault(text, len(self.words)),
        ))  # fmt: skip
        self.theta, self.learned = said.theta, said.learned

    def told(self, heavy: tuple[Array, Array | None] | None) -> Iterator[Progress]:
        """All of them again; ``heavy`` are the last one's τ, and its tangent's point if another."""
        words = list(self.words)
        for row in self.rows[:-1]:
            yield _again(row, words)
        for row in self.rows[-1:]:
            tau, at = (NONE, None) if heavy is None else heavy
            known = replace(_again(row, words), theta=self.theta, learned=self.learned)
            yield replace(known, tau=tau, at=tau if at is None else at)


def _again(row: tuple[float, ...], words: list[tuple[str, str, str | None, str, str]]) -> Progress:
    number, calls, seconds, gap, slack, objective, unused, *expected, done, cut, asking, text = row
    polytope, bound, withheld, route, short = words[int(text)]
    cost = Cost(int(expected[0]), int(expected[1]), expected[2], int(expected[3]))
    proof = Certificate(gap, slack, objective, polytope, bound, withheld, int(unused))
    said = Progress(int(number), int(calls), cost.examples, proof, NONE, route=route, cut=bool(cut))
    ends: Any = {"seconds": seconds, "cost": cost, "done": bool(done), "short": short}
    return replace(said, asking=asking, bytes=cost.bytes, **ends)
