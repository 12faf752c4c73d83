"""Missing labels and hidden variables: what was seen, summed over what was not.

θ maximises Σ w_m [log Z(what agrees with what was seen) − log Z] − R(θ), both log Z the surrogate's
(Dempster, Laird & Rubin 1977, section 1). It has slopes, Φᵀ(τ of the one − τ of the other), so
where a routine serves both, one descent finds its top. By Frank-Wolfe, whose τ come without slopes,
rounds fill in the means of what was not seen and fit a convex learner to them (CCCP).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.checkpoint import Loop, begin
from mlestruct.digest import digest
from mlestruct.drive import OwnRounds, Progress, drive, last, then, within
from mlestruct.dual import Certificate, Dual
from mlestruct.engine import Engine, engine_of
from mlestruct.features import Features
from mlestruct.inference import marginals
from mlestruct.inference.proof import infer, relaxed, unsearchable
from mlestruct.inference.routine import Routine, routine
from mlestruct.learners.convex import Learner
from mlestruct.learners.model import Wraps
from mlestruct.objectives.base import difference
from mlestruct.oracle import Validated, resolve
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch, pinned
from mlestruct.structures.entropy import Entropy
from mlestruct.train.direct import Descending, Proven, descents_of, estimate, likelihood
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Filled:
    """Weights, with what is proven of them.

    ``lower ≤ Σ w_m [log Z(clamped) − log Z(full)] − R(θ) ≤ upper``, both log Z the surrogate's.
    With the means of what was not seen (``target``) in its place the problem is convex;
    ``stationarity`` is how far θ is from its optimum at most: 0 only at a stationary point.
    """

    number: int
    theta: Array
    lower: float
    upper: float
    stationarity: float
    target: Array

    @property
    def left(self) -> float:
        """What filling in the means and fitting to them gains at most, relative."""
        return self.stationarity / max(1.0, abs(self.lower))

    def __str__(self) -> str:
        return (
            f"objective in [{self.lower:.6g}, {self.upper:.6g}]; with labels missing it is not "
            f"convex, and no optimum is claimed: with their means in their place these weights are "
            f"within {self.stationarity:.2g} of the best (0 at a stationary point)"
        )


@dataclass(frozen=True)
class Missing(Wraps):
    """The likelihood of what was seen, where labels are missing, of any structure with ``clamp``.

    The ``learner`` fits it, by either route, until filling in the means of what was not seen allows
    no fit that is better by more than ``tol``, relative. By Frank-Wolfe each of at most ``rounds``
    rounds fits to such means: it maximises a concave function below the objective that touches it,
    so the objective never falls by more than that fit's gap.
    """

    learner: Learner
    tol: float = 1e-4
    rounds: int = 100

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[Filled]:
        """Everything proven on the way: of each of Frank-Wolfe's rounds, of a descent's end.

        Hidden variables that are exchangeable need a ``start`` that tells them apart: weights of 0
        are stationary then. A checkpoint's rounds do not come again, but for the last of a finished
        fit.
        """
        problem = self.problem(batch, features)
        keeps = self.learner.solver.checkpoint
        loop = begin(keeps, self.name, lambda: {"start": digest(start)})
        for said in problem.run(start, loop):
            if said.own is not None:
                yield said.own
            elif said.done:
                yield problem.look(said.round, said.theta)
        loop.finish()

    @property
    def name(self) -> str:
        return f"{self.learner.name} with labels missing"

    def problem(self, batch: Batch[Any], features: Features) -> PartlySeen:
        """Of a batch with :class:`.Partial` outcomes; no optimum is claimed."""
        return PartlySeen(self, batch, pinned(batch), features)

    def run(self, problem: PartlySeen, given: Any, last: Any, loop: Loop) -> Iterator[Progress]:
        """From the weights of the one before."""
        around = replace(self, learner=replace(self.learner, regulariser=given))
        start = None if last is None else last.theta
        return replace(problem, around=around).run(start, loop)


@dataclass(frozen=True)
class PartlySeen:
    """Examples, what was seen of them, and ``around`` what they are learned by."""

    around: Missing
    batch: Batch[Any]
    clamped: Batch[Any]
    features: Features

    def run(self, start: Array | None, loop: Loop) -> Iterator[Progress]:
        """By one descent where a routine serves both kinds of examples, else by rounds of fits."""
        dual = self.dual()
        engine = engine_of(self.around.learner.solver.engine, self.around.learner.solver.workers)
        full, clamped = (self._routine(dual, batch) for batch in (dual.batch, self.clamped))
        if full is None or clamped is None:
            return self._filling(start, 0, loop)
        budget = replace(self.around.learner.solver.budget, tol=self.around.tol)
        descending = self._descending(dual, full, clamped, start, engine)
        return then(drive(descending, budget, loop), partial(self._onward, loop))

    def _onward(self, loop: Loop, end: Progress) -> Iterator[Progress] | None:
        """Rounds of fits from where the descent ended short of what odd sets allow."""
        if not end.cut or end.own.left <= self.around.tol:
            return None
        if self.around.learner.solver.budget.spent(end):
            return None
        return self._filling(end.theta, end.calls, loop)

    def _filling(self, start: Array | None, spent: int, loop: Loop) -> Iterator[Progress]:
        """Rounds of fits, where so many calls are spent."""
        around = self.around
        budget = within(around.learner.solver, loop, spent).budget
        rounds = partial(self._rounds, start, spent)
        method = OwnRounds(around.name, rounds, partial(self.setting, start))
        return drive(method, replace(budget, tol=around.tol, rounds=around.rounds), loop)

    def _rounds(self, theta: Array | None, spent: int, loop: Loop) -> Iterator[Progress]:
        """What was not seen filled in by its means, then a fit."""
        number, calls = 0, 0
        if theta is None:
            dual = self.dual()
            theta = dual.regulariser.weights(np.zeros(dual.features.d))
        if loop.tree is not None:
            number, calls, theta = loop.tree

        def where() -> Tree:
            return number, calls, theta

        while True:
            one = self.look(number, theta, loop)
            said = Progress(one.number, calls, len(self.batch), _certificate(one), one.theta)
            said = replace(said, tau=one.target, at=one.target, route="rounds of inference")
            yield replace(said, own=one, left=one.left)
            found = self._fit(one, spent + calls, loop)
            theta, number, calls = found.theta, number + 1, calls + found.calls
            loop.save(where)

    def _fit(self, one: Filled, spent: int, loop: Loop) -> Progress:
        """On what was filled in; directly from the weights before it, so that late fits are short.

        Frank-Wolfe begins at points, and those of the round before have other targets.
        """
        learner = self.around.learner.within(loop, spent)
        closer = min(learner.solver.tol, 0.1 * self.around.tol)  # else a round may end at its start
        learner = replace(learner, solver=replace(learner.solver, tol=max(closer, 0.1 * one.left)))
        batch = replace(self.batch, target=one.target)
        direct = learner.messages(learner.dual(batch, self.features)) is not None
        return last(learner.states(batch, self.features, one.theta if direct else None))

    def _routine(self, dual: Dual, batch: Batch[Any]) -> Routine | None:
        learner = self.around.learner
        if learner.messages(dual) is None:
            return None
        return routine(Entropy.of(batch, dual.entropy.rho))

    def _descending(
        self, dual: Dual, full: Routine, clamped: Routine, start: Array | None, engine: Engine
    ) -> Descending:
        pieces = difference(likelihood(dual, full), likelihood(self._like(dual), clamped))
        odd = relaxed(dual.batch, resolve(self.around.learner.oracle, dual.batch))
        odd = odd and not unsearchable(dual.batch).any()

        def proof(*asked: Any, balance: bool) -> Proven:
            _, _, theta, enough = asked
            one = self.look(0, theta, enough=0.5 * enough)
            return Proven(_certificate(one), odd, [one.target], one.left, one)

        return Descending(
            shards=lambda: closing(engine.start(pieces)),
            regulariser=dual.regulariser,
            examples=len(dual.batch),
            claim=partial(estimate, str(dual.entropy.bound)),
            coarse=max(full.first, clamped.first),
            descents=partial(descents_of, dual, full),
            tol=self.around.tol,
            setting=lambda: {**self.setting(start), "routine": digest(full)},
            size=2 * dual.batch.size,
            given=start,
            name=self.around.name,
            proof=proof,
        )

    def setting(self, start: Array | None) -> dict[str, Any]:
        """What tells this problem from others, with what was seen, and the limits of its fit."""
        solver = self.around.learner.solver
        known = {"start": digest(start), "budget": repr(solver.budget), "tol": self.around.tol}
        return {**self._like(self.dual()).named(), **known, "rounds": self.around.rounds}

    def _like(self, dual: Dual) -> Dual:
        """Of what was seen, as the learner has its examples: with their bias, without outcomes."""
        shaped = dual.batch
        batch = replace(self.clamped, target=shaped.target, bias=shaped.bias, weight=shaped.weight)
        return replace(dual, batch=batch)

    def dual(self, target: Array | None = None) -> Dual:
        """The learner's problem with this in the place of outcomes."""
        learner = self.around.learner
        target = np.zeros(self.batch.size) if target is None else target
        dual = learner.dual(replace(self.batch, target=target), self.features)
        if dual.entropy.temperature != 1:
            raise ValueError(f"{learner.name} is no likelihood: missing labels need one")
        return dual

    def look(
        self, number: int, theta: Array, loop: Loop | None = None, enough: float = 0.0
    ) -> Filled:
        """What these weights come to, and what was not seen filled in by them.

        ``enough`` is the gap of an example's log Z below which no closer proof is looked for.
        """
        dual = self.dual()
        seen, full = (self._infer(dual, b, theta, loop, enough) for b in (self.clamped, dual.batch))
        weight, cost = dual.batch.weight, dual.regulariser.value(theta)
        lower = float(weight @ (seen.lower - full.upper)) - cost
        upper = float(weight @ (seen.upper - full.lower)) - cost
        inside = float(weight @ (seen.upper - seen.lower + full.upper - full.lower))
        lack = dual.features.moments(dual.weigh(seen.tau - full.tau))
        left = inside + dual.regulariser.bracket(theta, lack)
        return Filled(number, theta, lower, upper, left, seen.tau)

    def _infer(
        self, dual: Dual, batch: Batch[Any], theta: Array, loop: Loop | None, enough: float
    ) -> Any:
        """Marginals and log Z of both kinds of examples under the same entropy."""
        learner, scores, rho = self.around.learner, dual.scores(theta), dual.entropy.rho
        if (by := self._routine(dual, batch)) is not None:
            entropy, oracle = Entropy.of(batch, rho), Validated(resolve(learner.oracle, batch))
            return infer(batch, entropy, oracle, by, scores, enough=enough * len(batch))
        tol = min(learner.solver.tol, 0.1 * self.around.tol)
        solver = replace(learner.solver, tol=tol, checkpoint=loop)
        return marginals(batch, scores, learner.oracle, rho=rho, solver=solver)


def _certificate(one: Filled) -> Certificate:
    return Certificate(
        one.stationarity, 0.0, one.lower, "surrogate", "not convex", withheld=str(one)
    )
