"""Descents in θ by L-BFGS with a regulariser, in units where columns of any size cost the same.

L-BFGS that begins with equal steps in all weights spends its rounds, and then all its digits, on a
column of 50,000 beside one of 1. It therefore steps in z = s·θ, which is what columns divided by s
would have for weights, or in z = Lᵀθ with L Lᵀ near the Hessian. The objective, its penalty and its
certificate stay those of θ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mlestruct.features.base import Features, squares
from mlestruct.learning.lbfgs import LBFGS, Function, Kinks
from mlestruct.learning.regulariser import Regulariser
from mlestruct.limits import OutOfTime
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

FEW = 16  # weights that are tried one by one where the entries of Φ are not at hand
VARIANCE = 0.25  # of a 0/1 part, at most: what log Z curves by its score
LEAST, MOST = 10, 100  # steps kept by L-BFGS
TAME = 1e3  # house's columns differ by 390: 11 rounds as they are, 59 divided
SLACK = 0.1  # share by which the objective itself may be larger after a step judged by slopes


def memory(size: int, d: int) -> int:
    """How many of its last steps L-BFGS keeps: as many as cost little beside an evaluation.

    It makes 4 d multiplications and some 4 µs of calls for each of them, an evaluation 20 ns or
    more for each of ``size`` coordinates. On 60 mails (d = 16,494) 43 steps end a skip chain's
    fit in 56 evaluations, 10 in 102. Not for exact sums or pseudo-likelihood, which take 1 to 10.
    """
    return int(np.clip(min(size // 4000, size // (2 * max(d, 1))), LEAST, MOST))


def units(batch: Batch[Any], features: Features, lam: Array) -> Array | None:
    """What θ is taken times: the root of the penalty, or of the objective's curvature; None is 1.

    Where columns are alike but for their penalties, curvature has few large directions, which
    L-BFGS learns quickly; dividing by its diagonal would only spread them. Columns that differ by
    more than ``TAME`` are what it does not survive; where all are so large, one number has the
    first step no longer than the rest. A column and its penalty times a power of two
    change either root by just that: the same bits are learned.
    """
    with np.errstate(over="ignore"):
        squared = features.squares(batch.weights)
        if squared is None and features.d <= FEW:
            squared = squares(features, batch.weights)
    if squared is None or not np.isfinite(squared).all():
        return None
    curvature = VARIANCE * squared + lam
    times = np.log(curvature / lam)
    if np.ptp(times) > 2.0 * np.log(TAME):
        return np.sqrt(curvature)
    if times.mean() > 2.0 * np.log(TAME):
        return np.sqrt(lam * np.exp(times.mean()))
    return None if (lam == lam[0]).all() else np.sqrt(lam)


class WeightDescent(LBFGS):
    """L-BFGS on R(θ) plus a function that returns its value and gradient.

    It steps in z = s·θ by a ``scale``, or in z = Lᵀθ by a lower triangular ``factor`` of a Hessian,
    and then knows the length of its first step. Where it is ``late`` no more is evaluated.
    """

    late: Callable[[], bool] | None = None

    def __init__(
        self,
        function: Function,
        regulariser: Regulariser,
        theta: Array,
        state: Tree = None,
        *,
        memory: int = LEAST,
        factor: Array | None = None,
        scale: Array | None = None,
    ) -> None:
        self.of_theta, self.regulariser, self.factor = function, regulariser, factor
        self.scale = np.ones(len(regulariser)) if scale is None else scale
        z, kinks = theta * self.scale if factor is None else factor.T @ theta, None
        if not regulariser.plain:
            lower, upper = regulariser.lower * self.scale, regulariser.upper * self.scale
            kinks = Kinks(regulariser.l1 / self.scale, lower, upper)
        self.asked = self.at = z
        first = None if factor is None else 1.0
        super().__init__(self.penalised, np.asarray(z), memory, kinks, first, state)

    def weights(self, z: Array) -> Array:
        """θ at z."""
        if self.factor is not None:
            return np.asarray(solve_triangular(self.factor, z, trans="T", lower=True))
        ridge, theta = self.regulariser, z / self.scale
        return theta if ridge.plain else np.clip(theta, ridge.lower, ridge.upper)

    def penalised(self, z: Array) -> tuple[float, Array]:
        """The function, with the smooth part of R, in z."""
        if self.late is not None and self.late():
            raise OutOfTime
        self.asked, self.at = z, self.weights(z)
        value, gradient = self.of_theta(self.at)
        pull = self.at - self.regulariser.prior
        pull *= self.regulariser.lam
        value += 0.5 * float(pull @ (self.at - self.regulariser.prior))
        gradient = gradient + pull
        if self.factor is None:
            return value, gradient / self.scale
        return value, np.asarray(solve_triangular(self.factor, gradient, lower=True))

    def point(self) -> tuple[Array, float, Array]:
        """θ, R plus the function there, and the function's own gradient."""
        ridge = self.regulariser
        theta = self.at if self.asked is self.z else self.weights(self.z)
        slope = self.gradient * self.scale if self.factor is None else self.factor @ self.gradient
        return theta, self.value, slope - ridge.lam * (theta - ridge.prior)


class IntegralPoint(NamedTuple):
    """Weights, the integral there, the function's own value, and its gradient."""

    theta: Array
    integral: float
    own: float
    gradient: Array


class SlopeDescent(WeightDescent):
    """A descent that takes ∫ gradient from where it began for the value: it seeks gradient 0.

    The trapezoid on each step judges it by slopes, so a truncated relaxation's value, which
    follows another gradient, cannot stop the search. It only fences it: a point is infinite where
    the function itself is a tenth larger, for slopes also vanish far out.
    """

    def __init__(
        self,
        function: Function,
        regulariser: Regulariser,
        theta: Array,
        state: Tree = None,
        *,
        scale: Array | None = None,
    ) -> None:
        self.tried: list[IntegralPoint] = []
        self.function_of_theta = function
        steps = None if state is None else state[0]
        super().__init__(self.integral, regulariser, theta, steps, scale=scale)
        if state is not None:
            self.tried = [IntegralPoint(super().point()[0], *state[1])]

    def integral(self, theta: Array) -> tuple[float, Array]:
        own, gradient = self.function_of_theta(theta)
        base = self.tried[0] if self.tried else IntegralPoint(theta, own, own, gradient)
        change = 0.5 * float((base.gradient + gradient) @ (theta - base.theta))
        far = own > base.own + SLACK * max(1.0, abs(base.own))
        value = np.inf if far else base.integral + change
        self.tried.append(IntegralPoint(theta, value, own, gradient))
        return value, gradient

    def step(self) -> bool:
        moved = super().step()
        theta, *_ = super().point()
        self.tried = [next(p for p in reversed(self.tried) if np.array_equal(p.theta, theta))]
        return moved

    def point(self) -> tuple[Array, float, Array]:
        theta, _, lack = super().point()
        return theta, self.tried[0].own + self.regulariser.value(theta), lack

    def state(self) -> Tree:
        return (super().state(), self.tried[0][1:]) if self.begun else None
