"""Rounds: one parallel oracle call per example at a common θ, then sequential exact block steps."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from mlestruct.checkpoint import Keeping, Loop, begin
from mlestruct.digest import digest, name_of
from mlestruct.dual import Certificate, Dual, Interior, interior, refuse_below
from mlestruct.engine import Engine, engine_of
from mlestruct.frank_wolfe import flat, steps
from mlestruct.frank_wolfe.active_set import Iterate, Tangent, footprint
from mlestruct.frank_wolfe.asking import Asking, Elsewhere
from mlestruct.frank_wolfe.joint import joint_step
from mlestruct.frank_wolfe.slopes import reached
from mlestruct.frank_wolfe.state import Cost, State, noted
from mlestruct.kernels import clock
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array, as_count, as_numbers
from mlestruct.trees import Tree

Step = Literal["auto", "pairwise", "block", "batch", "block_fixed", "batch_fixed"]
# The oracle is asked at (1−δ)τ + δu, whose slopes look past coordinates that no vertex has reached
# yet but that matter little. At an optimum that alone opens a gap of up to δ · Σ|a|·view (a ≥ 0):
# half of the gap is allowed for it, so that δ at least halves where nothing else is left. Where
# some a < 0 make it more, a round without progress shrinks δ, unless that only raised the gap.
SMOOTHING, MOST_SMOOTHING = 0.5, 0.3
PROGRESS, SHRINK, GROWTH = 1e-5, 0.5, 1.5
FLOOR_SHARE, LEAST_FLOOR = 1e-3, 1e-9  # the interior point keeps this share of δ as its weight
WORTH = 0.25  # of the new vertices' gain: a corrective pass that gains less is its round's last
# Without entropy θ(τ) leaps from round to round. Max-margin asks between it and the best θ so far.
CENTRE = 0.5
LARGE = 1000  # a vertex with more ones than this makes an active set not worth its memory
CHECKED = 25  # rounds between recomputations of τ and r from scratch
log = logging.getLogger("mlestruct")


@dataclass
class _Standing:
    """Where a run stands at the top of a round, beside its iterate."""

    step: Step
    number: int = 0
    share: float = 0.0
    before: tuple[float, float] = (np.inf, np.inf)
    seconds_per_call: float = 0.0
    bytes: int = 0
    best: Array | None = None
    least: tuple[float, float] = (np.inf, 0.0)

    def better(self, theta: Array, proof: Certificate) -> tuple[Array, Certificate]:
        """The best weights of all rounds, and their certificate: their objective was known then."""
        primal = proof.gap - proof.objective
        if self.best is None or primal < self.least[0]:
            self.best, self.least = theta, (primal, proof.slack)
        primal, slack = self.least
        return self.best, replace(proof, gap=primal + proof.objective, slack=slack)


@dataclass(frozen=True)
class FrankWolfe:
    """Minimises a :class:`Dual` through its oracle alone; every round comes with its certificate.

    ``tol`` is the relative gap to stop at. ``step``: ``pairwise`` on active sets (with at most
    ``corrective`` passes over known vertices between calls, while they gain), plain ``block`` or
    ``batch`` steps with exact line search, or the papers' ``block_fixed`` 2M/(k+2M) and
    ``batch_fixed`` 2/(k+2);
    ``auto`` is pairwise unless vertices are very large. ``shards`` fixes what is asked together,
    so any ``engine`` with any number of ``workers`` gives the same bits: ``threads`` (the default
    of several workers), or another of :mod:`mlestruct.engine`. Adapts by counts, never by clock.
    With a ``checkpoint`` a run goes on where an earlier one was ended, on whatever engine.
    """

    tol: float = 1e-3
    step: Step = "auto"
    rounds: int = 1000
    calls: int | None = None
    seconds: float | None = None
    corrective: int = 8
    warm: int = 10
    shards: int = 8
    workers: int = 1
    engine: Engine | str | None = None
    checkpoint: Keeping = None

    def __post_init__(self) -> None:
        least = {"rounds": 0, "corrective": 0, "warm": 0, "shards": 1, "workers": 1}
        for name, fewest in least.items():
            as_count(getattr(self, name), name, fewest)
        for name in ("tol", "calls", "seconds"):
            limit = getattr(self, name)
            if (limit is not None or name == "tol") and not as_numbers(limit, name) >= 0:
                raise ValueError(f"{name} is {limit}; it must be 0 or more")
        if self.step not in get_args(Step):
            raise ValueError(f"step is one of {', '.join(get_args(Step))}, not {self.step!r}")

    def run(self, dual: Dual, oracle: Oracle[Any], start: Array | None = None) -> Iterator[State]:
        """Yields every round's state; the last has ``done`` set. Stop iterating to stop early."""
        _refuse_masked(dual, oracle)
        setting = partial(self._setting, dual, oracle, start)
        loop = begin(self.checkpoint, "frank_wolfe", setting, dual.batch.size)
        yield from noted(loop, partial(self._rounds, dual, oracle, start, loop))

    def solve(self, dual: Dual, oracle: Oracle[Any], start: Array | None = None) -> State:
        """The last state of :meth:`run`."""
        *_, last = self.run(dual, oracle, start)
        return last

    def _setting(self, dual: Dual, oracle: Oracle[Any], start: Array | None) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        for free in ("workers", "engine", "checkpoint"):
            del own[free]
        # Within another loop the start follows from the runs before, whose τ are not kept.
        given = "" if isinstance(self.checkpoint, Loop) else digest(start)
        return {**dual.named(), "oracle": name_of(oracle), "start": given, **own}

    def _rounds(
        self, dual: Dual, oracle: Oracle[Any], start: Array | None, loop: Loop, spent: float
    ) -> Iterator[State]:
        began = clock() - spent
        margin = dual.entropy.flat and dual.batch.target is not None
        engine, now = engine_of(self.engine, self.workers), _Standing(self.step)
        away = Elsewhere(engine, oracle)
        inner = _at_target(dual) if margin else interior(dual.batch, away, dual.entropy)
        dual = Dual(dual.batch, dual.features, inner.entropy, dual.regulariser)
        tau = inner.tau if start is None or loop.tree is not None else start
        iterate = Iterate.start(dual, tau, inner.tau, active=False)

        def where() -> Tree:
            return astuple(now), iterate.tree(), asked.running.memory()

        with Asking(engine, dual.batch, oracle, self.shards) as asked:
            if loop.tree is not None:
                standing, point, memory = loop.tree
                now = _Standing(*standing)
                iterate.recall(point)
                asked.running.remember(memory)
            for number in range(now.number, self.rounds + 1):
                now.number = number
                loop.save(where)
                if number and number % CHECKED == 0:
                    iterate.synchronise()
                theta = iterate.x.theta.copy()
                if now.best is not None:
                    theta = CENTRE * now.best + (1.0 - CENTRE) * theta
                tangent = iterate.tangent(now.share, theta)
                called = clock()
                vertices, upper = asked(tangent.score)
                if number == 0:
                    now.seconds_per_call = (clock() - called) / len(dual.batch)
                    self._plan(dual, vertices, now)
                    log.info("at most %s", self._cost(dual, now))
                    if now.step == "pairwise":
                        iterate = Iterate.start(dual, tau, inner.tau, active=True)
                        if margin and start is None:
                            iterate.pour(tau)
                calls = (number + 1) * len(dual.batch)
                proof, gap, mass = _certify(
                    iterate, tangent, vertices, upper, inner, oracle.polytope
                )
                if margin and now.step == "pairwise":
                    theta, proof = now.better(theta, proof)
                elapsed = clock() - began
                late = self.seconds is not None and elapsed > self.seconds
                spent_up = self.calls is not None and calls + len(dual.batch) > self.calls
                done = proof.relative <= self.tol or number == self.rounds or late or spent_up
                ends, cost = (iterate.x.tau, tangent.at), self._cost(dual, now)
                short = _short(proof.relative <= self.tol, late, spent_up) if done else ""
                yield State(
                    number, calls, elapsed, proof, theta, *ends, cost, done, short=short
                )  # fmt: skip
                if done:
                    return
                if not dual.entropy.flat:
                    iterate.floor = max(FLOOR_SHARE * now.share, LEAST_FLOOR)
                self._step(now.step, number, iterate, vertices, margin)
                if now.step == "pairwise" and number + 1 >= self.warm and not dual.entropy.flat:
                    now.share = _smoothing(now.share, gap, mass, now.before, proof.objective)
                    now.before = proof.objective, gap

    def _plan(self, dual: Dual, vertices: Array, now: _Standing) -> None:
        """The kind of step, and what it will need, from the first vertices."""
        now.step, moments = self._choose(dual, vertices), dual.features.each(vertices)
        now.bytes = footprint(dual, vertices, moments, active=now.step == "pairwise")

    def _cost(self, dual: Dual, now: _Standing) -> Cost:
        return Cost(self.rounds, len(dual.batch), now.seconds_per_call, now.bytes)

    def _choose(self, dual: Dual, vertices: Array) -> Step:
        if self.step != "auto":
            return self.step
        largest = np.add.reduceat(vertices != 0, dual.batch.offsets[:-1]).max()
        return "pairwise" if largest <= LARGE else "block"

    def _step(
        self, step: Step, number: int, iterate: Iterate, vertices: Array, margin: bool
    ) -> None:
        dual = iterate.dual
        order, moments = np.arange(len(dual.batch)), dual.features.each(vertices)
        iterate.make_room(vertices, moments)
        p, x, s, atoms, floor = iterate.p, iterate.x, iterate.s, iterate.atoms, iterate.floor
        warm = number < self.warm and not margin and step in ("pairwise", "block")
        if warm or step in ("batch", "batch_fixed"):
            gamma = 2.0 / (number + 3.0) if step == "batch_fixed" else None
            joint_step(iterate, vertices, moments, gamma, 0.9 if warm else 1.0 - 1e-9, number)
        elif step == "pairwise":
            gained = steps.pairwise_pass(order, vertices, moments, number, floor, p, x, atoms, s)
            count, least = self.corrective, WORTH * gained
            if dual.entropy.flat and dual.regulariser.plain:
                gram = iterate.gram = flat.gram_of(atoms, iterate.gram)
                count, least = flat.MORE * count, flat.WORTH * gained
                flat.settled_passes(count, least, order, number, p, x, atoms, gram, s)
            else:
                steps.corrective_passes(count, least, order, number, floor, p, x, atoms, s)
        else:
            first = (number + 1) * len(order)
            steps.plain_pass(order, vertices, moments, step == "block_fixed", first, p, x, s)


def _certify(
    iterate: Iterate,
    tangent: Tangent,
    vertices: Array,
    upper: Array,
    inner: Interior,
    polytope: str,
) -> tuple[Certificate, float, float]:
    """The round's certificate, its gap, and the vertices' Σ|a|·view."""
    dual = iterate.dual
    batch, weight = dual.batch, dual.batch.weight
    out = np.empty((3, len(batch)))
    reached(tangent.score, vertices, iterate.x.tau, iterate.p, out)
    best, here, mass = out
    refuse_below(batch, upper, here, "the current point")
    if batch.target is not None:
        refuse_below(batch, upper, batch.observed(tangent.score), "the observed outcome")
    energy = tangent.energy if batch.constant is None else tangent.energy + batch.constant
    gap = float(weight @ (upper - here + tangent.spread))
    gap += dual.regulariser.bracket(tangent.theta, iterate.x.r)
    proof = Certificate(
        gap if inner.withheld is None else float("inf"),
        float(weight @ (upper - best)),
        dual.regulariser.conj(iterate.x.r) - float(weight @ energy),
        polytope,
        str(dual.entropy.bound),
        inner.withheld,
        inner.unused,
    )
    return proof, gap, float(weight @ mass)


def _short(met: bool, late: bool, spent_up: bool) -> str:
    return "" if met else "seconds" if late else "calls" if spent_up else "rounds"


def _smoothing(
    share: float, gap: float, mass: float, before: tuple[float, float], objective: float
) -> float:
    """The next δ: half of what would explain the gap at an optimum, rising slowly."""
    stalled = before[0] - objective < PROGRESS * gap and gap <= 1.01 * before[1]
    factor = SHRINK if stalled else GROWTH
    most = factor * share if share > 0.0 else MOST_SMOOTHING
    return min(SMOOTHING * max(gap, 0.0) / max(mass, 1e-300), most, MOST_SMOOTHING)


def _at_target(dual: Dual) -> Interior:
    """Max-margin needs no interior: it starts at the observed outcomes, where θ = 0."""
    target = dual.batch.target
    assert target is not None
    return Interior(target.copy(), dual.entropy, 0)


def _refuse_masked(dual: Dual, oracle: Oracle[Any]) -> None:
    mask = oracle.perturbable(dual.batch)
    if mask is None:
        return
    wrong = np.flatnonzero(dual.entropy.perturbs() & ~mask)
    if len(wrong):
        k = int(wrong[0])
        m = int(dual.batch.owner[k])
        raise ValueError(
            f"example {m}: the entropy perturbs coordinate {k - dual.batch.offsets[m]}, which this "
            "oracle does not allow; confine it (rho=0 keeps it to nodes) or use another oracle"
        )
