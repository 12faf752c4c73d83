"""Block-coordinate Frank-Wolfe as in the papers: one example a step, asked at the current θ.

Lacoste-Julien, Jaggi, Schmidt and Pletscher, *Block-Coordinate Frank-Wolfe Optimization for
Structural SVMs* (ICML 2013), Algorithm 4 with its dual of any entropy: draw a block m; ask its
oracle at θ = ∇R*(r) and at τ_m; step towards the answer by γ = 2M/(k+2M) after k steps, or by the
exact line search; θ̄ ← k/(k+2) θ̄ + 2/(k+2) θ is their weighted average. Osokin et al., *Minding the
Gaps for Block Frank-Wolfe Optimization of Structural SVMs* (ICML 2016), section 3: blocks drawn by
their gaps, and a cache of vertices that is asked first. MLE-Struct (2016) learns with it.

Steps depend on each other, so nothing runs in parallel;
:class:`mlestruct.learning.frank_wolfe.FrankWolfe` asks all examples at once and needs far fewer
calls. This is here to be compared with, and where vertices are too large for an active set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np

from mlestruct import limits
from mlestruct.learning.asking import OraclePart
from mlestruct.learning.dual import Dual
from mlestruct.learning.iterate import footprint
from mlestruct.learning.loop import AnyCheckpoint, Found, Loop
from mlestruct.learning.run import Keep, OracleRun, SolverSettings, proven, shorter
from mlestruct.learning.steering import Centre
from mlestruct.oracle import Oracle
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, Ints

NEARLY = 1.0 - 1e-9  # of the way to a vertex, as in exact steps: slopes must stay finite
# A cached vertex is stepped to while its gap is this share of the block's last one that was asked
# for, and this share of the average block's (Osokin et al., section 3.2).
OWN, AVERAGE = 0.25, 0.01

Draw = Literal["permutation", "uniform", "gaps"]


@dataclass(frozen=True)
class BCFW(SolverSettings):
    """Block-coordinate Frank-Wolfe as it was published, one example a step; for ``solver=``.

    ``rounds`` is the largest number of passes. A pass has as many steps as there are examples M;
    ``draw`` says which example a step is for: each once in random order (``permutation``), any
    (``uniform``), or one drawn in proportion to the ``gaps``. Step k has length 2M/(k+2M) if
    ``fixed``, else that of an exact line search. ``average`` certifies the weighted average of θ,
    ``keep`` is that of :class:`FrankWolfe`,
    ``cache`` keeps that many vertices per example, ``centre`` (of no paper) holds θ near where the
    last pass left it. A certificate asks the oracle once per example, after ``every`` passes.
    """

    tol: float = 1e-3
    draw: Draw = "permutation"
    fixed: bool = False
    average: bool = False
    cache: int = 0
    centre: bool = False
    rounds: int = 1000
    calls: int | None = None
    seconds: float | None = None
    every: int = 10
    random_state: int = 0
    checkpoint: AnyCheckpoint = None
    keep: Keep = "best"
    name = "bcfw"

    def __post_init__(self) -> None:
        self.check({"rounds": 0, "cache": 0, "every": 1, "random_state": 0}, draw=Draw)
        if self.fixed and self.centre:
            raise ValueError("fixed steps follow no objective, so a centre cannot help them")

    @property
    def engine(self) -> NoReturn:
        """None: a ValueError for learners that ask for one, to look at all examples at once."""
        raise ValueError(
            "solver= is a BCFW, which steps on one example after another: it is for mle_struct, "
            "trw, ssvm and piecewise, with every label; here give a FrankWolfe"
        )

    def on(self, dual: Dual, oracle: Oracle[Any], loop: Loop, start: Array | None = None) -> Found:
        """OracleRun :func:`bcfw`."""
        return bcfw(dual, oracle, self, loop, start)


def bcfw(
    dual: Dual, oracle: Oracle[Any], solver: BCFW, loop: Loop, start: Array | None = None
) -> Found:
    """Minimise the dual, until the loop's tolerance is met or its limits end it."""
    if loop.found is not None:
        return loop.found
    passes, said = Passes(solver, dual, oracle, loop, start), None
    if loop.state is not None:
        passes.go_on(loop.state)
    try:
        while True:
            loop.save(passes.where)
            due = passes.number % solver.every == 0
            why = "" if due else loop.over(passes.found())
            if due or why:
                said = passes.certified()
                why = why or loop.over(said)
                if why or said.certificate.relative <= loop.tol:
                    return passes.end(loop, said, why)
                loop.tell(said)
            passes.once(loop.late)
    except limits.OutOfTime:
        if said is None:
            raise
        return passes.end(loop, said, "seconds")


class Passes(OracleRun):
    """What passes hold besides: what the draws, the average and the cache depend on."""

    def __init__(self, solver: BCFW, dual: Dual, oracle: Oracle[Any], *given: Any) -> None:
        super().__init__(solver, dual, oracle, *given)
        batch, count, d = dual.batch, len(dual.batch), dual.features.d
        if solver.centre:
            self.hold(Centre.of(self.dual, dual.regulariser.weights(np.zeros(d)), self.start))
        self.whole = OraclePart(replace(batch), oracle)  # oracles may remember a batch
        self.blocks = [OraclePart(batch.select([m]), oracle, m) for m in range(count)]
        self.parts = [dual.features.select(np.array([m])) for m in range(count)]
        self.vertices, self.steps = np.zeros(batch.size), 0
        self.moments = np.zeros(len(dual.features.columns.index))
        self.gaps, self.mean = np.full(count, np.inf), np.zeros(d)
        self.kept: list[list[Array]] = [[] for _ in range(count)]
        self.bytes = footprint(self.dual)

    def certified(self) -> Found:
        """Ask about all examples at one θ, or at the average of all: a bound wherever τ is."""
        self.iterate.synchronise()
        averaged = self.solver.average and self.steps > 0
        theta = (self.mean if averaged else self.iterate.x.theta).copy()
        if self.number == 0 and not self.margin and self.solver.keep == "best":
            theta *= shorter(self.iterate, theta)
        tangent = self.iterate.tangent(self.share, theta)
        answers = self.ask(
            lambda score: self.whole.answer(score)[0], tangent.score, len(self.blocks)
        )
        found = proven(self.iterate, tangent, answers)
        said = self.said(found)
        if self.centre is not None:
            self.centre.follow(self.iterate, found.lag, found.gap - found.lag, self.number)
            self.hold(self.centre)
        return said

    def once(self, late: Callable[[], bool] = lambda: False) -> None:
        """Take one pass: as many steps as there are examples, until it is late."""
        for m in self._drawn():
            if late():
                break
            self._step(int(m))
        self.number += 1
        if self.centre is not None and self.number % self.solver.every:
            self.centre.at = self.iterate.x.theta.copy()
            self.hold(self.centre)

    def _drawn(self) -> Ints:
        count = len(self.blocks)
        rng = np.random.default_rng((self.solver.random_state, self.number))
        known = np.isfinite(self.gaps).all() and self.gaps.sum() > 0.0
        if self.solver.draw == "uniform":
            return rng.integers(0, count, count)
        if self.solver.draw == "permutation" or not known:
            return rng.permutation(count)
        return rng.choice(count, count, p=self.gaps / self.gaps.sum())

    def _step(self, m: int) -> None:
        """Step towards the answer at the current θ, or towards a cached vertex if good enough."""
        x, part = self.iterate.x, self.dual.batch.coordinates(m)
        weight, count = self.dual.batch.weight[m], len(self.blocks)
        score = self.parts[m].potentials(x.theta) + x.smooth[part] + x.rough[part]
        here = float(score @ x.tau[part])
        vertex = self._cached(m, score, here)
        if vertex is None:
            vertex, _ = self.ask(lambda asked: self.blocks[m].answer(asked)[0], score, 1)
            self.gaps[m] = weight * max(float(score @ vertex - here), 0.0)
            if self.solver.cache:
                self.kept[m] = [*self.kept[m], vertex][-self.solver.cache :]
        columns = self.dual.features.columns
        own = slice(columns.start[m], columns.start[m + 1])
        self.vertices[part], self.moments[own] = vertex, self.parts[m].each(vertex)
        fixed = min(2.0 * count / (self.steps + 2.0 * count), NEARLY)
        gamma = fixed if self.solver.fixed else -1.0
        self.iterate.plainly(np.array([m]), self.vertices, self.moments, gamma)
        self.mean += 2.0 / (self.steps + 2.0) * (x.theta - self.mean)
        self.steps += 1

    def _cached(self, m: int, score: Array, here: float) -> Array | None:
        if not self.kept[m] or not np.isfinite(self.gaps).all():
            return None
        best = max(self.kept[m], key=lambda vertex: float(score @ vertex))
        gap = self.dual.batch.weight[m] * float(score @ best - here)
        enough = max(OWN * self.gaps[m], AVERAGE * self.gaps.mean())
        return best if gap >= enough > 0.0 else None

    def where(self) -> Tree:
        """Return where a run stands between two passes."""
        kept = tuple(tuple(vertices) for vertices in self.kept)
        memory = tuple(one.pack() for one in (self.whole, *self.blocks))
        return self.tree(), self.steps, self.gaps, self.mean, kept, memory

    def go_on(self, tree: Tree) -> None:
        """Go on from where an earlier run stood."""
        own, self.steps, self.gaps, self.mean, kept, memory = tree
        self.kept = [list(vertices) for vertices in kept]
        self.recall(own)
        for one, remembered in zip((self.whole, *self.blocks), memory, strict=True):
            one.unpack(remembered)
