"""Descents in θ by L-BFGS with a regulariser, in units where columns of any size cost the same.

L-BFGS that begins with equal steps in all weights spends its rounds, and then all its digits, on a
column of 50,000 beside one of 1. It therefore steps in z = s·θ, which is what columns divided by s
would have for weights. The objective, its penalty and its certificate stay those of θ.

Two more descents are for objectives whose gradient is not the value's: by slopes alone, and by
stochastic steps on a few examples at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mlestruct.features.base import Features, squares
from mlestruct.lbfgs import Descent, Kinks, Step, descent
from mlestruct.objectives import Head, Objective
from mlestruct.objectives.base import EvaluationPoint, ShardSummand, chosen
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.trees import Tree

FEW = 16  # weights that are tried one by one where the entries of Φ are not at hand
VARIANCE = 0.25  # of a 0/1 part, at most: what log Z curves by its score
LEAST, MOST = 10, 100  # steps kept by L-BFGS
TAME = 1e3  # house's columns differ by 390: 11 rounds as they are, 59 divided


def memory(size: int, d: int) -> int:
    """How many of its last steps L-BFGS keeps: as many as cost little beside an evaluation.

    It makes 4 d multiplications and some 4 µs of calls for each of them, an evaluation 20 ns or
    more for each of ``size`` coordinates. On 60 mails (d = 16,494) 43 steps end a skip chain's
    fit in 56 evaluations, 10 in 102. Not for exact sums or pseudo-likelihood, which take 1 to 10.
    """
    return int(np.clip(min(size // 4000, size // (2 * max(d, 1))), LEAST, MOST))


def columns(batch: Batch[Any], features: Features) -> Array | None:
    """Σ_m w_m Φ_kj² per weight, or None where that costs more than it is worth."""
    with np.errstate(over="ignore"):
        found = features.squares(batch.weights)
        if found is None and features.d <= FEW:
            found = squares(features, batch.weights)
    return found if found is not None and np.isfinite(found).all() else None


def units(squared: Array | None, lam: Array) -> Array | None:
    """What θ is taken times: the root of the penalty, or of the objective's curvature; None is 1.

    Where columns are alike but for their penalties, curvature has few large directions, which
    L-BFGS learns quickly; dividing by its diagonal would only spread them. Columns that differ by
    more than ``TAME`` are what it does not survive; where all are so large, one number has the
    first step no longer than the rest. A column and its penalty times a power of two
    change either root by just that: the same bits are learned.
    """
    if squared is None:
        return None
    curvature = VARIANCE * squared + lam
    times = np.log(curvature / lam)
    if np.ptp(times) > 2.0 * np.log(TAME):
        return np.sqrt(curvature)
    if times.mean() > 2.0 * np.log(TAME):
        return np.sqrt(lam * np.exp(times.mean()))
    return None if (lam == lam[0]).all() else np.sqrt(lam)


@dataclass(frozen=True)
class Scaled:
    """L-BFGS steps in z = s·θ, within the bounds of θ."""

    s: Array
    regulariser: Regulariser
    first: float | None = None

    def kinks(self) -> Kinks | None:
        ridge = self.regulariser
        if ridge.plain:
            return None
        return Kinks(ridge.l1 / self.s, ridge.lower * self.s, ridge.upper * self.s)

    def of(self, theta: Array) -> Array:
        return theta * self.s

    def weights(self, z: Array) -> Array:
        theta, ridge = z / self.s, self.regulariser
        return theta if ridge.plain else np.clip(theta, ridge.lower, ridge.upper)

    def slope(self, gradient: Array) -> Array:
        return gradient / self.s

    def gradient(self, slope: Array) -> Array:
        return slope * self.s


@dataclass(frozen=True)
class Preconditioned:
    """L-BFGS steps in z = Lᵀθ, where the length of its first step is known."""

    factor: Array
    first: float | None = 1.0

    def kinks(self) -> None:
        return None

    def of(self, theta: Array) -> Array:
        return np.asarray(self.factor.T @ theta)

    def weights(self, z: Array) -> Array:
        return np.asarray(solve_triangular(self.factor, z, trans="T", lower=True))

    def slope(self, gradient: Array) -> Array:
        return np.asarray(solve_triangular(self.factor, gradient, lower=True))

    def gradient(self, slope: Array) -> Array:
        return np.asarray(self.factor @ slope)


def descend(
    regulariser: Regulariser,
    theta: Array,
    memory: int = LEAST,
    factor: Array | None = None,
    since: Tree = None,
    scale: Array | None = None,
) -> Descent:
    """L-BFGS on R + Σ: it asks for Σ at points θ, and the gradients of its steps are those of Σ.

    ``factor``, lower triangular with L Lᵀ near the Hessian, has it step in z = Lᵀθ; ``scale``, a
    number per weight, in z = s·θ. ``since`` another descent's ``where()``, it goes on from there,
    and θ is ignored.
    """
    lam, prior = regulariser.lam, regulariser.prior
    units: Scaled | Preconditioned
    if factor is not None and regulariser.plain:
        units = Preconditioned(factor)
    else:
        units = Scaled(np.ones(len(regulariser)) if scale is None else scale, regulariser)
    asked = at = np.empty(0)
    steps = descent(units.of(theta), memory, units.kinks(), units.first, since)
    said = next(steps, None)
    while said is not None:
        if isinstance(said, Step):
            at = at if said.theta is asked else units.weights(said.theta)
            gradient = units.gradient(said.gradient) - lam * (at - prior)
            yield said._replace(theta=at, gradient=gradient)
            said = next(steps, None)
        else:
            asked, at = said, units.weights(said)
            value, gradient = yield at
            pull = at - prior
            pull *= lam
            value += 0.5 * float(pull @ (at - prior))
            said = steps.send((value, units.slope(gradient + pull)))


SLACK = 0.1  # share by which the objective itself may be larger after a step


class IntegralPoint(NamedTuple):
    """Weights, the integral there, the objective's own value, and the gradient."""

    theta: Array
    integral: float
    own: float
    gradient: Array


class PathIntegral:
    """∫ gradient from where the search began, for a value: a minimiser then seeks gradient 0.

    The trapezoid on each step judges it by slopes, so a truncated relaxation's value, which
    follows another gradient, cannot stop the search. It only fences it: a point is infinite where
    the objective itself is a tenth larger, for slopes also vanish far out.
    """

    def __init__(self) -> None:
        self.base: IntegralPoint | None = None
        self.tried: list[IntegralPoint] = []

    def __call__(self, theta: Array, own: float, gradient: Array) -> float:
        base = IntegralPoint(theta, own, own, gradient) if self.base is None else self.base
        change = 0.5 * float((base.gradient + gradient) @ (theta - base.theta))
        far = own > base.own + SLACK * max(1.0, abs(base.own))
        point = IntegralPoint(theta, np.inf if far else base.integral + change, own, gradient)
        self.tried.append(point)
        self.base = base
        return point.integral

    def tree(self) -> Tree:
        """The state of the current point beside its weights."""
        assert self.base is not None
        return self.base[1:]

    def recall(self, tree: Tree, theta: Array) -> None:
        """Stand settled on these weights."""
        self.base = IntegralPoint(theta, *tree)
        self.tried = [self.base]

    def settle(self, theta: Array) -> float:
        """The objective's own value at the point a search ended at, where the next begins."""
        same = (point for point in reversed(self.tried) if np.array_equal(point.theta, theta))
        self.base = next(same)
        self.tried = [self.base]
        return self.base.own


def descend_slopes(
    regulariser: Regulariser, theta: Array, since: Tree = None, scale: Array | None = None
) -> Descent:
    """A descent judged by slopes alone; the values of its steps are the objective's own."""
    slopes, within = PathIntegral(), None
    if since is not None:
        within, known = since
        slopes.recall(known, within[0] if scale is None else within[0] / scale)

    def where() -> Tree:
        return step.where(), slopes.tree()

    steps = descend(regulariser, theta, since=within, scale=scale)
    said = next(steps, None)
    while said is not None:
        if isinstance(said, Step):
            step, value = said, slopes.settle(said.theta) + regulariser.value(said.theta)
            yield said._replace(value=value, where=where)
            said = next(steps, None)
        else:
            own, gradient = yield said
            said = steps.send((slopes(said, own, gradient), gradient))


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
        since: Tree = None,
    ) -> Descent:
        """A step per epoch, which asks for Σ at its end; the same seed gives the same bits."""
        rng, count, time_ = np.random.default_rng(self.seed), len(batch), 0
        lam = regulariser.lam / count
        if since is not None:
            theta, time_, rng.bit_generator.state = since

        def where() -> Tree:
            return theta, time_, rng.bit_generator.state

        while True:
            order = rng.permutation(count)
            for first in range(0, count, self.size):
                members = np.sort(order[first : first + self.size])
                part = ShardSummand(objective, batch.select(members), chosen(heads, batch, members))
                gradient = part(EvaluationPoint(theta)).gradient
                eta = self.step / (1.0 + self.step * time_ * float(lam.min()))
                theta = theta - eta * (gradient / len(members))
                theta = _prox(regulariser, theta, eta, lam, count)
                time_ += 1
            value, gradient = yield theta
            yield Step(theta, value + regulariser.value(theta), gradient, True, where)


def _prox(regulariser: Regulariser, theta: Array, eta: float, lam: Array, count: int) -> Array:
    """argmin ½‖θ' − θ‖² + η R(θ')/M within the bounds."""
    pull = theta + eta * lam * regulariser.prior
    shrunk = np.sign(pull) * np.maximum(np.abs(pull) - eta * regulariser.l1 / count, 0.0)
    return np.clip(shrunk / (1.0 + eta * lam), regulariser.lower, regulariser.upper)
