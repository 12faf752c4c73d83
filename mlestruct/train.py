"""The fast route: minimise objectives in θ by L-BFGS or small batches, then certify both ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mlestruct.batch import Batch
from mlestruct.dual import Certificate, Dual, certificate
from mlestruct.engine import Engine, Serial, engine_of
from mlestruct.frank_wolfe import Cost, FrankWolfe, State
from mlestruct.inference.hull import hull_certificate, relaxed
from mlestruct.inference.message_proof import message_certificate
from mlestruct.inference.messages import Messages
from mlestruct.inference.sum_product import SumProduct
from mlestruct.lbfgs import Function, Kinks, minimise
from mlestruct.objectives import Head, Objective, Sum, Surrogate
from mlestruct.objectives.base import Part, Question, chosen, parts
from mlestruct.objectives.surrogate import loosened
from mlestruct.objectives.tied_chains import special
from mlestruct.oracle import Oracle
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array

INNER = 1e-3  # inference may stop at this share of the outer relative gap
COARSEST = 1e-5  # a coarser residual makes the value too rough for the line search

Step = tuple[Array, float, Array, bool]


@dataclass(frozen=True)
class SmallBatches:
    """Proximal steps on ``size`` examples at a time, drawn without replacement each epoch.

    θ ← prox(θ − η_t g) with g the mean gradient and η_t = step / (1 + step · t · λ/M) (Bottou):
    no line search, so it serves objectives whose gradient is not their value's.
    """

    size: int = 32
    step: float = 0.1
    seed: int = 0

    def run(
        self,
        objective: Objective,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        regulariser: Regulariser,
        theta: Array,
    ) -> Iterator[Array]:
        """θ after every epoch; the same seed gives the same bits."""
        rng, count, time_ = np.random.default_rng(self.seed), len(batch), 0
        lam = regulariser.lam / count
        while True:
            order = rng.permutation(count)
            for first in range(0, count, self.size):
                members = np.sort(order[first : first + self.size])
                part = Part(objective, batch.select(members), chosen(heads, batch, members))
                gradient = part(Question(theta)).gradient
                eta = self.step / (1.0 + self.step * time_ * float(lam.min()))
                theta = theta - eta * (gradient / len(members))
                theta = _prox(regulariser, theta, eta, lam, count)
                time_ += 1
            yield theta


@dataclass(frozen=True)
class Direct:
    """Minimises R(θ) + Σ w_m [log Z(θ) − ⟨θ, φ_m⟩] through marginals, for every regulariser.

    Stops when the Fenchel gap of R, which bounds the error once inference has converged, is below
    ``tol`` relative; the last state carries the proof by one oracle call per example. Examples
    are evaluated in fixed shards on an engine: any gives the same bits.
    ``small`` takes stochastic steps instead; a round is then an epoch.
    """

    tol: float = 1e-6
    rounds: int = 1000
    seconds: float | None = None
    memory: int = 10
    engine: Engine = field(default_factory=Serial)
    small: SmallBatches | None = None

    @classmethod
    def of(cls, solver: FrankWolfe, small: SmallBatches | None = None) -> Direct:
        """With a solver's tolerance, limits and engine."""
        engine = engine_of(solver.engine, solver.workers)
        return cls(solver.tol, solver.rounds, solver.seconds, engine=engine, small=small)

    def run(
        self, dual: Dual, oracle: Oracle[Any], messages: Messages, start: Array | None = None
    ) -> Iterator[State]:
        """One state per iteration; estimates (with no τ) until the last, which is certified."""
        objective = Surrogate(messages)
        heads = {"score": Head(dual.features, dual.batch.bias)}
        makers = parts(objective, dual.batch, heads, special(messages))
        with self.engine.start(makers) as running:
            total = Sum(running)
            theta = dual.regulariser.weights(np.zeros(dual.features.d)) if start is None else start
            if self.small is None:
                factor = natural(dual, messages)
                steps = _descents(total, dual.regulariser, theta, self.memory, factor)
            else:
                epochs = self.small.run(objective, dual.batch, heads, dual.regulariser, theta)
                steps = (evaluated(total, dual.regulariser, theta) for theta in epochs)
            yield from self._states(dual, oracle, messages, total, steps)

    def _states(
        self,
        dual: Dual,
        oracle: Oracle[Any],
        messages: Messages,
        total: Sum,
        steps: Iterator[Step],
    ) -> Iterator[State]:
        clock = time.perf_counter()
        cost = Cost(self.rounds, len(dual.batch), 0.0)
        loose = loosened(messages, COARSEST) is not messages
        total.tol = COARSEST if loose else 0.0
        for number, (theta, value, gradient, moved) in enumerate(steps):
            elapsed = time.perf_counter() - clock
            if number == 0:
                cost = replace(cost, seconds_per_call=elapsed / len(dual.batch))
            gap = dual.regulariser.bracket(theta, -gradient)
            if loose and (not moved or gap <= self.tol * max(1.0, abs(value))):
                loose, moved, total.tol = False, True, 0.0  # from here on inference in earnest
                gap = dual.regulariser.bracket(theta, -total(theta)[1])
            relative = gap / max(1.0, abs(value))
            done = (
                relative <= self.tol
                or not moved
                or number >= self.rounds
                or (self.seconds is not None and elapsed > self.seconds)
            )
            if loose:
                total.tol = min(total.tol, INNER * relative)
            tau, proof, cut = np.zeros(0), _estimate(gap, -value, dual), False
            if done:
                tau, proof, cut = self._proven(dual, oracle, messages, total, theta)
            yield State(
                round=number,
                calls=(number + 1) * len(dual.batch),
                seconds=time.perf_counter() - clock,
                certificate=proof,
                theta=theta,
                tau=tau,
                at=tau,
                cost=cost,
                done=done,
                route="direct",
                cut=cut,
            )
            if done:
                return

    def _proven(
        self, dual: Dual, oracle: Oracle[Any], messages: Messages, total: Sum, theta: Array
    ) -> tuple[Array, Certificate, bool]:
        """τ at θ, the last evaluation's if inference was in earnest there, and its certificate.

        Prices or messages prove it where they can; an oracle is asked for the rest.
        """
        more = relaxed(dual.batch, oracle)
        _, tau, warm = messages.many(dual.batch, dual.scores(theta))
        if more:
            return hull_certificate(dual, oracle, theta, tau, warm, self.tol)
        if isinstance(messages, SumProduct):
            proof = message_certificate(dual, messages, theta, tau, warm)
            if proof.relative <= self.tol:
                return tau, proof, False
        return tau, certificate(dual, oracle, theta, tau), False


def descend(
    total: Function,
    regulariser: Regulariser,
    theta: Array,
    memory: int = 10,
    factor: Array | None = None,
) -> Iterator[Step]:
    """L-BFGS on R + Σ; yields (θ, value, gradient of Σ alone, whether it moved).

    ``factor``, lower triangular with L Lᵀ near the Hessian, has it step in z = Lᵀθ.
    """
    lam, prior = regulariser.lam, regulariser.prior

    def smooth(at: Array) -> tuple[float, Array]:
        value, gradient = total(at)
        pull = at - prior
        pull *= lam
        return value + 0.5 * float(pull @ (at - prior)), gradient + pull

    if factor is not None and regulariser.plain:
        yield from _preconditioned(smooth, regulariser, theta, memory, factor)
        return
    kinks = None
    if not regulariser.plain:
        kinks = Kinks(regulariser.l1, regulariser.lower, regulariser.upper)
    for at, value, gradient, moved, _ in minimise(smooth, theta, memory, kinks):
        yield at, value, gradient - lam * (at - prior), moved


def _preconditioned(
    smooth: Function, regulariser: Regulariser, theta: Array, memory: int, factor: Array
) -> Iterator[Step]:
    lam, prior = regulariser.lam, regulariser.prior
    asked, at = np.empty(0), theta

    def scaled(z: Array) -> tuple[float, Array]:
        nonlocal asked, at
        asked, at = z, solve_triangular(factor, z, trans="T", lower=True)
        value, gradient = smooth(at)
        return value, solve_triangular(factor, gradient, lower=True)

    for z, value, gradient, moved, _ in minimise(scaled, factor.T @ theta, memory, first=1.0):
        here = at if z is asked else solve_triangular(factor, z, trans="T", lower=True)
        yield here, value, factor @ gradient - lam * (here - prior), moved


def natural(dual: Dual, messages: Messages) -> Array | None:
    """Cholesky's factor of the Hessian at scores that are all alike, where it has a closed form."""
    if not (hasattr(dual.features, "gram") and hasattr(messages, "alike")):
        return None
    alike = messages.alike(dual.batch)
    if alike is None:
        return None
    hessian = dual.features.gram(*alike)
    hessian[np.diag_indices(len(hessian))] += dual.regulariser.lam
    return np.asarray(cholesky(hessian, lower=True))


def _descents(
    total: Sum, regulariser: Regulariser, theta: Array, memory: int, factor: Array | None
) -> Iterator[Step]:
    """One descent, and another from its end where it ended in inference too coarse to go on."""
    coarse = True
    while coarse:
        coarse = total.tol > 0
        for step in descend(total, regulariser, theta, memory, factor):
            yield step
            theta = step[0]


def evaluated(total: Sum, regulariser: Regulariser, theta: Array) -> Step:
    """What ``descend`` would yield at these weights."""
    value, gradient = total(theta)
    return theta, value + regulariser.value(theta), gradient, True


def _prox(regulariser: Regulariser, theta: Array, eta: float, lam: Array, count: int) -> Array:
    """argmin ½‖θ' − θ‖² + η R(θ')/M within the bounds."""
    pull = theta + eta * lam * regulariser.prior
    shrunk = np.sign(pull) * np.maximum(np.abs(pull) - eta * regulariser.l1 / count, 0.0)
    return np.clip(shrunk / (1.0 + eta * lam), regulariser.lower, regulariser.upper)


def _estimate(gap: float, objective: float, dual: Dual) -> Certificate:
    why = "an estimate until the last round"
    return Certificate(gap, 0.0, objective, "surrogate", str(dual.entropy.bound), why)
