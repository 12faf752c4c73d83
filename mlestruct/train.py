"""The fast route: maximise the surrogate likelihood in θ by L-BFGS, then certify both ends."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlestruct.dual import Certificate, Dual, certificate
from mlestruct.frank_wolfe import Cost, State
from mlestruct.inference.messages import Messages
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array

Objective = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class Direct:
    """Minimises R(θ) + Σ w_m [log Z(θ) − ⟨θ, φ_m⟩] through marginals; ridge regularisers only.

    Stops when ‖∇‖²/2λ, which bounds the error once inference has converged, is below ``tol``
    relative; the last state carries the proof by one oracle call per example.
    """

    tol: float = 1e-6
    rounds: int = 1000
    seconds: float | None = None
    memory: int = 10

    def run(self, dual: Dual, oracle: Oracle[Any], messages: Messages) -> Iterator[State]:
        """One state per L-BFGS iteration; estimates until the last, which is certified."""
        clock = time.perf_counter()
        likelihood = _Likelihood(dual, messages)
        lam = dual.regulariser.lam
        steps = minimise(likelihood, dual.regulariser.prior.copy(), self.memory)
        cost = Cost(self.rounds, len(dual.batch), 0.0)
        for number, (theta, value, gradient, moved) in enumerate(steps):
            elapsed = time.perf_counter() - clock
            if number == 0:
                cost = replace(cost, seconds_per_call=elapsed / len(dual.batch))
            gap = float((gradient**2 / (2 * lam)).sum())
            done = (
                gap <= self.tol * max(1.0, abs(value))
                or not moved
                or number >= self.rounds
                or (self.seconds is not None and elapsed > self.seconds)
            )
            if done:
                _, tau = likelihood.infer(theta)
                proof = certificate(dual, oracle, theta, tau)
            else:
                tau = likelihood.tau
                proof = _estimate(gap, -value, dual)
            calls = (number + 1) * len(dual.batch)
            yield State(
                round=number,
                calls=calls,
                seconds=time.perf_counter() - clock,
                certificate=proof,
                theta=theta,
                tau=tau,
                at=tau,
                cost=cost,
                done=done,
            )
            if done:
                return


class _Likelihood:
    """Value and gradient of the negative surrogate log-likelihood; keeps its warm start."""

    def __init__(self, dual: Dual, messages: Messages) -> None:
        self.dual, self.messages = dual, messages
        self.warm: Any = None
        self.tau = np.zeros(0)
        assert dual.batch.target is not None
        batch = dual.batch
        self.offset = float(batch.weight @ batch.totals(batch.bias * batch.target))

    def infer(self, theta: Array) -> tuple[Array, Array]:
        log_z, self.tau, self.warm = self.messages.many(
            self.dual.batch, self.dual.scores(theta), self.warm
        )
        return log_z, self.tau

    def __call__(self, theta: Array) -> tuple[float, Array]:
        dual = self.dual
        log_z, tau = self.infer(theta)
        value = dual.regulariser.value(theta) + float(dual.batch.weight @ log_z)
        return value - float(theta @ dual.observed), dual.regulariser.grad(theta) - dual.residual(tau)


def minimise(
    objective: Objective, theta: Array, memory: int = 10
) -> Iterator[tuple[Array, float, Array, bool]]:
    """L-BFGS with a backtracking Wolfe search; yields (θ, value, gradient, whether it moved).

    O(memory · d) per iteration besides the objective.
    """
    value, gradient = objective(theta)
    yield theta, value, gradient, True
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=memory)
    while True:
        direction = -_two_loop(gradient, pairs)
        slope = float(gradient @ direction)
        if slope >= 0:
            pairs.clear()
            direction, slope = -gradient, -float(gradient @ gradient)
        step = 1.0 if pairs else 1.0 / max(1.0, float(np.linalg.norm(gradient)))
        found = _search(objective, theta, value, direction, slope, step)
        if found is None:
            yield theta, value, gradient, False
            return
        new, value, fresh = found
        moved, bent = new - theta, fresh - gradient
        curvature = float(moved @ bent)
        if curvature > 1e-12 * float(bent @ bent):
            pairs.append((moved, bent, 1.0 / curvature))
        theta, gradient = new, fresh
        yield theta, value, gradient, True


def _two_loop(gradient: Array, pairs: deque[tuple[Array, Array, float]]) -> Array:
    q, alphas = gradient.copy(), []
    for s, y, rho in reversed(pairs):
        alphas.append(rho * float(s @ q))
        q -= alphas[-1] * y
    if pairs:
        s, y, rho = pairs[-1]
        q /= rho * float(y @ y)
    for (s, y, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - rho * float(y @ q)) * s
    return q


def _search(
    objective: Objective, theta: Array, value: float, direction: Array, slope: float, step: float
) -> tuple[Array, float, Array] | None:
    """A step with enough decrease and enough curvature (weak Wolfe), by bracketing."""
    low, high = 0.0, np.inf
    kept = None
    for _ in range(40):
        new = theta + step * direction
        reached, gradient = objective(new)
        if not reached <= value + 1e-4 * step * slope + 1e-15 * abs(value):
            high = step
        elif float(gradient @ direction) < 0.9 * slope:
            low, kept = step, (new, reached, gradient)
        else:
            return new, reached, gradient
        step = 2.0 * step if np.isinf(high) else 0.5 * (low + high)
        if high - low <= 1e-14 * max(low, 1e-300):
            break
    return kept


def _estimate(gap: float, objective: float, dual: Dual) -> Certificate:
    return Certificate(
        gap, 0.0, -objective, "surrogate", str(dual.entropy.bound), "an estimate until the last round"
    )
