"""Missing labels and hidden variables: what was seen, summed over what was not.

θ maximises Σ w_m [log Z(what agrees with what was seen) − log Z] − R(θ), both log Z the surrogate's
(Dempster, Laird & Rubin 1977, section 1). It has slopes, Φᵀ(τ of the one − τ of the other), so
where a routine serves both, one descent finds its top. By Frank-Wolfe, whose τ come without slopes,
rounds fill in the means of what was not seen and fit a convex learner to them (CCCP).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.inference import marginals
from mlestruct.inference.forests import ForwardBackward
from mlestruct.inference.proof import infer, relaxed, unsearchable
from mlestruct.inference.routine import Routine, routine
from mlestruct.learners.base import Start, Wraps
from mlestruct.learners.convex import Learner
from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.minimise import descents, minimise
from mlestruct.learning.problem import Difference, LikelihoodPart, Proof, SurrogateProblem
from mlestruct.learning.tied import tied
from mlestruct.oracle import Validated, resolve
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch, pinned
from mlestruct.structures.entropy import Entropy


class Filled(NamedTuple):
    """What is proven of weights, and what was not seen filled in by its means under them.

    The objective Σ w_m [log Z(clamped) − log Z(full)] − R(θ), both log Z the surrogate's, lies
    between the certificate's and ``upper``. With the means (``target``) in the place of what was
    not seen the problem is convex, and the certificate's gap is how far θ is from its optimum at
    most: 0 only at a stationary point. ``missing`` are the moments that tell.
    """

    theta: Array
    certificate: Certificate
    upper: float
    target: Array
    missing: Array


@dataclass(frozen=True)
class Missing(Wraps):
    """The likelihood of what was seen, where labels are missing, of any structure with ``clamp``.

    The ``learner`` fits it, by either route, until filling in the means of what was not seen allows
    no fit that is better by more than ``tol``, relative. By Frank-Wolfe each of at most ``rounds``
    rounds fits to such means: it maximises a concave function below the objective that touches it,
    so the objective never falls by more than that fit's gap. Hidden variables that are exchangeable
    need a start that tells them apart: weights of 0 are stationary then.
    """

    learner: Learner
    tol: float = 1e-4
    rounds: int = 100

    @property
    def name(self) -> str:
        return f"{self.learner.name} with labels missing"

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """By one descent where a routine serves both kinds of examples, else by rounds of fits."""
        solver = self.learner.solver
        engine = engine_of(solver.engine, solver.workers)
        seen, theta = PartlySeen(self.learner, self.tol, batch, features), None
        if start is not None:
            theta = start.theta if isinstance(start, Found) else start
        if seen.full is not None and seen.clamped is not None:
            loop.tol = self.tol
            return minimise(seen.problem(engine), loop, theta)
        return self._fill(seen, theta, loop)

    def _fill(self, seen: PartlySeen, theta: Array | None, loop: Loop) -> Found:
        """What was not seen filled in by its means, then a fit."""
        number, calls, count = 0, 0, len(seen.batch)
        loop.tol, loop.rounds = self.tol, self.rounds
        if theta is None:
            theta = seen.dual.regulariser.weights(np.zeros(seen.dual.features.d))
        if loop.state is not None:
            number, calls, theta = loop.state
        while True:
            one = seen.look(theta, loop)
            said = Found(
                theta, one.certificate, one.target, one.target, number, calls, count,
                "rounds of inference",
            )  # fmt: skip
            why, left = loop.over(said), one.certificate.relative
            if why or left <= loop.tol:
                return loop.end(said, "" if left <= loop.tol else why)
            loop.tell(said)
            found = seen.fit(one, loop, calls)
            theta, number, calls = found.theta, number + 1, calls + found.calls
            loop.save((number, calls, theta))

    def own(self) -> dict[str, Any]:
        return super().own() | {"tol of missing": self.tol}


class PartlySeen:
    """Examples and what was seen of them, as a learner has both: two batches, one entropy."""

    def __init__(self, learner: Learner, tol: float, batch: Batch[Any], features: Features) -> None:
        self.learner, self.tol, self.batch, self.features = learner, tol, batch, features
        zeros = np.zeros(batch.size)
        self.dual = dual = learner.dual(replace(batch, target=zeros), features)
        if dual.entropy.temperature != 1:
            raise ValueError(f"{learner.name} is no likelihood: missing labels need one")
        shaped, clamped = dual.batch, pinned(batch)
        self.seen = replace(clamped, target=zeros, bias=shaped.bias, weight=shaped.weight)
        self.full, self.clamped = self._routine(shaped), self._routine(self.seen)

    def _routine(self, batch: Batch[Any]) -> Routine | None:
        if self.learner.messages(self.dual) is None:
            return None
        return routine(Entropy.of(batch, self.dual.entropy.rho))

    def problem(self, engine: Any) -> SeenLikelihood:
        """Minus the likelihood of what was seen."""
        assert self.full is not None
        assert self.clamped is not None
        known = {"features": self.dual.features, "entropy": self.dual.entropy}
        parts: list[Any] = []
        for one, by in ((self.dual.batch, self.full), (self.seen, self.clamped)):
            part = LikelihoodPart(batch=one, bias=one.bias, routine=by, **known)  # type: ignore[arg-type]
            parts.append(tied(part) if isinstance(by, ForwardBackward) else part)
        whole = Difference(batch=self.dual.batch, more=parts[0], less=parts[1])
        batch, features, ridge = self.dual.batch, self.dual.features, self.dual.regulariser
        steps = descents(batch, features, ridge, self.full.alike, dear=not self.full.exact)
        coarse = max(self.full.first, self.clamped.first)
        problem = SeenLikelihood(whole, ridge, engine, steps, coarse, 1)
        problem.partly, problem.bound = self, str(self.dual.entropy.bound)
        return problem

    def look(self, theta: Array, loop: Loop | None = None, enough: float = 0.0) -> Filled:
        """What these weights come to, and what was not seen filled in by them.

        ``enough`` is the gap of an example's log Z below which no closer proof is looked for.
        """
        dual = self.dual
        seen, full = (
            self._infer(batch, by, theta, loop, enough)
            for batch, by in ((self.seen, self.clamped), (dual.batch, self.full))
        )
        weight, cost = dual.batch.weight, dual.regulariser.value(theta)
        lower = float(weight @ (seen.lower - full.upper)) - cost
        upper = float(weight @ (seen.upper - full.lower)) - cost
        inside = float(weight @ (seen.upper - seen.lower + full.upper - full.lower))
        lack = dual.features.moments(dual.weigh(seen.tau - full.tau))
        left = inside + dual.regulariser.bracket(theta, lack)
        words = (
            f"objective in [{lower:.6g}, {upper:.6g}]; with labels missing it is not "
            f"convex, and no optimum is claimed: with their means in their place these weights are "
            f"within {left:.2g} of the best (0 at a stationary point)"
        )
        proof = Certificate(left, 0.0, lower, "surrogate", "not convex", withheld=words)
        return Filled(theta, proof, upper, seen.tau, lack)

    def _infer(
        self, batch: Batch[Any], by: Routine | None, theta: Array, loop: Loop | None, enough: float
    ) -> Any:
        """Marginals and log Z of both kinds of examples under the same entropy."""
        learner, scores, rho = self.learner, self.dual.scores(theta), self.dual.entropy.rho
        if by is not None:
            entropy, oracle = Entropy.of(batch, rho), Validated(resolve(learner.oracle, batch))
            return infer(batch, entropy, oracle, by, scores, enough=enough * len(batch))
        tol = min(learner.solver.tol, 0.1 * self.tol)
        solver = replace(learner.solver, tol=tol, checkpoint=loop)
        return marginals(batch, scores, learner.oracle, rho=rho, solver=solver)

    def fit(self, one: Filled, loop: Loop, spent: int) -> Found:
        """Fit to what was filled in; directly from the weights before it, so late fits are short.

        Frank-Wolfe begins at points, and those of the round before have other targets.
        """
        solver, close = self.learner.solver, 0.1 * one.certificate.relative
        tol = max(min(solver.tol, 0.1 * self.tol), close)  # else a round may end at its start
        inside = Loop(loop, "fit", solver=solver, tol=tol, calls=loop.left(spent))
        start = None if self.full is None else one.theta
        batch = replace(self.batch, target=one.target)
        return self.learner.run(batch, self.features, inside, start)


class SeenLikelihood(SurrogateProblem):
    """Minus the likelihood of what was seen, which proves no more than how stationary it is."""

    partly: PartlySeen

    def prove(self, theta: Array, enough: float, *, balance: bool, excess: Any = None) -> Proof:
        one, batch = self.partly.look(theta, enough=0.5 * enough), self.partly.dual.batch
        odd = relaxed(batch, resolve(self.partly.learner.oracle, batch))
        odd = odd and not unsearchable(batch).any()
        return Proof(one.certificate, one.target, odd, one.missing)
