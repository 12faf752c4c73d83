"""Rounds: one parallel oracle call per example at a common θ, then sequential exact block steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.checkpoint import Loop, never
from mlestruct.dual import MIX, Dual, Interior
from mlestruct.engine import engine_of
from mlestruct.frank_wolfe import flat, steps
from mlestruct.frank_wolfe.active_set import Iterate, capacity, footprint
from mlestruct.frank_wolfe.atoms import scaled_pass
from mlestruct.frank_wolfe.centre import Centre
from mlestruct.frank_wolfe.line_search import Line, search
from mlestruct.frank_wolfe.proof import (
    Best,
    Reply,
    Start,
    beginning,
    certified,
    is_margin,
    named,
    refuse_masked,
    settings_of,
    summed,
)
from mlestruct.frank_wolfe.settings import FrankWolfe, Step, Sums
from mlestruct.frank_wolfe.sharded_oracle import RemoteOracle, ShardedOracle
from mlestruct.frank_wolfe.sharing import LAST, MORE, Sharing
from mlestruct.frank_wolfe.smoothing import Smoothing, tries
from mlestruct.kernels import clock
from mlestruct.method import Progress
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array, Ints
from mlestruct.trees import Tree

FLOOR_SHARE, LEAST_FLOOR = 1e-3, 1e-9  # the interior point keeps this share of δ as its weight
WORTH = 0.25  # of the new vertices' gain: a corrective pass that gains less is its round's last
# Without entropy θ(τ) leaps from round to round. Max-margin asks between it and the best θ so far.
BETWEEN = 0.5
CORRECTIVE = 8  # passes at most, unless it is set
FEWEST = 16  # atoms an example that memory must have room for, else plain steps do better
SUMMED = 3  # rounds between bounds by exact sums, where there are such
CHECKED = 25  # rounds between recomputations of τ and r from scratch


@dataclass(frozen=True)
class Rounds:
    """Frank-Wolfe on a dual objective, as a method for the loop."""

    solver: FrankWolfe
    dual: Dual
    oracle: Oracle[Any]
    start: Array | None
    sums: Sums | None
    size: int
    inner: Interior | None = None
    name: str = "frank_wolfe"

    def __post_init__(self) -> None:
        refuse_masked(self.dual, self.oracle)

    def setting(self) -> dict[str, Any]:
        own = settings_of(self.solver, without=("workers", "engine", "checkpoint"))
        known = named(self.solver, self.dual, self.oracle, self.start)
        return {**known, "sums": self.sums is not None, **own}

    def rounds(self, loop: Loop) -> Iterator[Progress]:
        solver = _counted(self.solver, self.dual, self.sums)
        engine = engine_of(solver.engine, solver.workers)
        remote = RemoteOracle(engine, self.oracle)
        late = loop.late if loop.tree is None else never  # what a file goes on with was begun
        run = _Run.begin(solver, self.dual, remote, self.start, self.inner, late)
        with closing(ShardedOracle(engine, self.dual.batch, self.oracle, solver.shards)) as asked:
            if loop.tree is not None:
                run.recall(loop.tree, asked)
            while True:
                loop.save(partial(run.tree, asked))
                found = run.ask(asked, self.sums)
                yield run.progress(found)
                run.move(found)


def _counted(solver: FrankWolfe, dual: Dual, sums: Sums | None) -> FrankWolfe:
    """Corrective passes repeat slopes at τ, which say little where views are shares of views.

    Where sums prove the bound τ need not be that good.
    """
    if solver.corrective is not None:
        return solver
    shares = bool((dual.entropy.mixed.a < 0).any())
    return replace(solver, corrective=0 if shares or sums is not None else CORRECTIVE)


def take(
    solver: FrankWolfe,
    step: Step,
    number: int,
    iterate: Iterate,
    vertices: Array,
    margin: bool,
    sharing: Sharing | None,
) -> None:
    """One round's steps towards these vertices."""
    dual = iterate.dual
    order, moments = np.arange(len(dual.batch)), dual.features.each(vertices)
    iterate.make_room(vertices, moments)
    warm = number < solver.warm and not margin and step in ("pairwise", "block")
    if warm or step in ("batch", "batch_fixed"):
        gamma = 2.0 / (number + 3.0) if step == "batch_fixed" else None
        _joint_step(iterate, vertices, moments, gamma, 0.9 if warm else 1.0 - 1e-9, number)
    elif step == "pairwise":
        more = 0 if sharing is None else MORE
        gained = _towards(iterate, order, vertices, moments, number, more)
        if sharing is not None:

            def shared(order: Ints, found: Array) -> float:
                moments = dual.features.each(found)
                iterate.make_room(found, moments)
                return _towards(iterate, order, found, moments, number, more)

            sharing.take(iterate, vertices, gained, shared)
        count, least = solver.corrective or 0, WORTH * gained
        p, x, s, atoms = iterate.p, iterate.x, iterate.s, iterate.atoms
        if dual.entropy.flat and dual.regulariser.plain:
            gram = iterate.gram = flat.gram_of(atoms, iterate.gram)
            count, least = flat.MORE * count, flat.WORTH * gained
            flat.quadratic_passes(count, least, order, number, p, x, atoms, gram, s)
        else:
            given = order, vertices, moments, number, iterate.floor, more, p, x, atoms, s
            steps.passes(False, count, least, *given)
    else:
        steps.plain_pass(order, vertices, moments, iterate.p, iterate.x, iterate.s)


def _joint_step(
    iterate: Iterate, vertices: Array, moments: Array, gamma: float | None, most: float, now: int
) -> None:
    """One step of all blocks together by a common γ, exact unless it is given."""
    delta = vertices - iterate.x.tau
    if gamma is None:
        gamma = _along(iterate, delta, iterate.x.r - iterate.dual.residual(vertices), most)
    iterate.x.tau[:] += gamma * delta
    if iterate.atoms is not None:
        scaled_pass(vertices, moments, now, gamma, iterate.p, iterate.atoms)
    iterate.synchronise()


def _along(iterate: Iterate, delta: Array, change: Array, most: float) -> float:
    dual, p, x = iterate.dual, iterate.p, iterate.x
    linear, quadratic = -float(dual.batch.bias @ dual.weigh(delta)), 0.0
    if p.ridge:
        linear -= float(x.theta @ change)
        quadratic = float((change**2 / iterate.regulariser.lam).sum())
    line, d = dual.entropy.line(x.tau, delta), len(change)
    a, t, dt = line.a, line.t, line.dt
    moving = (a != 0) & (dt != 0)
    along = Line(
        linear, quadratic, x.r, change, np.arange(d), d, p.ridge, p.terms,
        1.0, a[moving], t[moving], dt[moving], int(moving.sum()),
    )  # fmt: skip
    return float(search(along, most)[0])


def _towards(
    iterate: Iterate, order: Ints, vertices: Array, moments: Array, number: int, more: int
) -> float:
    """These blocks' vertices become atoms and are stepped to; returns what that gains."""
    p, x, s, atoms = iterate.p, iterate.x, iterate.s, iterate.atoms
    given = order, vertices, moments, number, iterate.floor, more, p, x, atoms, s
    return float(steps.passes(True, 1, 0.0, *given))


@dataclass
class _Run:
    """The state of a run: τ and its atoms, θ's centre, where to ask next, the best proof so far."""

    solver: FrankWolfe
    dual: Dual
    polytope: str
    inner: Interior
    start: Array
    iterate: Iterate
    centre: Centre | None
    margin: bool
    vertex_first: bool  # max-margin begins at a vertex, which becomes an atom
    step: Step
    best: Best
    first: Start
    smoothing: Smoothing
    tried: bool
    sharing: Sharing | None = None
    number: int = 0
    asking: float = 0.0  # seconds
    bytes: int = 0

    @classmethod
    def begin(
        cls,
        solver: FrankWolfe,
        dual: Dual,
        oracle: Any,
        start: Array | None,
        known: Interior | None,
        late: Callable[[], bool],
    ) -> _Run:
        margin = is_margin(dual)
        dual, inner = beginning(dual, oracle, known, late)
        tau = inner.tau if start is None else inner.pull(start)
        iterate, centre = Iterate.start(dual, tau, inner.tau, active=False), None
        if solver.centre and solver.step != "batch_fixed":
            r = np.zeros(dual.features.d) if start is None else iterate.x.r
            at = dual.regulariser.weights(r)
            centre = Centre.of_margin(dual, at) if margin else Centre.of(dual, at, tau)
            iterate.regularise(centre.moved(dual.regulariser))
        return cls(
            solver, dual, oracle.polytope, inner, tau, iterate, centre, margin,
            margin and start is None, solver.step, Best(last=solver.keep == "last"),
            Start(dual, inner, oracle), Smoothing(), tries(dual.entropy),
        )  # fmt: skip

    def tree(self, asked: ShardedOracle) -> Tree:
        own = self.step, self.number, self.asking, self.bytes
        held = None if self.centre is None else self.centre.tree()
        shared = None if self.sharing is None else self.sharing.tree()
        point, memory = self.iterate.tree(), asked.running.memory()
        kept = self.best.tree(), self.first.tree(), self.smoothing.tree()
        return own, kept, held, shared, point, memory

    def recall(self, tree: Tree, asked: ShardedOracle) -> None:
        own, (best, first, smoothing), held, shared, point, memory = tree
        self.step, self.number, self.asking, self.bytes = own
        self.best, self.smoothing = Best(*best), Smoothing(*smoothing)
        self.first.recall(first)
        if self.centre is not None:
            self.centre.recall(held)
            self.iterate.regularise(self.centre.moved(self.dual.regulariser))
        if shared is not None:
            self.sharing = Sharing.recalled(self.dual.batch, shared)
        self.iterate.recall(point)
        asked.running.remember(memory)

    def ask(self, asked: ShardedOracle, sums: Sums | None) -> Reply:
        """Every example's best vertex at θ and at a point near τ, and what that proves."""
        if self.number and self.number % CHECKED == 0:
            self.iterate.synchronise()
        theta = self.iterate.x.theta.copy()
        if self.margin and self.step == "pairwise" and self.number:
            theta = BETWEEN * self.best.theta + (1.0 - BETWEEN) * theta
        if self.number == 0 and self.centre is not None and not self.margin:
            theta *= self._shorter(theta)
        share = 0.0 if self.dual.entropy.flat else max(self.smoothing.share, MIX)
        tangent = self.iterate.tangent(share, theta)
        began = clock()
        vertices, upper = asked(tangent.score)
        self.asking += clock() - began
        if self.number == 0:
            self._plan(vertices)
        found = certified(self.iterate, tangent, vertices, upper, self.inner, self.polytope)
        due = sums is not None and self.number % SUMMED == 0
        return summed(found, self.iterate, sums) if sums is not None and due else found

    def _shorter(self, theta: Array) -> float:
        """Newton's share of the first step, by the curvature of independent parts."""
        dual, tau = self.dual, self.iterate.x.tau
        spread = dual.features.potentials(theta) ** 2 * np.maximum(tau * (1.0 - tau), 0.0)
        bend = float(dual.weigh(spread).sum()) + float(dual.regulariser.lam @ theta**2)
        return float(np.clip(theta @ self.iterate.x.r / max(bend, 1e-300), 0.0, 1.0))

    def _plan(self, vertices: Array) -> None:
        """The kind of step, and what it will need, from the first vertices."""
        dual, moments = self.dual, self.dual.features.each(vertices)
        if self.step == "auto":
            self.step = "pairwise" if capacity(dual, vertices, moments) >= FEWEST else "block"
        active = self.step == "pairwise"
        self.bytes = footprint(dual, vertices, moments, active=active)
        if active:
            regulariser = self.iterate.regulariser
            self.iterate = Iterate.start(dual, self.start, self.inner.tau, active=True)
            self.iterate.regularise(regulariser)
            if self.vertex_first:
                self.iterate.bases_to_atoms(self.start)
            self.sharing = None if dual.entropy.flat else Sharing.of(dual.batch)
            if self.sharing is not None:
                self.bytes += 16 * LAST * dual.batch.size

    def progress(self, found: Reply) -> Progress:
        """The best so far, this round's among it."""
        best, examples, tangent = self.best, len(self.dual.batch), found.tangent
        proof = best.take(found.proof, found.primal, tangent.theta, found.at, self.iterate.x.tau)
        calls, most = (self.number + 1) * examples, self.solver.calls
        began = clock()
        self.first.compare(best, self.iterate, found, None if most is None else most - calls)
        self.asking += clock() - began
        said = Progress(
            self.number, calls + self.first.calls, examples, proof, best.theta, best.tau,
            best.at, asking=self.asking, bytes=self.bytes,
        )  # fmt: skip
        return replace(said, instead=self.first.instead(said, best))

    def move(self, found: Reply) -> None:
        """One round's steps; then θ's centre and δ follow."""
        iterate, number, entropic = self.iterate, self.number, not self.dual.entropy.flat
        if entropic:
            iterate.floor = max(FLOOR_SHARE * self.smoothing.share, LEAST_FLOOR)
        take(self.solver, self.step, number, iterate, found.vertices, self.margin, self.sharing)
        if self.centre is not None:
            theta, rest = iterate.x.theta.copy(), found.gap - found.lag
            if self.margin:
                self.centre.at = self.best.theta
            else:
                self.centre.follow(self.dual, theta, iterate.x.tau, found.lag, rest, number)
            iterate.regularise(self.centre.moved(self.dual.regulariser))
        self.number += 1
        if self.step == "pairwise" and self.number >= self.solver.warm and entropic:
            objective = found.proof.objective
            self.smoothing.follow(found.gap, found.mass, objective, self.tried)
