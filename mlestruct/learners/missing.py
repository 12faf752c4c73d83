"""Missing labels and hidden variables: EM/CCCP rounds around a likelihood learner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual
from mlestruct.features import Features
from mlestruct.frank_wolfe import State
from mlestruct.inference import Marginals, marginals
from mlestruct.learners.convex import Learner, Model
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Partial:
    """An outcome of which only a part was seen: what the structure's ``clamp`` takes."""

    observed: Any


@dataclass(frozen=True)
class Round:
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
    done: bool = False

    def __str__(self) -> str:
        return (
            f"objective in [{self.lower:.6g}, {self.upper:.6g}]; another round gains at most "
            f"{self.stationarity:.2g}. With labels missing the problem is not convex: this is a "
            f"stationary point, no optimum is claimed. The last round's problem: "
            f"{self.certificate or 'none yet'}"
        )


@dataclass(frozen=True)
class Missing:
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
    ) -> Round:
        """The last of :meth:`states`."""
        *_, last = self.states(batch, observed, features, start)
        return last

    def states(
        self,
        batch: Batch[Any],
        observed: Sequence[Any],
        features: Features,
        start: Array | None = None,
    ) -> Iterator[Round]:
        """Every round; ``observed[m]`` is what ``clamp`` takes of example m (−1 where unseen).

        ``batch`` needs no outcomes. Hidden variables that are exchangeable need a ``start`` that
        tells them apart: weights of 0 are stationary then.
        """
        yield from self._rounds(batch, clamp(batch, observed), features, start)

    @property
    def name(self) -> str:
        return f"{self.learner.name} with labels missing"

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[float | Regulariser],
        through: Callable[[Iterator[State]], Iterator[State]] = iter,
    ) -> Iterator[Model]:
        """As :meth:`Learner.path`, for a batch of :func:`seen`; no optimum is claimed."""
        clamped, theta = _pinned(batch), None
        for regulariser in regularisers:
            learner = replace(self.learner, regulariser=regulariser)
            rounds = replace(self, learner=learner)._rounds(batch, clamped, features, theta)
            history: list[tuple[int, float, float, float]] = []
            began = time.perf_counter()
            for last in rounds:
                taken = time.perf_counter() - began
                history.append((last.number, taken, last.lower, last.stationarity))
            theta = last.theta
            proof = Certificate(
                last.stationarity, 0.0, last.lower, "surrogate", "not convex", withheld=str(last)
            )
            yield Model(theta, proof, history, "rounds of inference")

    def _rounds(
        self, batch: Batch[Any], clamped: Batch[Any], features: Features, start: Array | None
    ) -> Iterator[Round]:
        proof, target = None, np.zeros(batch.size)
        dual = self.learner.dual(replace(batch, target=target), features)
        if dual.entropy.temperature != 1:
            raise ValueError(f"{self.learner.name} is no likelihood: missing labels need one")
        theta = dual.regulariser.weights(np.zeros(features.d)) if start is None else start
        for number in range(self.rounds + 1):
            seen, full = self._infer(dual, clamped, theta), self._infer(dual, batch, theta)
            dual = self.learner.dual(replace(batch, target=seen.tau), features)
            state = _round(number, dual, theta, seen, full, proof)
            small = self.tol * max(1.0, abs(state.lower))
            if state.stationarity <= small or number == self.rounds:
                yield replace(state, done=True)
                return
            yield state
            model = self.learner.fit(replace(batch, target=seen.tau), features)
            theta, proof = model.theta, model.certificate

    def _infer(self, dual: Dual, batch: Batch[Any], theta: Array) -> Marginals:
        """Marginals and log Z of both kinds of examples under the same entropy."""
        learner, solver = self.learner, None
        if learner.oracle is not None or learner.route == "frank_wolfe":
            solver = replace(learner.solver, tol=min(learner.solver.tol, 0.1 * self.tol))
        scores, rho = dual.scores(theta), dual.entropy.rho
        return marginals(batch, scores, learner.oracle, rho=rho, solver=solver)


def missing(learner: Any, tol: float) -> Missing:
    """Rounds around a convex learner; others are refused."""
    if not isinstance(learner, Learner):
        raise ValueError(f"{learner.name} cannot learn from Partial outcomes: use mle_struct")
    return Missing(learner, tol)


def seen(structures: Any, outcomes: Sequence[Any], weight: ArrayLike | None = None) -> Batch[Any]:
    """A batch of whole outcomes and :class:`Partial` ones: its target is NaN where unseen."""
    batch = Batch.of(structures, count=len(outcomes), weight=weight)
    target = np.empty(batch.size)
    for m, outcome in enumerate(outcomes):
        one = batch.structure(m)
        if isinstance(outcome, Partial):
            fixed = clamp(batch.select([m]), [outcome.observed]).structures[0].fixed
            target[batch.coordinates(m)] = np.where(fixed < 0, np.nan, fixed)
        else:
            target[batch.coordinates(m)] = Batch.of(one, [outcome]).target
    return replace(batch, target=target)


def _pinned(batch: Batch[Any]) -> Batch[Any]:
    """Every example restricted to what its target knows."""
    assert batch.target is not None
    known = np.where(np.isnan(batch.target), -1, batch.target).astype(np.int8)
    pinned = [batch.structure(m).refix(known[batch.coordinates(m)]) for m in range(len(batch))]
    return Batch.of(pinned, weight=batch.weight, bias=batch.bias)


def clamp(batch: Batch[Any], observed: Sequence[Any]) -> Batch[Any]:
    """The same examples, each restricted to the outcomes that agree with what was observed."""
    if len(observed) != len(batch):
        raise ValueError(f"{len(batch)} examples but {len(observed)} observations")
    structures = []
    for m, seen in enumerate(observed):
        try:
            structures.append(batch.structure(m).clamp(seen))
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"example {m}: {error}") from error
    return Batch.of(structures, weight=batch.weight, bias=batch.bias)


def _round(
    number: int,
    dual: Dual,
    theta: Array,
    seen: Marginals,
    full: Marginals,
    proof: Certificate | None,
) -> Round:
    weight, cost = dual.batch.weight, dual.regulariser.value(theta)
    lower = float(weight @ (seen.lower - full.upper)) - cost
    upper = float(weight @ (seen.upper - full.lower)) - cost
    inside = float(weight @ (seen.upper - seen.lower + full.upper - full.lower))
    left = inside + dual.regulariser.bracket(theta, dual.residual(full.tau))
    return Round(number, theta, lower, upper, left, proof, seen.tau)
