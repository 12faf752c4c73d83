"""Frank-Wolfe on a dual objective: ask the oracle at θ and near τ, prove, step.

A round asks about all examples at a common θ, in parallel, and then takes exact block steps one
after the other: pairwise steps on active sets (Lacoste-Julien and Jaggi, *On the Global Linear
Convergence of Frank-Wolfe Optimization Variants*, NIPS 2015). :func:`frank_wolfe` is the algorithm.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from mlestruct import limits
from mlestruct.engine import engine_of
from mlestruct.learning.asking import Asked, RemoteOracle
from mlestruct.learning.dual import Dual, Interior
from mlestruct.learning.iterate import capacity, footprint
from mlestruct.learning.loop import AnyCheckpoint, Found, Loop
from mlestruct.learning.run import Keep, OracleRun, Reply, SolverSettings, Sums, proven, shorter
from mlestruct.learning.steering import LAST, MORE, Centre, Sharing, Smoothing
from mlestruct.oracle import Oracle
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array

FLOOR_SHARE, LEAST_FLOOR = 1e-3, 1e-9  # the interior point keeps this share of δ as its weight
# Without entropy θ(τ) leaps from round to round. Max-margin asks between it and the best θ so far.
BETWEEN = 0.5
CORRECTIVE = 8  # passes at most, unless it is set
FEWEST = 16  # atoms an example that memory must have room for, else plain steps do better
SUMMED = 3  # rounds between bounds by exact sums, where there are such
CHECKED = 25  # rounds between recomputations of τ and r from scratch
NEARLY = 1.0 - 1e-9  # of the way to a vertex, at most

Step = Literal["auto", "pairwise", "block", "batch", "batch_fixed"]


@dataclass(frozen=True)
class FrankWolfe(SolverSettings):
    """Minimises a :class:`Dual` through its oracle alone; every round comes with its certificate.

    ``tol`` is the relative gap to stop at. ``step``: ``pairwise`` on active sets (with at most
    ``corrective`` passes over known vertices between calls, while they gain, 8 unless the structure
    says otherwise), or plain steps, per ``block`` or of the whole ``batch``, with exact line
    search; ``batch_fixed`` are the papers' 2/(k+2). ``auto`` is pairwise unless memory has too
    little room for vertices. The papers' own is :class:`BCFW`. ``keep`` says which weights a run
    returns: those of the best bound (``best``), or the ``last`` ones, as the papers do. ``centre``
    holds θ near where it was (max-margin: near the best so far), so that questions do not leap;
    fixed steps have none.

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
    corrective: int | None = None
    warm: int = 5
    shards: int = 8
    workers: int = 1
    engine: Any = None
    checkpoint: AnyCheckpoint = None
    centre: bool = True
    keep: Keep = "best"
    name = "frank_wolfe"

    def __post_init__(self) -> None:
        least = {"rounds": 0, "corrective": 0, "warm": 0, "shards": 1, "workers": 1}
        self.check(least, step=Step)

    def on(
        self,
        dual: Dual,
        oracle: Oracle[Any],
        loop: Loop,
        start: Array | None = None,
        sums: Sums | None = None,
        inner: Interior | None = None,
    ) -> Found:
        """OracleRun :func:`frank_wolfe`."""
        return frank_wolfe(dual, oracle, self, loop, start, sums, inner)


def frank_wolfe(
    dual: Dual,
    oracle: Oracle[Any],
    solver: FrankWolfe,
    loop: Loop,
    start: Array | None = None,
    sums: Sums | None = None,
    inner: Interior | None = None,
) -> Found:
    """Minimise the dual until the loop's tolerance is met or its limits end it.

    ``start`` is a τ to begin at. ``sums`` computes log Z exactly, over outcomes that the structures
    list: it bounds the optimum then, and the oracle is asked for vertices alone. ``inner`` is a
    point inside the polytope; without it one is looked for.
    """
    if loop.found is not None:
        return loop.found
    engine, said = engine_of(solver.engine, solver.workers), None
    rounds = Rounds(solver, dual, RemoteOracle(engine, oracle), loop, start, inner)
    rounds.sums = sums
    with closing(Asked(engine, dual.batch, oracle, solver.shards)) as asked:
        if loop.state is not None:
            rounds.go_on(loop.state, asked)
        try:
            while True:
                loop.save(partial(rounds.where, asked))
                found = rounds.prove(asked)
                said = rounds.said(found)
                why = loop.over(said)
                if why or said.certificate.relative <= loop.tol:
                    return rounds.end(loop, said, why)
                loop.tell(said)
                rounds.move(found)
        except limits.OutOfTime:
            if said is None:
                raise
            return rounds.end(loop, said, "seconds")


class Rounds(OracleRun):
    """What rounds hold besides: the kind of their steps, δ, and others' answers."""

    sums: Sums | None = None

    def __init__(self, solver: FrankWolfe, dual: Dual, *given: Any) -> None:
        super().__init__(solver, dual, *given)
        self.cold, self.step = given[2] is None, solver.step
        self.smoothing, self.tried = Smoothing(), Smoothing.tries(self.dual.entropy)
        self.sharing: Sharing | None = None
        if solver.centre and solver.step != "batch_fixed":
            r = np.zeros(dual.features.d) if self.cold else self.iterate.x.r
            at = dual.regulariser.weights(r)
            margin = self.margin
            centre = (
                Centre.of_margin(self.dual, at) if margin else Centre.of(self.dual, at, self.start)
            )
            self.hold(centre)

    def prove(self, asked: Asked) -> Reply:
        """Ask for every example's best vertex at θ and at a point near τ; say what that proves."""
        if self.number and self.number % CHECKED == 0:
            self.iterate.synchronise()
        theta = self.iterate.x.theta.copy()
        if self.margin and self.step == "pairwise" and self.number:
            theta = BETWEEN * self.best.theta + (1.0 - BETWEEN) * theta
        if self.number == 0 and not self.margin and self.solver.keep == "best":
            theta *= shorter(self.iterate, theta)
        tangent = self.iterate.tangent(max(self.smoothing.share, self.share), theta)
        answers = self.ask(asked, tangent.score, len(self.dual.batch))
        if self.number == 0:
            self._plan(answers[0])
        due = self.number % SUMMED == 0
        return proven(self.iterate, tangent, answers, self.sums if due else None)

    def _plan(self, vertices: Array) -> None:
        """Choose the kind of step, and what it will need, by the first vertices."""
        dual, iterate = self.dual, self.iterate
        cap, sparse, room = capacity(dual, vertices, iterate.moments(vertices))
        if self.step == "auto":
            self.step = "pairwise" if cap >= FEWEST else "block"
        self.bytes = footprint(dual)
        if self.step != "pairwise":
            return
        iterate.activate(cap, sparse)
        self.bytes += room + 8 * dual.batch.size
        if self.margin and self.cold:  # begins at outcomes, which become atoms
            iterate.scale(self.start, 0, 1.0)
        self.sharing = None if dual.entropy.flat else Sharing.of(dual.batch)
        if self.sharing is not None:
            iterate.more = MORE
            self.bytes += 16 * LAST * dual.batch.size

    def move(self, found: Reply) -> None:
        """Take one round's steps; then θ's centre and δ follow."""
        iterate, number, entropic = self.iterate, self.number, not self.dual.entropy.flat
        if entropic:
            iterate.floor = max(FLOOR_SHARE * self.smoothing.share, LEAST_FLOOR)
        self._step(found.vertices)
        if self.centre is not None:
            if self.margin:
                self.centre.at = self.best.theta
            else:
                self.centre.follow(iterate, found.lag, found.gap - found.lag, number)
            self.hold(self.centre)
        self.number += 1
        if self.step == "pairwise" and self.number >= self.solver.warm and entropic:
            self.smoothing.follow(found.gap, found.mass, found.objective, self.tried)

    def _step(self, vertices: Array) -> None:
        """Step towards these vertices, towards others' answers, and between known ones."""
        iterate, number = self.iterate, self.number
        warm = number < self.solver.warm and not self.margin and self.step in ("pairwise", "block")
        if warm or self.step == "batch":
            iterate.jointly(vertices, number, -0.9 if warm else -NEARLY)
        elif self.step == "batch_fixed":
            iterate.jointly(vertices, number, 2.0 / (number + 3.0))
        elif self.step == "block":
            iterate.plainly(iterate.all, vertices, iterate.moments(vertices))
        else:
            gained = iterate.towards(iterate.all, vertices, number)
            if self.sharing is not None:
                self.sharing.take(iterate, vertices, gained, number)
            iterate.among(number, self._passes(), gained)

    def _passes(self) -> int:
        """Corrective passes repeat slopes at τ, which say little where views are shares of views.

        Where sums prove the bound τ need not be that good.
        """
        if self.solver.corrective is not None:
            return int(self.solver.corrective)
        few = self.sums is not None or bool((self.dual.entropy.mixed.a < 0).any())
        return 0 if few else CORRECTIVE

    def where(self, asked: Asked) -> Tree:
        """Return where a run stands between two rounds."""
        shared = None if self.sharing is None else self.sharing.tree()
        return self.tree(), self.smoothing.tree(), self.step, shared, asked.memory()

    def go_on(self, tree: Tree, asked: Asked) -> None:
        """Go on from where an earlier run stood."""
        own, smoothing, self.step, shared, memory = tree
        self.smoothing = Smoothing(*smoothing)
        if shared is not None:
            self.sharing, self.iterate.more = Sharing.of(self.dual.batch), MORE
            if self.sharing is None:
                raise ValueError("answers of another problem")
            self.sharing.recall(shared, self.dual.batch)
        self.recall(own)
        asked.remember(memory)
