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

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from mlestruct.checkpoint import Keeping, Loop, begin
from mlestruct.digest import digest, name_of
from mlestruct.dual import MIX, Dual
from mlestruct.frank_wolfe.active_set import Iterate, footprint
from mlestruct.frank_wolfe.asking import Asked
from mlestruct.frank_wolfe.best import Best
from mlestruct.frank_wolfe.centre import Centre
from mlestruct.frank_wolfe.proof import Round, beginning, certified, refuse_masked, short_of
from mlestruct.frank_wolfe.state import Cost, State, noted
from mlestruct.frank_wolfe.steps import plain_step
from mlestruct.kernels import clock
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array, Ints, as_count, as_numbers
from mlestruct.trees import Tree

Draw = Literal["permutation", "uniform", "gaps"]
MOST = 1.0 - 1e-9  # of the way to a vertex: where there is an entropy its slopes must stay finite
# A cached vertex is stepped to while its gap is this share of the block's last one that was asked
# for, and this share of the average block's (Osokin et al., section 3.2).
OWN, AVERAGE = 0.25, 0.01


@dataclass(frozen=True)
class BCFW:
    """Minimises a :class:`Dual` by the papers' block-coordinate steps; give it as ``solver=``.

    ``rounds`` are passes of as many steps as there are examples, drawn by ``draw``: each once in
    random order (``permutation``), ``uniform`` with replacement, or in proportion to their
    ``gaps``. ``fixed`` steps are 2M/(k+2M), else the line search is exact. ``average`` certifies
    the weighted average of θ, ``cache`` keeps that many vertices per example, and ``centre`` holds
    θ near where it was at the last pass, which no paper does. A certificate takes a call per
    example: it is made every ``every`` passes, and these calls are counted.
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
    checkpoint: Keeping = None

    def __post_init__(self) -> None:
        for name, fewest in {"rounds": 0, "cache": 0, "every": 1, "random_state": 0}.items():
            as_count(getattr(self, name), name, fewest)
        for name in ("tol", "calls", "seconds"):
            limit = getattr(self, name)
            if (limit is not None or name == "tol") and not as_numbers(limit, name) >= 0:
                raise ValueError(f"{name} is {limit}; it must be 0 or more")
        if self.draw not in get_args(Draw):
            raise ValueError(f"draw is one of {', '.join(get_args(Draw))}, not {self.draw!r}")
        if self.fixed and self.centre:
            raise ValueError("fixed steps follow no objective, so a centre cannot help them")

    def run(self, dual: Dual, oracle: Oracle[Any], start: Array | None = None) -> Iterator[State]:
        """Yields every certified pass's state; the last has ``done`` set."""
        refuse_masked(dual, oracle)
        setting = partial(self._setting, dual, oracle, start)
        loop = begin(self.checkpoint, "bcfw", setting, dual.batch.size)
        yield from noted(loop, partial(self._passes, dual, oracle, start, loop))

    def solve(self, dual: Dual, oracle: Oracle[Any], start: Array | None = None) -> State:
        """The last state of :meth:`run`."""
        *_, last = self.run(dual, oracle, start)
        return last

    def _setting(self, dual: Dual, oracle: Oracle[Any], start: Array | None) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        del own["checkpoint"]
        given = "" if isinstance(self.checkpoint, Loop) else digest(start)
        return {**dual.named(), "oracle": name_of(oracle), "start": given, **own}

    def _passes(
        self, dual: Dual, oracle: Oracle[Any], start: Array | None, loop: Loop, spent: float
    ) -> Iterator[State]:
        began, run = clock() - spent, _Run(self, dual, oracle, start)
        if loop.tree is not None:
            run.recall(loop.tree)
        while True:
            loop.save(run.tree)
            if run.number % self.every == 0 or run.number >= self.rounds or run.ended:
                state = run.certify(clock() - began)
                yield state
                if state.done:
                    return
            run.once(clock() - began)


class _Run:
    """Where a run stands: τ, θ, and what the draws and the cache depend on."""

    def __init__(self, solver: BCFW, dual: Dual, oracle: Oracle[Any], start: Array | None) -> None:
        self.solver, self.polytope, self.best = solver, oracle.polytope, Best()
        self.dual, self.inner = beginning(dual, oracle)
        batch, count = dual.batch, len(dual.batch)
        tau = self.inner.tau if start is None else self.inner.pull(start)
        self.iterate = Iterate.start(self.dual, tau, self.inner.tau, active=False)
        self.centre: Centre | None = None
        if solver.centre:
            weights = dual.regulariser.weights(np.zeros(dual.features.d))
            self.centre = Centre.of(self.dual, weights, tau)
            self.iterate.regularise(self.centre.moved(dual.regulariser))
        self.whole = Asked(replace(batch), oracle, 0)  # oracles may remember a batch
        self.blocks = [Asked(batch.select([m]), oracle, m) for m in range(count)]
        self.parts = [dual.features.select(np.array([m])) for m in range(count)]
        self.vertices, self.moments = (
            np.zeros(batch.size),
            np.zeros(len(dual.features.columns.index)),
        )
        self.number, self.steps, self.calls, self.asking = 0, 0, 0, 0.0
        self.ended, self.gaps = False, np.full(count, np.inf)
        self.mean = np.zeros(dual.features.d)
        self.kept: list[list[Array]] = [[] for _ in range(count)]

    def tree(self) -> Tree:
        own = self.number, self.steps, self.calls, self.asking, self.ended
        kept = tuple(tuple(vertices) for vertices in self.kept)
        held = None if self.centre is None else self.centre.tree()
        memory = tuple(one.memory() for one in (self.whole, *self.blocks))
        point = self.iterate.tree()
        return own, self.best.tree(), held, point, self.gaps, self.mean, kept, memory

    def recall(self, tree: Tree) -> None:
        own, best, held, point, self.gaps, self.mean, kept, memory = tree
        self.number, self.steps, self.calls, self.asking, self.ended = own
        self.best, self.kept = Best(*best), [list(vertices) for vertices in kept]
        if self.centre is not None:
            self.centre.recall(held)
            self.iterate.regularise(self.centre.moved(self.dual.regulariser))
        self.iterate.recall(point)
        for one, remembered in zip((self.whole, *self.blocks), memory, strict=True):
            one.remember(remembered)

    def certify(self, seconds: float) -> State:
        """All examples asked at one θ, or at the average of all: a valid bound wherever τ is."""
        solver, x = self.solver, self.iterate.x
        self.iterate.synchronise()
        averaged = solver.average and self.steps > 0
        share = 0.0 if self.dual.entropy.flat else MIX  # no logarithm of nothing
        tangent = self.iterate.tangent(share, (self.mean if averaged else x.theta).copy())
        began = clock()
        vertices, upper = self.whole(tangent.score)
        self.asking += clock() - began
        self.calls += len(self.blocks)
        found = certified(self.iterate, tangent, vertices, upper, self.inner, self.polytope)
        proof = self.best.take(found.proof, found.gap, tangent.theta, tangent.at, x.tau)
        self._hold(found)
        met, late = proof.relative <= solver.tol, solver.seconds is not None and self.ended
        done = met or self.ended or self.number >= solver.rounds
        best, short = self.best, short_of(met, late, self.ended) if done else ""
        return State(
            self.number, self.calls, seconds, proof, best.theta, best.tau, best.at,
            self._cost(vertices), done, short=short, asking=self.asking,
        )  # fmt: skip

    def _hold(self, found: Round) -> None:
        """The centre follows what a certificate says of it."""
        if self.centre is not None:
            theta, tau = self.iterate.x.theta.copy(), self.iterate.x.tau
            rest = found.gap - found.lag
            self.centre.follow(self.dual, theta, tau, found.lag, rest, self.number)
            self.iterate.regularise(self.centre.moved(self.dual.regulariser))

    def _cost(self, vertices: Array) -> Cost:
        moments, per_call = self.dual.features.each(vertices), self.asking / self.calls
        room = footprint(self.dual, vertices, moments, active=False)
        return Cost(self.solver.rounds, len(self.blocks), per_call, room)

    def once(self, seconds: float) -> None:
        """One pass: as many steps as there are examples."""
        for m in self._drawn():
            self._step(int(m))
        self.number += 1
        if self.centre is not None and self.number % self.solver.every:
            self.centre.at = self.iterate.x.theta.copy()
            self.iterate.regularise(self.centre.moved(self.dual.regulariser))
        limits = self.solver
        late = limits.seconds is not None and seconds > limits.seconds
        self.ended = late or (limits.calls is not None and self.calls >= limits.calls)

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
        here = score @ x.tau[part]
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
        plain_step(m, self.vertices, self.moments, gamma, MOST, iterate.p, x, iterate.s)
        self.mean += 2.0 / (self.steps + 2.0) * (x.theta - self.mean)
        self.steps += 1

    def _cached(self, m: int, score: Array, here: float) -> Array | None:
        if not self.kept[m] or not np.isfinite(self.gaps).all():
            return None
        best = max(self.kept[m], key=lambda vertex: float(score @ vertex))
        gap = self.dual.batch.weight[m] * float(score @ best - here)
        enough = max(OWN * self.gaps[m], AVERAGE * self.gaps.mean())
        return best if gap >= enough > 0.0 else None
