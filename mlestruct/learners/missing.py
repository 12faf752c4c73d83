"""Missing labels and hidden variables: EM/CCCP rounds around a likelihood learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from mlestruct.batch import Batch, clamp
from mlestruct.checkpoint import Loop
from mlestruct.digest import digest
from mlestruct.drive import drive, last
from mlestruct.dual import Certificate, Dual
from mlestruct.features import Features
from mlestruct.inference import Marginals, marginals
from mlestruct.inference.choose import Inference
from mlestruct.learners.convex import Learner
from mlestruct.learners.model import Fits, Runs
from mlestruct.method import Progress
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Filled:
    """Weights after a round, with what is proven of them.

    ``lower ≤ Σ w_m [log Z(clamped) − log Z(full)] − R(θ) ≤ upper``, both log Z the surrogate's.
    ``certificate`` is that of the round's convex problem (None before the first);
    ``stationarity`` bounds what the next round can gain: 0 only at a stationary point.
    """

    number: int
    theta: Array
    lower: float
    upper: float
    stationarity: float
    certificate: Certificate | None
    target: Array

    @property
    def left(self) -> float:
        """What another round gains at most, relative."""
        return self.stationarity / max(1.0, abs(self.lower))

    def __str__(self) -> str:
        return (
            f"objective in [{self.lower:.6g}, {self.upper:.6g}]; another round gains at most "
            f"{self.stationarity:.2g}. With labels missing the problem is not convex: this is a "
            f"stationary point, no optimum is claimed. The last round's problem: "
            f"{self.certificate or 'none yet'}"
        )


@dataclass(frozen=True)
class Missing(Fits):
    """Rounds of inference under what was observed, then ``learner`` on the means it gives.

    Each round maximises a concave minorant that touches the objective, so the objective never
    falls by more than the certificates leave open. Stops when another round can gain no more
    than ``tol`` relative. Any structure with ``clamp``, by either route.
    """

    learner: Learner
    tol: float = 1e-4
    rounds: int = 100

    def fit(
        self,
        batch: Batch[Any],
        observed: Sequence[Any],
        features: Features,
        start: Array | None = None,
    ) -> Filled:
        """The last of :meth:`states`."""
        *_, found = self.states(batch, observed, features, start)
        return found

    def states(
        self,
        batch: Batch[Any],
        observed: Sequence[Any],
        features: Features,
        start: Array | None = None,
    ) -> Iterator[Filled]:
        """Every round; ``observed[m]`` is what ``clamp`` takes of example m (−1 where unseen).

        ``batch`` needs no outcomes. Hidden variables that are exchangeable need a ``start`` that
        tells them apart: weights of 0 are stationary then. A checkpoint's rounds do not come again,
        but for the last of a finished fit.
        """
        method = _Filling(self, batch, clamp(batch, observed), features, start, self.name)
        for said in self._drive(method):
            if said.own is not None:
                yield said.own
            elif said.done:
                yield method.look(said.round, said.theta, None, method.dual())[0]

    def _drive(self, method: _Filling) -> Iterator[Progress]:
        solver = self.learner.solver
        budget = replace(solver.budget, tol=self.tol, rounds=self.rounds)
        return drive(method, budget, solver.checkpoint)

    @property
    def name(self) -> str:
        return f"{self.learner.name} with labels missing"

    @property
    def inference(self) -> Inference:
        """The learner's."""
        return self.learner.inference

    def runs(self, batch: Batch[Any], features: Features) -> Runs:
        """As :meth:`Learner.runs`, for a batch of :func:`seen`; no optimum is claimed."""
        clamped = _pinned(batch)

        def states(given: Any, last: Progress | None, loop: Loop) -> Iterator[Progress]:
            one = replace(self, learner=replace(self.learner.within(loop), regulariser=given))
            start = None if last is None else last.theta
            return one._drive(_Filling(one, batch, clamped, features, start, self.name))

        return Runs(self.name, self.learner.solver.checkpoint, states, self.inference)


@dataclass(frozen=True)
class _Filling:
    """What was not seen filled in by its means, then a fit: a method for the loop."""

    around: Missing
    batch: Batch[Any]
    clamped: Batch[Any]
    features: Features
    start: Array | None
    name: str
    size: int = 0

    def setting(self) -> dict[str, Any]:
        around = self.around
        return {"rounds": around.rounds, "tol": around.tol, "start": digest(self.start)}

    def rounds(self, loop: Loop) -> Iterator[Progress]:
        dual, theta = self.dual(), self.start
        if theta is None:
            theta = dual.regulariser.weights(np.zeros(self.features.d))
        number, calls, proof = 0, 0, None
        if loop.tree is not None:
            number, calls, theta, kept = loop.tree
            proof = Certificate(*kept)

        def where() -> Tree:
            assert proof is not None
            return number, calls, theta, astuple(proof)

        while True:
            one, dual, size = self.look(number, theta, proof, dual, loop)
            yield self._progress(one, calls)
            found = self._fit(one, size, calls, loop)
            theta, proof = found.theta, found.certificate
            number, calls = number + 1, calls + found.calls
            loop.save(where)

    def dual(self, target: Array | None = None) -> Dual:
        """The learner's problem with this in the place of outcomes."""
        learner = self.around.learner
        target = np.zeros(self.batch.size) if target is None else target
        dual = learner.dual(replace(self.batch, target=target), self.features)
        if dual.entropy.temperature != 1:
            raise ValueError(f"{learner.name} is no likelihood: missing labels need one")
        return dual

    def look(
        self,
        number: int,
        theta: Array,
        proof: Certificate | None,
        dual: Dual,
        loop: Loop | None = None,
    ) -> tuple[Filled, Dual, float]:
        """What these weights come to, the problem filled in by them, and the size of its value."""
        seen, full = (self._infer(dual, b, theta, loop) for b in (self.clamped, self.batch))
        dual = self.dual(seen.tau)
        each = dual.batch.observed(dual.scores(theta)) - full.lower
        value = float(dual.batch.weight @ each) - dual.regulariser.value(theta)
        return _filled(number, dual, theta, seen, full, proof), dual, max(1.0, abs(value))

    def _infer(self, dual: Dual, batch: Batch[Any], theta: Array, loop: Loop | None) -> Marginals:
        """Marginals and log Z of both kinds of examples under the same entropy."""
        learner, solver = self.around.learner, None
        if learner.oracle is not None or learner.route == "frank_wolfe":
            tol = min(learner.solver.tol, 0.1 * self.around.tol)
            solver = replace(learner.solver, tol=tol, checkpoint=loop)
        scores, rho = dual.scores(theta), dual.entropy.rho
        return marginals(batch, scores, learner.oracle, rho=rho, solver=solver)

    def _fit(self, one: Filled, size: float, calls: int, loop: Loop) -> Progress:
        """On what was filled in; directly from the weights before it, so that late fits are short.

        Frank-Wolfe begins at points, and those of the round before have other targets.
        """
        learner, tol = self.around.learner.within(loop, calls), self.around.tol
        closer = min(learner.solver.tol, 0.1 * tol)  # else a round may end at its start
        enough = max(closer, 0.1 * one.stationarity / size)
        learner = replace(learner, solver=replace(learner.solver, tol=enough))
        batch = replace(self.batch, target=one.target)
        direct = learner.messages(learner.dual(batch, self.features)) is not None
        return last(learner.states(batch, self.features, one.theta if direct else None))

    def _progress(self, one: Filled, calls: int) -> Progress:
        proof = Certificate(
            one.stationarity, 0.0, one.lower, "surrogate", "not convex", withheld=str(one)
        )
        return Progress(
            round=one.number,
            calls=calls,
            examples=len(self.batch),
            certificate=proof,
            theta=one.theta,
            tau=one.target,
            at=one.target,
            route="rounds of inference",
            own=one,
            left=one.left,
        )


def missing(learner: Any, tol: float) -> Missing:
    """Rounds around a convex learner; others are refused."""
    if not isinstance(learner, Learner):
        raise ValueError(f"{learner.name} cannot learn from Partial outcomes: use mle_struct")
    return Missing(learner, tol)


def _pinned(batch: Batch[Any]) -> Batch[Any]:
    """Every example restricted to what its target knows."""
    assert batch.target is not None
    known = np.where(np.isnan(batch.target), -1, batch.target).astype(np.int8)
    pinned = [batch.structure(m).refix(known[batch.coordinates(m)]) for m in range(len(batch))]
    return Batch.of(pinned, weight=batch.weight, bias=batch.bias)


def _filled(
    number: int,
    dual: Dual,
    theta: Array,
    seen: Marginals,
    full: Marginals,
    proof: Certificate | None,
) -> Filled:
    weight, cost = dual.batch.weight, dual.regulariser.value(theta)
    lower = float(weight @ (seen.lower - full.upper)) - cost
    upper = float(weight @ (seen.upper - full.lower)) - cost
    inside = float(weight @ (seen.upper - seen.lower + full.upper - full.lower))
    left = inside + dual.regulariser.bracket(theta, dual.residual(full.tau))
    return Filled(number, theta, lower, upper, left, proof, seen.tau)
