"""Frank-Wolfe on a dual objective: ask the oracle at θ and near τ, prove, step.

A round asks about all examples at a common θ, in parallel, and then takes exact block steps one
after the other: pairwise steps on active sets (Lacoste-Julien and Jaggi, *On the Global Linear
Convergence of Frank-Wolfe Optimization Variants*, NIPS 2015). :meth:`FrankWolfe.on` is the
algorithm, :class:`Rounds` its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from time import perf_counter as clock
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from mlestruct import limits
from mlestruct.engine import Threads, engine_of
from mlestruct.errors import counted_from, counting_from, refuse_removed
from mlestruct.learning.dual import MIX, Certificate, Dual, Interior, interior, refuse_below
from mlestruct.learning.iterate import Iterate, capacity
from mlestruct.learning.loop import AnyCheckpoint, Found, Loop, Told
from mlestruct.learning.steering import MORE, Centre, Sharing, Smoothing
from mlestruct.native._door import reach_vertices
from mlestruct.oracle import Answers, Oracle, memory, perturbable, remember
from mlestruct.oracle.protocol import Around, innermost, name_of
from mlestruct.oracle.solver import Solver
from mlestruct.storage.digest import digest
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, as_count, as_numbers
from mlestruct.structures.batch import Batch, spans

DIGITS = 1e-13  # of log Z: what floats may have lost
FLOOR_SHARE, LEAST_FLOOR = 1e-3, 1e-9  # the interior point keeps this share of δ as its weight
# Without entropy θ(τ) leaps from round to round. Max-margin asks between it and the best θ so far.
BETWEEN = 0.5
CORRECTIVE = 8  # passes at most over known vertices between calls, while they gain
WARM = 5  # rounds of joint steps to begin with
FEWEST = 16  # atoms an example that memory must have room for, else plain steps do better
SUMMED = 3  # rounds between bounds by exact sums, where there are such
CHECKED = 25  # rounds between recomputations of τ and r from scratch
NEARLY = 1.0 - 1e-9  # of the way to a vertex, at most
FREE = ("workers", "engine", "checkpoint")  # settings that change no bit

Step = Literal["auto", "pairwise", "block"]
Keep = Literal["best", "last"]
Names = tuple[str, ...]
Sums = Callable[[Batch[Any], Array], tuple[Array, Array, Any]]
"""Scores to log Z and τ of every example, summed over all outcomes: exact."""


class SolverSettings:
    """What settings of Frank-Wolfe and of BCFW share."""

    LEAST: ClassVar[dict[str, int]] = {"rounds": 0}
    KINDS: ClassVar[dict[str, Any]] = {"keep": Keep}

    def __post_init__(self: Any) -> None:
        """Raise a ValueError for a number below its least, or a word that is none of a kind."""
        for name, fewest in self.LEAST.items():
            as_count(getattr(self, name), name, fewest)
        for name in ("tol", "calls", "seconds"):
            limit = getattr(self, name)
            if (limit is not None or name == "tol") and not as_numbers(limit, name) >= 0:
                raise ValueError(f"{name} is {limit}; it must be 0 or more")
        for name, kind in self.KINDS.items():
            if (given := getattr(self, name)) not in get_args(kind):
                raise ValueError(f"{name} is one of {', '.join(get_args(kind))}, not {given!r}")

    def run(self, *given: Any) -> None:
        """Removed."""
        refuse_removed("FrankWolfe.run")

    def solve(
        self: Any,
        dual: Dual,
        oracle: Oracle[Any],
        start: Array | None = None,
        *,
        told: Told = None,
        **more: Any,
    ) -> Found:
        """Minimise the dual; ``told`` is told of every round, ``more`` are arguments of ``on``."""

        def setting() -> dict[str, Any]:
            """Within another loop the start follows from the runs before, of unkept τ."""
            given = "" if isinstance(self.checkpoint, Loop) else digest(start)
            own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in FREE}
            sums = more.get("sums") is not None
            return {**dual.named(), "oracle": name_of(oracle), "start": given, "sums": sums, **own}

        loop = Loop(self.checkpoint, self.name, setting, self, told)
        found: Found = self.on(dual, oracle, loop, start, **more)
        return found


@dataclass(frozen=True)
class FrankWolfe(SolverSettings):
    """Minimises a :class:`Dual` through its oracle alone; every round comes with its certificate.

    ``tol`` is the relative gap to stop at. ``step``: ``pairwise`` on active sets, or plain steps
    of a ``block`` after the other; ``auto`` is pairwise unless memory has too little room for
    vertices. The papers' own is :class:`BCFW`. ``keep`` says which weights a run
    returns: those of the best bound (``best``), or the ``last`` ones, as the papers do. ``centre``
    holds θ near where it was (max-margin: near the best so far), so that questions do not leap.

    ``shards`` fixes what is asked together, so any ``engine`` with any number of ``workers`` gives
    the same bits: ``threads`` (the default of several workers), or another of
    :mod:`mlestruct.engine`. Adapts by counts, never by clock. With a ``checkpoint`` a run goes on
    where an earlier one was ended, on whatever engine.
    """

    tol: float = 1e-3
    step: Step = "auto"
    rounds: int = 1000
    calls: int | None = None
    seconds: float | None = None
    shards: int = 8
    workers: int = 1
    engine: Any = None
    checkpoint: AnyCheckpoint = None
    centre: bool = True
    keep: Keep = "best"
    name = "frank_wolfe"
    LEAST: ClassVar[dict[str, int]] = {"rounds": 0, "shards": 1, "workers": 1}
    KINDS: ClassVar[dict[str, Any]] = {"step": Step, "keep": Keep}

    def on(
        self,
        dual: Dual,
        oracle: Oracle[Any],
        loop: Loop,
        start: Array | None = None,
        sums: Sums | None = None,
        inner: Interior | None = None,
    ) -> Found:
        """Minimise the dual until the loop's tolerance is met or its limits end it.

        ``start`` is a τ to begin at. ``sums`` computes log Z exactly, over outcomes that the
        structures list: it bounds the optimum then, and the oracle is asked for vertices alone.
        ``inner`` is a point inside the polytope; without it one is looked for.
        """
        if loop.found is not None:
            return loop.found
        engine, said = engine_of(self.engine, self.workers), None
        here = oracle if isinstance(engine, Threads) else RemoteOracle(engine, oracle)
        rounds = Rounds(self, dual, here, loop, start, inner)
        rounds.sums = sums
        with closing(Asked(engine, dual.batch, oracle, self.shards)) as asked:
            if loop.state is not None:
                rounds.go_on(loop.state, asked)
            try:
                while True:
                    loop.save(partial(rounds.where, asked))
                    found = rounds.prove(asked)
                    said = rounds.found()
                    why, met = loop.over(said), said.certificate.relative <= loop.tol
                    if why or met:
                        return loop.end(said, "" if met else why)
                    loop.tell(said)
                    rounds.move(found)
            except limits.OutOfTime:
                if said is None:
                    raise
                return loop.end(said, "seconds")


# ------------------------------------------------------------------------ questions to the oracle


@dataclass(frozen=True)
class OraclePart:
    """Some examples and their oracle, for engines; ``first`` is the number of the first of them."""

    batch: Batch[Any]
    oracle: Oracle[Any]
    first: int = 0

    def answer(self, scores: Array, warm: object = None) -> tuple[Answers, None]:
        """Return the oracle's answers; its errors count examples from ``first``."""
        try:
            return self.oracle.many(self.batch, scores), None
        except Exception as error:
            if not hasattr(error, "__notes__"):  # a solver says which example it was
                last = self.first + len(self.batch) - 1
                error.add_note(f"the oracle raised this, asked about {self.first} to {last}")
            raise counted_from(error, self.first) from error.__cause__

    def pack(self, warm: object = None) -> Tree:
        """Return what the oracle remembers of this batch."""
        return memory(self.oracle, self.batch)

    def unpack(self, tree: Tree) -> None:
        """Let the oracle remember it."""
        remember(self.oracle, self.batch, tree)

    def halves(self, arguments: tuple[Any, ...]) -> list[tuple[OraclePart, tuple[Any, ...]]]:
        """Return the two halves, each with its scores; a single example has none."""
        halves = []
        for half in self.batch.shards(2) if len(self.batch) > 1 else []:
            part = OraclePart(self.batch.select(half), self.oracle, self.first + int(half[0]))
            halves.append((part, (arguments[0][spans(self.batch.offsets, half)],)))
        return halves


@dataclass(frozen=True)
class RemoteOracle(Around):
    """An oracle asked where the engine has its parts: what it does there is not done here."""

    engine: Any
    oracle: Oracle[Any]

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        with closing(self.engine.open([OraclePart(batch, self.oracle)])) as running:
            answers: Answers = running.ask("answer", [(scores,)])[0]
        return answers


class Asked:
    """Asks the oracle for all examples, by ``count`` fixed parts of them on an engine."""

    def __init__(self, engine: Any, batch: Batch[Any], oracle: Oracle[Any], count: int) -> None:
        # Solvers of users are asked one by one and remember nothing: parts would only cost time.
        alone = isinstance(engine, Threads) and engine.workers == 1
        members = batch.shards(1 if alone and isinstance(innermost(oracle), Solver) else count)
        own = replace(batch)  # oracles may remember a batch, and runs are not to know each other
        parts = [batch.select(part) for part in members] if len(members) > 1 else [own]
        edges = np.cumsum([0, *(part.size for part in parts)])
        self.slices = [slice(*edges[i : i + 2]) for i in range(len(parts))]
        firsts = [int(part[0]) for part in members]
        self.running = engine.open(
            [OraclePart(part, oracle, first) for part, first in zip(parts, firsts, strict=True)]
        )
        self.close = self.running.close

    def __call__(self, score: Array) -> Answers:
        answers = self.running.ask("answer", [(score[place],) for place in self.slices])
        return np.concatenate([a[0] for a in answers]), np.concatenate([a[1] for a in answers])

    def memory(self) -> Tree:
        """Return what the parts remember, None if that is nothing, in whatever parts."""
        kept = self.running.memory()
        return None if all(one is None for one in kept) else kept


# ----------------------------------------------------------------------------------------- rounds


class Reply(NamedTuple):
    """The vertices of a round, the dual objective D(τ), and the gap by the oracle alone.

    ``mass`` is the vertices' Σ|a|·view, ``lag`` the part of the gap that is there because θ is not
    ∇R*(r).
    """

    vertices: Array
    objective: float
    gap: float
    mass: float
    lag: float


class OracleRun:
    """The state of a run of Frank-Wolfe or BCFW: τ, θ's centre, the best so far, and its cost.

    What is best are two sides of a certificate, each the least so far: what is printed never rises.
    For any weights θ, any point ``at`` and any τ of the polytope, gap = P(θ, at) + D(τ) with

        P = R(θ) − ⟨θ, φ⟩ + Σ w [max ⟨Φθ + bias + ∇H(at), s⟩ + H(at) − ⟨∇H(at), at⟩],
        D = R*(r(τ)) − Σ w [H(τ) + ⟨bias, τ⟩].

    −P never exceeds the optimum and D is never below it, whichever rounds they come from. Kept are
    the weights of the least P, where their tangent lies, and the τ of the least D. If the solver
    keeps the last weights, they are taken, whether better or not.
    """

    KEPT: Names = ("number", "calls", "asking", "theta", "at", "tau", "primal", "slack", "value")

    def __init__(
        self,
        solver: Any,
        dual: Dual,
        oracle: Oracle[Any],
        loop: Loop,
        start: Array | None,
        inner: Interior | None = None,
    ) -> None:
        self.solver, self.oracle = solver, oracle
        batch, mask = dual.batch, perturbable(oracle, dual.batch)
        self.margin = dual.entropy.flat and batch.target is not None
        wrong = np.flatnonzero(dual.entropy.perturbs() & (False if mask is None else ~mask))
        if len(wrong):
            k = int(wrong[0])
            m = int(batch.owner[k])
            raise ValueError(
                f"example {m}: the entropy perturbs coordinate {k - batch.offsets[m]}, which this "
                "oracle does not allow; confine it (rho=0 keeps it to nodes) or use another oracle"
            )
        if self.margin:  # begins at the observed outcomes, where θ = 0
            _refuse_minimiser(batch, oracle)
            inner = Interior(np.array(batch.target), dual.entropy, 0)
        elif inner is None:
            begun = loop.state is not None  # what a file goes on with is not late
            late = (lambda: False) if begun else loop.late
            inner = interior(dual.batch, oracle, dual.entropy, late=late)
        self.inner, self.dual = inner, replace(dual, entropy=inner.entropy)  # no unused views
        self.start = inner.tau if start is None else inner.pull(start)
        self.iterate = Iterate(self.dual, self.start, inner.tau)
        self.share = 0.0 if self.dual.entropy.flat else MIX  # no logarithm of nothing
        self.centre: Centre | None = None
        self.theta = self.at = self.tau = np.zeros(0)
        self.primal, self.slack, self.value = np.inf, 0.0, np.inf
        self.number, self.calls, self.asking = 0, 0, 0.0

    def question(self, theta: Array, share: float) -> tuple[Array, ...]:
        """Return θ and what :meth:`Iterate.tangent` says of a question at (1 − share)τ + share·u.

        The first question is at Newton's share of its θ, by the curvature of independent parts: all
        of the first θ(τ), a long step along a gradient, may be worse than no weights.
        """
        dual, x = self.dual, self.iterate.x
        if self.number == 0 and not self.margin and self.solver.keep == "best":
            spread = dual.features.potentials(theta) ** 2 * np.maximum(x.tau * (1.0 - x.tau), 0.0)
            bend = float(dual.weigh(spread).sum()) + float(dual.regulariser.lam @ theta**2)
            theta = theta * min(max(float(theta @ x.r) / max(bend, 1e-300), 0.0), 1.0)
        return theta, *self.iterate.tangent(share, theta)

    def proven(
        self, question: tuple[Array, ...], answers: Answers, sums: Sums | None = None
    ) -> Reply:
        """Keep what the answers to a question prove.

        ``sums`` give log Z itself. Maximised over all that the structure declares, it bounds what
        any solver for a part of it can reach. The tangent at its τ says the same, so the
        certificate can be found again.
        """
        dual, x, (theta, at, score, energy, spread) = self.dual, self.iterate.x, question
        batch, weight, ridge = dual.batch, dual.batch.weight, dual.regulariser
        upper = answers[1]
        vertices, out = np.ascontiguousarray(answers[0]), np.empty((3, len(batch)))
        reach_vertices(x, score, vertices, out)
        best, here, mass = out
        refuse_below(batch, upper, here, "the current point")
        if batch.target is not None:
            seen, mend = batch.observed(score), "; where that breaks its constraints, mend it"
            refuse_below(batch, upper, seen, "the observed outcome", mend)
        held = float(weight @ (energy if batch.constant is None else energy + batch.constant))
        # What τ reaches; not the gap less D: where a column is a Unix time R*(r) may be 1e17, and P
        # is lost in it.
        reached = ridge.value(theta) - float(theta @ x.r) + held
        own, slack = float(weight @ (upper - here + spread)), float(weight @ (upper - best))
        lag = ridge.bracket(theta, x.r)
        gap = own + lag
        if sums is not None:
            scores = dual.scores(theta)
            log_z, top = sums(batch, scores)[:2]
            there = energy + batch.totals((scores - batch.bias) * x.tau)
            summed = float(weight @ (log_z + DIGITS * (1.0 + np.abs(log_z)) - there))
            if summed < own:
                own, slack, at = summed, 0.0, top
        objective = ridge.conj(x.r) - held
        # Where no bound is known (P = ∞), the round's weights are kept.
        if self.solver.keep == "last" or own + reached <= self.primal:
            self.theta, self.at, self.primal, self.slack = theta, at, own + reached, slack
        if objective < self.value:
            self.tau, self.value = x.tau.copy(), objective
        return Reply(vertices, objective, gap, float(weight @ mass), lag)

    def found(self) -> Found:
        """Return the best so far."""
        inner = self.inner
        gap = max(self.primal + self.value, 0.0) if inner.withheld is None else np.inf
        told = self.oracle.polytope, str(self.dual.entropy.bound), inner.withheld, inner.unused
        proof = Certificate(gap, self.slack, self.value, *told)
        return Found(
            self.theta, proof, self.tau, self.at, self.number, self.calls, len(self.dual.batch),
            asking=self.asking,
        )  # fmt: skip

    def tree(self) -> Tree:
        own = tuple(getattr(self, name) for name in self.KEPT)
        return own, None if self.centre is None else self.centre.tree(), self.iterate.tree()

    def recall(self, tree: Tree) -> None:
        """Stand where another run of the same problem stood."""
        own, held, point = tree
        for name, value in zip(self.KEPT, own, strict=True):
            setattr(self, name, value)
        if self.centre is not None:
            self.centre.recall(held)
            self.centre.hold(self.iterate)
        self.iterate.recall(point)


def _refuse_minimiser(batch: Batch[Any], oracle: Any) -> None:
    """Of a loss the least is no loss, that of the observed outcome: no bound would be broken."""
    from mlestruct.oracle.solver import tells_best_from_worst

    for m in range(len(batch)):
        with counting_from(m):
            one = batch.select([m])
            if tells_best_from_worst(oracle, one, one.bias):
                return


class Rounds(OracleRun):
    """What rounds hold besides: the kind of their steps, δ, and others' answers."""

    sums: Sums | None = None

    def __init__(self, solver: FrankWolfe, dual: Dual, *given: Any) -> None:
        super().__init__(solver, dual, *given)
        self.cold, self.step = given[2] is None, solver.step
        entropy, ridge = self.dual.entropy, self.dual.regulariser
        slopes = entropy.a, entropy.b, entropy.mixed.a
        self.smoothing = Smoothing(any(bool((a < 0).any()) for a in slopes))
        self.sharing: Sharing | None = None
        if solver.centre:
            r = np.zeros(dual.features.d) if self.cold else self.iterate.x.r
            self.centre = Centre.of(
                self.dual, ridge.weights(r), None if self.margin else self.start
            )
            self.centre.hold(self.iterate)

    def prove(self, asked: Asked) -> Reply:
        """Ask for every example's best vertex at θ and at a point near τ; say what that proves."""
        if self.number and self.number % CHECKED == 0:
            self.iterate.synchronise()
        theta = self.iterate.x.theta.copy()
        if self.margin and self.step == "pairwise" and self.number:
            theta = BETWEEN * self.theta + (1.0 - BETWEEN) * theta
        due = self.sums if self.number % SUMMED == 0 else None
        question, began = self.question(theta, max(self.smoothing.share, self.share)), clock()
        answers = asked(question[2])
        self.asking += clock() - began
        self.calls += len(self.dual.batch)
        found = self.proven(question, answers, due)
        if self.number:
            return found
        # By the first vertices the kind of step is chosen, and what it will need.
        vertices = found.vertices
        dual, iterate = self.dual, self.iterate
        cap, sparse = capacity(dual, vertices, iterate.moments(vertices))
        if self.step == "auto":
            self.step = "pairwise" if cap >= FEWEST else "block"
        if self.step != "pairwise":
            return found
        iterate.activate(cap, sparse)
        if self.margin and self.cold:  # begins at outcomes, which become atoms
            iterate.scale(self.start, 0, 1.0)
        self.sharing = None if dual.entropy.flat else Sharing.of(dual.batch)
        if self.sharing is not None:
            iterate.more = MORE
        return found

    def move(self, found: Reply) -> None:
        """Take one round's steps, to new vertices, others' answers and known ones.

        Then θ's centre and δ follow.
        """
        iterate, number, entropic = self.iterate, self.number, not self.dual.entropy.flat
        vertices = found.vertices
        if entropic:
            iterate.floor = max(FLOOR_SHARE * self.smoothing.share, LEAST_FLOOR)
        if number < WARM and not self.margin:
            iterate.jointly(vertices, number, -0.9)
        elif self.step == "block":
            iterate.plainly(iterate.all, vertices, iterate.moments(vertices))
        else:
            gained = iterate.towards(iterate.all, vertices, number)
            if self.sharing is not None:
                self.sharing.take(iterate, vertices, gained, number)
            # Corrective passes repeat slopes at τ, which say little where views are shares of
            # views. Where sums prove the bound τ need not be that good.
            few = self.sums is not None or (self.dual.entropy.mixed.a < 0).any()
            iterate.among(number, 0 if few else CORRECTIVE, gained)
        if self.centre is not None:
            if self.margin:
                self.centre.at = self.theta
            else:
                self.centre.follow(iterate, found.lag, found.gap - found.lag, number)
            self.centre.hold(iterate)
        self.number += 1
        if self.step == "pairwise" and self.number >= WARM and entropic:
            self.smoothing.follow(found.gap, found.mass, found.objective)

    def where(self, asked: Asked) -> Tree:
        """Return where a run stands between two rounds."""
        answers = None if self.sharing is None else tuple(self.sharing.answers)
        return self.tree(), astuple(self.smoothing), self.step, answers, asked.memory()

    def go_on(self, tree: Tree, asked: Asked) -> None:
        """Go on from where an earlier run stood."""
        own, smoothing, self.step, answers, kept = tree
        self.smoothing = Smoothing(*like(smoothing, astuple(self.smoothing)))
        if answers is not None:
            self.sharing, self.iterate.more = Sharing.of(self.dual.batch), MORE
            if self.sharing is None:
                raise ValueError("answers of another problem")
            self.sharing.answers = [like(one, self.dual.batch.bias) for one in answers]
        self.recall(own)
        if kept is not None:
            asked.running.remember(kept)
