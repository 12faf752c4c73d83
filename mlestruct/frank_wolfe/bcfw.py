"""Block-coordinate Frank-Wolfe as in the papers: one example a step, asked at the current θ.

Lacoste-Julien, Jaggi, Schmidt and Pletscher, *Block-Coordinate Frank-Wolfe Optimization for
Structural SVMs* (ICML 2013), Algorithm 4 with its dual of any entropy: draw a block m; ask its
oracle at θ = ∇R*(r) and at τ_m; step towards the answer by γ = 2M/(k+2M) after k steps, or by the
exact line search; θ̄ ← k/(k+2) θ̄ + 2/(k+2) θ is their weighted average. Osokin et al., *Minding the
Gaps for Block Frank-Wolfe Optimization of Structural SVMs* (ICML 2016), section 3: blocks drawn by
their gaps, and a cache of vertices that is asked first. MLE-Struct (2016) learns with it.

Steps depend on each other, so nothing runs in parallel; :class:`FrankWolfe` asks all examples at
once and needs far fewer calls. This is here to be compared with, and where vertices are too large
for an active set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter as clock
from typing import Any

import numpy as np

from mlestruct.checkpoint import Loop, never
from mlestruct.drive import OwnRounds, Progress
from mlestruct.dual import MIX, Certificate, Dual
from mlestruct.frank_wolfe.active_set import footprint
from mlestruct.frank_wolfe.centre import Centre
from mlestruct.frank_wolfe.rounds import (
    RunState,
    certified,
    named,
    refuse_masked,
)
from mlestruct.frank_wolfe.settings import BCFW
from mlestruct.frank_wolfe.sharded_oracle import OracleShard
from mlestruct.native._door import step_plainly
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array, Ints
from mlestruct.trees import Tree

MOST = 1.0 - 1e-9  # of the way to a vertex, as in exact steps: slopes must stay finite
# A cached vertex is stepped to while its gap is this share of the block's last one that was asked
# for, and this share of the average block's (Osokin et al., section 3.2).
OWN, AVERAGE = 0.25, 0.01


def method(solver: BCFW, dual: Dual, oracle: Oracle[Any], start: Array | None) -> OwnRounds:
    """Block-coordinate Frank-Wolfe on a dual objective, as a method for the loop."""
    refuse_masked(dual, oracle)

    def rounds(loop: Loop) -> Iterator[Progress]:
        late = loop.late if loop.tree is None else never  # what a file goes on with was begun
        run = _BlockRun(solver, dual, oracle, start, late)
        if loop.tree is not None:
            run.go_on(loop.tree)
        while True:
            loop.save(run.where)
            yield run.certify() if run.number % solver.every == 0 else run.unproven()
            run.once(loop.late)

    return OwnRounds(
        "bcfw", rounds, partial(named, solver, dual, oracle, start, {}), dual.batch.size
    )


class _BlockRun(RunState):
    """What passes hold besides: what the draws, the average and the cache depend on."""

    def __init__(self, solver: BCFW, dual: Dual, oracle: Oracle[Any], *given: Any) -> None:
        super().__init__(solver, dual, oracle, *given)
        batch, count, d = dual.batch, len(dual.batch), dual.features.d
        if solver.centre:
            self.centre = Centre.of(self.dual, dual.regulariser.weights(np.zeros(d)), self.start)
            self.hold()
        self.whole = OracleShard(replace(batch), oracle, 0)  # oracles may remember a batch
        self.blocks = [OracleShard(batch.select([m]), oracle, m) for m in range(count)]
        self.parts = [dual.features.select(np.array([m])) for m in range(count)]
        self.vertices, self.steps = np.zeros(batch.size), 0
        self.moments = np.zeros(len(dual.features.columns.index))
        self.gaps, self.mean = np.full(count, np.inf), np.zeros(d)
        self.kept: list[list[Array]] = [[] for _ in range(count)]

    def where(self) -> Tree:
        kept = tuple(tuple(vertices) for vertices in self.kept)
        memory = tuple(one.memory() for one in (self.whole, *self.blocks))
        return self.tree(), self.steps, self.gaps, self.mean, kept, memory

    def go_on(self, tree: Tree) -> None:
        own, self.steps, self.gaps, self.mean, kept, memory = tree
        self.kept = [list(vertices) for vertices in kept]
        self.recall(own)
        for one, remembered in zip((self.whole, *self.blocks), memory, strict=True):
            one.remember(remembered)

    def unproven(self) -> Progress:
        """A pass that nothing is asked about, unless it is the last."""
        best = Certificate(np.inf, 0.0, np.inf, self.polytope, "", "not asked")
        said = self.said(best)
        return replace(said, left=np.inf, silent=True, prove=lambda why: self.certify())

    def certify(self) -> Progress:
        """All examples asked at one θ, or at the average of all: a valid bound wherever τ is."""
        x = self.iterate.x
        self.iterate.synchronise()
        averaged = self.solver.average and self.steps > 0
        share = 0.0 if self.dual.entropy.flat else MIX  # no logarithm of nothing
        tangent = self.iterate.tangent(share, (self.mean if averaged else x.theta).copy())
        began = clock()
        answers = self.whole(tangent.score)
        self.asking += clock() - began
        self.calls += len(self.blocks)
        self.bytes = footprint(self.dual)
        found = certified(self.iterate, tangent, answers, self.inner, self.polytope)
        said = self.progress(found)
        if self.centre is not None:
            theta, rest = x.theta.copy(), found.gap - found.lag
            self.centre.follow(self.dual, theta, x.tau, found.lag, rest, self.number)
            self.hold()
        return said

    def once(self, late: Callable[[], bool] = never) -> None:
        """One pass: as many steps as there are examples, until it is late."""
        for m in self._drawn():
            if late():
                break
            self._step(int(m))
        self.number += 1
        if self.centre is not None and self.number % self.solver.every:
            self.centre.at = self.iterate.x.theta.copy()
            self.hold()

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
        """Towards the answer at the current θ, or towards a cached vertex that is good enough."""
        iterate, part = self.iterate, self.dual.batch.coordinates(m)
        x, weight = iterate.x, self.dual.batch.weight[m]
        score = self.parts[m].potentials(x.theta) + x.smooth[part] + x.rough[part]
        here = float(score @ x.tau[part])
        vertex = self._cached(m, score, here)
        if vertex is None:
            began = clock()
            vertex, _ = self.blocks[m](score)
            self.asking, self.calls = self.asking + clock() - began, self.calls + 1
            self.gaps[m] = weight * max(float(score @ vertex - here), 0.0)
            if self.solver.cache:
                self.kept[m] = [*self.kept[m], vertex][-self.solver.cache :]
        columns = self.dual.features.columns
        own = slice(columns.start[m], columns.start[m + 1])
        self.vertices[part], self.moments[own] = vertex, self.parts[m].each(vertex)
        count = len(self.blocks)
        gamma = min(2.0 * count / (self.steps + 2.0 * count), MOST) if self.solver.fixed else -1.0
        step_plainly(iterate.at, 1, np.array([m]), self.vertices, self.moments, gamma)
        self.mean += 2.0 / (self.steps + 2.0) * (x.theta - self.mean)
        self.steps += 1

    def _cached(self, m: int, score: Array, here: float) -> Array | None:
        if not self.kept[m] or not np.isfinite(self.gaps).all():
            return None
        best = max(self.kept[m], key=lambda vertex: float(score @ vertex))
        gap = self.dual.batch.weight[m] * float(score @ best - here)
        enough = max(OWN * self.gaps[m], AVERAGE * self.gaps.mean())
        return best if gap >= enough > 0.0 else None
