"""Block-coordinate Frank-Wolfe as in the papers: one example a step, asked at the current θ.

Lacoste-Julien, Jaggi, Schmidt and Pletscher, *Block-Coordinate Frank-Wolfe Optimization for
Structural SVMs* (ICML 2013), Algorithm 4 with its dual of any entropy: draw a block m; ask its
oracle at θ = ∇R*(r) and at τ_m; step towards the answer by γ = 2M/(k+2M) after k steps, or by the
exact line search; θ̄ ← k/(k+2) θ̄ + 2/(k+2) θ is their weighted average. MLE-Struct (2016) learns
with it.

Steps depend on each other, so nothing runs in parallel;
:class:`mlestruct.learning.frank_wolfe.FrankWolfe` asks all examples at once and needs far fewer
calls. This is here to be compared with, and where vertices are too large for an active set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter as clock
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from mlestruct import limits
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import NEARLY, Keep, OraclePart, OracleRun, SolverSettings
from mlestruct.learning.loop import AnyCheckpoint, Found, Loop
from mlestruct.oracle import Oracle
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array

Draw = Literal["permutation", "uniform"]


@dataclass(frozen=True)
class BCFW(SolverSettings):
    """Block-coordinate Frank-Wolfe as it was published, one example a step; for ``solver=``.

    ``rounds`` is the largest number of passes. A pass has as many steps as there are examples M;
    ``draw`` says which example a step is for: each once in random order (``permutation``), or any
    (``uniform``). Step k has length 2M/(k+2M) if ``fixed``, else that of an exact line search.
    ``average`` certifies the weighted average of θ, ``keep`` is that of :class:`FrankWolfe`. A
    certificate asks the oracle once per example, after ``every`` passes.
    """

    tol: float = 1e-3
    draw: Draw = "permutation"
    fixed: bool = False
    average: bool = False
    rounds: int = 1000
    calls: int | None = None
    seconds: float | None = None
    every: int = 10
    random_state: int = 0
    checkpoint: AnyCheckpoint = None
    keep: Keep = "best"
    name = "bcfw"
    LEAST: ClassVar[dict[str, int]] = {"rounds": 0, "every": 1, "random_state": 0}
    KINDS: ClassVar[dict[str, Any]] = {"draw": Draw, "keep": Keep}

    @property
    def engine(self) -> NoReturn:
        """None: a ValueError for learners that ask for one, to look at all examples at once."""
        raise ValueError(
            "solver= is a BCFW, which steps on one example after another: it is for mle_struct, "
            "trw, ssvm and piecewise, with every label; here give a FrankWolfe"
        )

    def on(self, dual: Dual, oracle: Oracle[Any], loop: Loop, start: Array | None = None) -> Found:
        """Minimise the dual, until the loop's tolerance is met or its limits end it."""
        if loop.found is not None:
            return loop.found
        passes, said = Passes(self, dual, oracle, loop, start), None
        if loop.state is not None:
            passes.go_on(loop.state)
        try:
            while True:
                loop.save(passes.where)
                due = passes.number % self.every == 0
                why = "" if due else loop.over(passes.found())
                if due or why:
                    said = passes.certified()
                    why, met = why or loop.over(said), said.certificate.relative <= loop.tol
                    if why or met:
                        return loop.end(said, "" if met else why)
                    loop.tell(said)
                passes.once(loop.late)
        except limits.OutOfTime:
            if said is None:
                raise
            return loop.end(said, "seconds")


class Passes(OracleRun):
    """What passes hold besides: the steps so far, and the average of the weights."""

    KEPT = (*OracleRun.KEPT, "steps", "mean")

    def __init__(self, solver: BCFW, dual: Dual, oracle: Oracle[Any], *given: Any) -> None:
        super().__init__(solver, dual, oracle, *given)
        batch, count, d = dual.batch, len(dual.batch), dual.features.d
        self.whole = OraclePart(replace(batch), oracle)  # oracles may remember a batch
        self.blocks = [OraclePart(batch.select([m]), oracle, m) for m in range(count)]
        self.parts = [dual.features.select(np.array([m])) for m in range(count)]
        self.vertices, self.steps, self.mean = np.zeros(batch.size), 0, np.zeros(d)
        self.moments = np.zeros(len(dual.features.columns.index))

    def certified(self) -> Found:
        """Ask about all examples at one θ, or at the average of all: a bound wherever τ is."""
        self.iterate.synchronise()
        averaged = self.solver.average and self.steps > 0
        theta = (self.mean if averaged else self.iterate.x.theta).copy()
        question, began = self.question(theta, self.share), clock()
        answers, _ = self.whole.answer(question[2])
        self.asking, self.calls = self.asking + clock() - began, self.calls + len(self.blocks)
        self.proven(question, answers)
        return self.found()

    def once(self, late: Callable[[], bool] = lambda: False) -> None:
        """Take one pass: as many steps as there are examples, until it is late."""
        x, batch, count = self.iterate.x, self.dual.batch, len(self.blocks)
        columns = self.dual.features.columns
        rng = np.random.default_rng((self.solver.random_state, self.number))
        uniform = self.solver.draw == "uniform"
        for m in rng.integers(0, count, count) if uniform else rng.permutation(count):
            if late():
                break
            part, block, features = batch.coordinates(int(m)), self.blocks[m], self.parts[m]
            score = features.potentials(x.theta) + x.smooth[part] + x.rough[part]
            began = clock()
            (vertex, _), _ = block.answer(score)
            self.asking, self.calls = self.asking + clock() - began, self.calls + 1
            own = slice(columns.start[m], columns.start[m + 1])
            self.vertices[part], self.moments[own] = vertex, features.each(vertex)
            fixed = min(2.0 * count / (self.steps + 2.0 * count), NEARLY)
            gamma = fixed if self.solver.fixed else -1.0
            self.iterate.plainly(np.array([m]), self.vertices, self.moments, gamma)
            self.mean += 2.0 / (self.steps + 2.0) * (x.theta - self.mean)
            self.steps += 1
        self.number += 1

    def where(self) -> Tree:
        """Return where a run stands between two passes."""
        return self.tree(), tuple(one.pack() for one in (self.whole, *self.blocks))

    def go_on(self, tree: Tree) -> None:
        """Go on from where an earlier run stood."""
        own, memory = tree
        self.recall(own)
        for one, remembered in zip((self.whole, *self.blocks), memory, strict=True):
            one.unpack(remembered)
