"""Minimise R(θ) + Σ over examples by L-BFGS, and prove what was reached.

L-BFGS is for a smooth function plus l1‖z‖₁ within bounds; projected where there are kinks. Nocedal
and Wright, *Numerical Optimization* (2006), section 7.2; with kinks as in Andrew and Gao, *Scalable
training of L1-regularized log-linear models* (ICML 2007).

L-BFGS that begins with equal steps in all weights spends its rounds, and then all its digits, on a
column of 50,000 beside one of 1. Descents in θ therefore step in z = s·θ, which is what columns
divided by s would have for weights, or in z = Lᵀθ with L Lᵀ near the Hessian. The objective, its
penalty and its certificate stay those of θ.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from mlestruct.engine import Engine
from mlestruct.features.base import Features, squares
from mlestruct.inference.routine import Routine
from mlestruct.learning.dual import Dual
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.problem import LikelihoodPart, Problem, SurrogateProblem
from mlestruct.learning.regulariser import Regulariser
from mlestruct.limits import OutOfTime
from mlestruct.oracle import Oracle
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

INNER = 1e-3  # inference may stop at this share of the outer relative gap
PROOF = 0.5  # of the tolerance: what inference may leave open before an oracle is asked
PATIENCE, LONG = 30, 120  # rounds without a lower value: to the first proof, and the last
STILL = 1e-3  # of the tolerance is no fall
AGAIN = 0.1  # of the gap: if the weights' own part is more, a descent can still lower a proof
FEW = 16  # weights that are tried one by one where the entries of Φ are not at hand
VARIANCE = 0.25  # of a 0/1 part, at most: what log Z curves by its score
LEAST, MOST = 10, 100  # steps kept by L-BFGS
TAME = 1e3  # house's columns differ by 390: 11 rounds as they are, 59 divided
SLACK = 0.1  # share by which the objective itself may be larger after a step judged by slopes
Function = Callable[[Array], tuple[float, Array]]
Point = tuple[Array, float, Array]


def minimise(problem: Problem, loop: Loop, start: Array | None = None) -> Found:
    """Minimise the problem from ``start``, by default the regulariser's optimum.

    It stops where the Fenchel gap of R, which bounds the error once inference has converged, is at
    most the loop's ``tol`` relative to the value, and the proof agrees, if the problem has one.
    Rounds before are estimates without τ.
    """
    if loop.found is not None:
        return loop.found
    ridge, now = problem.regulariser, Standing()
    here: Reached | None = None
    start = ridge.weights(np.zeros(len(ridge.lam))) if start is None else start
    theta, steps = start, None
    if loop.state is not None:
        now, (memory, theta, steps) = Standing(*loop.state[0]), loop.state[1:]
        problem.remember(memory)

    def where() -> Tree:
        return astuple(now), problem.memory(), theta, descent.state()

    with closing(problem):
        descent = problem.steps(problem.value_and_gradient, ridge, theta, steps)
        while True:
            try:
                moved = descent.step()
            except OutOfTime:  # the last point stands
                if here is None:
                    raise
            else:
                here = now.look(problem, descent.point(), moved, loop.tol)
            theta, learned = here.theta, {n: here.theta[at] for n, at in problem.others.items()}
            said = Found(
                theta, problem.claim(here.value, here.gap), round=now.number,
                calls=(now.number + 1) * problem.examples, examples=problem.examples,
                route="direct", learned=learned or None,
            )  # fmt: skip
            why, met = loop.over(said, here.stuck), here.left <= loop.tol
            if problem.provable and (why or met):
                room, balance = PROOF * loop.tol / problem.examples, why in ("", "step")
                size, point = max(1.0, abs(here.value)), theta
                found = problem.prove(theta, room * size, balance=balance)
                doubt = found.certificate.gap - found.certificate.objective > now.start
                doubt = doubt and not found.certificate.relative <= loop.tol
                if doubt and problem.rises(start, theta):  # the start may be better
                    size, point = max(1.0, abs(now.start)), start
                    found = problem.prove(start, room * size, balance=balance)
                proof, tau, odd = found.certificate, found.tau, found.moved
                said = replace(said, theta=point, certificate=proof, tau=tau, at=tau, moved=odd)
                met = proof.relative <= loop.tol
                why = why or ("" if met else now.settled(here, proof.gap))
            if why or met:
                return loop.end(said, "" if met else why)
            loop.tell(said)
            # Where no step led on inference has changed: another descent from here.
            descent = descent if moved else problem.steps(problem.value_and_gradient, ridge, theta)
            now.number, descent.late = now.number + 1, loop.late
            loop.save(where)


class Reached(NamedTuple):
    """Weights, the value there, and ``gap``, how far they are from the best at most by their slope.

    ``left`` is what is left of that gap, relative. ``still``: values have not fallen for as many
    rounds as there was patience. ``unsure``: inference was coarse so far, so a proof may tell
    another gap. ``stuck`` is "step" if no way leads on.
    """

    theta: Array
    value: float
    gap: float
    left: float
    still: bool
    unsure: bool
    stuck: str


@dataclass
class Standing:
    """Where a fit by descent stands, beside its descent and its problem.

    ``start`` is the value it began with, ``share`` that of the tolerance which the weights' own gap
    may take. Values fell last below ``low``, at round ``since``.
    """

    number: int = 0
    start: float = np.inf
    share: float = 1.0
    low: float = np.inf
    since: int = 0
    patience: int = PATIENCE

    def look(
        self, problem: Problem, point: tuple[Array, float, Array], moved: bool, tol: float
    ) -> Reached:
        """See how far a new point is from the best, and have inference finer where that is due.

        Where a search has ended, as weights are as good as inference can tell or no step was found,
        inference becomes exact, and then cold, as often as that helps.
        """
        ridge, (theta, value, lack) = problem.regulariser, point
        self.start = value if self.number == 0 else self.start
        gap, size, coarse = ridge.bracket(theta, -lack), max(1.0, abs(value)), problem.coarse
        met = gap <= tol * size
        if value < self.low - max(STILL * tol, 1e-13) * size:
            self.low, self.since = value, self.number
        # Of columns beyond all sizes the gap of the weights is rounding, times their squares.
        still = self.number - self.since >= self.patience
        if still:
            self.since, self.patience = self.number, 2 * self.patience
        still = still and moved and not met and problem.provable
        stuck = "" if moved else "step"
        if problem.coarse and (met or still or not moved):
            problem.coarse, problem.tol, stuck = False, 0.0, ""
        elif not (met or still or moved) and problem.colder():
            stuck = ""
        problem.taken += moved
        unsure = bool(coarse and met and problem.provable)
        if coarse and not (problem.coarse or unsure):
            gap = ridge.bracket(theta, -problem.value_and_gradient(theta)[1])
        if problem.coarse:
            problem.tol = min(problem.tol, INNER * (gap / size))
        left = 0.0 if still else gap / size / self.share
        return Reached(theta, value, gap, left, still, unsure, stuck)

    def settled(self, here: Reached, gap: float) -> str:
        """Return "proof" if no descent can make a proof's gap smaller."""
        if here.unsure or (here.still and self.patience <= LONG):
            return ""
        if not here.still and here.gap > AGAIN * gap:
            self.share = AGAIN * self.share
            return ""
        return "proof"


def likelihood(
    dual: Dual, routine: Routine, engine: Engine, oracle: Oracle[Any]
) -> SurrogateProblem:
    """Minus the surrogate likelihood of a dual problem, whose τ the routine computes."""
    ridge, alike = dual.regulariser, routine.alike
    steps = descents(dual.batch, dual.features, ridge, alike, dear=not routine.exact)
    of = {"batch": dual.batch, "bias": dual.batch.bias, "features": dual.features}
    part = LikelihoodPart(**of, routine=routine, entropy=dual.entropy, oracle=oracle)  # type: ignore[arg-type]
    if type(routine).__name__ == "ForwardBackward":  # cheaper where transitions are tied
        from mlestruct.learning.tied import tied

        part = tied(part)
    problem = SurrogateProblem(part, ridge, engine, steps, routine.first, 1)
    problem.bound = str(dual.entropy.bound)
    return problem


@dataclass(frozen=True)
class Kinks:
    """l1·|z| and lower ≤ z ≤ upper: what a step may not cross, beside the smooth function."""

    l1: Array
    lower: Array
    upper: Array

    def value(self, z: Array) -> float:
        return float(self.l1 @ np.abs(z))

    def slope(self, z: Array, gradient: Array) -> Array:
        """The steepest feasible slope: zero where a bound or the kink at 0 holds a weight."""
        at_zero = (z == 0) & (self.l1 > 0)
        pull = np.sign(gradient) * np.maximum(np.abs(gradient) - self.l1, 0.0)
        slope = np.where(at_zero, pull, gradient + self.l1 * np.sign(z))
        held = ((z <= self.lower) & (slope > 0)) | ((z >= self.upper) & (slope < 0))
        return np.where(held, 0.0, slope)

    def project(self, z: Array, moved: Array, slope: Array) -> Array:
        """``moved`` within the bounds, and on z's side of zero wherever |z| has a kink there."""
        side = np.where(z != 0, np.sign(z), -np.sign(slope))
        crossed = (self.l1 > 0) & (moved * side < 0)
        return np.clip(np.where(crossed, 0.0, moved), self.lower, self.upper)


class LBFGS:
    """A descent of ``function(z) -> (value, gradient)``; the value never rises.

    Two passes over 2·memory·d numbers per iteration besides the function. Steps along −gradient
    start at length 1, or at ``first`` times the gradient where its units are known to be right.
    From another descent's ``state()`` it takes the steps that that one would have. ``pairs`` are
    the last steps s and what they changed the gradient by, y.
    """

    def __init__(
        self,
        function: Function,
        z: Array,
        memory: int = 10,
        kinks: Kinks | None = None,
        first: float | None = None,
        state: Tree = None,
    ) -> None:
        self.function, self.kinks, self.first, self.memory = function, kinks, first, memory
        self.z = z.copy() if kinks is None else np.clip(z, kinks.lower, kinks.upper)
        self.value, self.gradient, self.begun = np.inf, self.z, state is not None
        self.pairs: list[tuple[Array, Array]] = []
        if state is not None:
            self.z, self.value, self.gradient, self.pairs = state
            for one in (self.z, self.gradient, *(part for pair in self.pairs for part in pair)):
                like(one, z)

    def state(self) -> Tree:
        """Where another descent can go on from: a tree of live arrays; None at its start."""
        return None if not self.begun else (self.z, self.value, self.gradient, self.pairs)

    def step(self) -> bool:
        """Move to the next point, or at first evaluate the start; False if no step led on."""
        kinks = self.kinks
        if not self.begun:
            self.begun = True
            self.value, self.gradient = self.evaluate(self.z)
            self.value += 0.0 if kinks is None else kinks.value(self.z)
            return True
        while True:
            slope = self.gradient if kinks is None else kinks.slope(self.z, self.gradient)
            direction = self.direction(slope, None if kinks is None or slope.all() else slope != 0)
            if float(direction @ slope) >= 0:
                self.pairs, direction = [], -slope
            length = 1.0
            if not self.pairs:
                length = self.first or 1.0 / max(1.0, float(np.linalg.norm(slope)))
            if kinks is None:
                found = self._search(direction, length)
            else:
                found = self._projected_search(kinks, slope, direction, length)
            if found is not None:
                s, y = found[0] - self.z, found[2] - self.gradient
                if float(s @ y) > 1e-12 * float(y @ y):  # else its curvature is lost in rounding
                    self.pairs = [*self.pairs, (s, y)][-self.memory :]
                self.z, self.value, self.gradient = found
                return True
            if not self.pairs:
                return False
            self.pairs = []  # stale curvature: once more, straight downhill

    def evaluate(self, z: Array) -> tuple[float, Array]:
        """The smooth function and its gradient."""
        return self.function(z)

    def direction(self, g: Array, free: NDArray[np.bool_] | None = None) -> Array:
        """−H g by the two-loop recursion, on the free weights alone where some are held."""
        out = -g
        if free is not None:
            out[~free] = 0.0
        pairs = self.pairs if free is None else [(s * free, y * free) for s, y in self.pairs]
        used = [(s, y, sy) for s, y in pairs if (sy := float(s @ y)) > 1e-12 * float(y @ y)]
        alphas = []
        for s, y, sy in reversed(used):
            alphas.append(float(s @ out) / sy)
            out -= alphas[-1] * y
        if used:
            s, y, sy = used[-1]
            out *= sy / float(y @ y)
        for s, y, sy in used:
            out += (alphas.pop() - float(y @ out) / sy) * s
        return out

    def _search(self, direction: Array, step: float) -> Point | None:
        """A point with enough decrease and enough curvature (weak Wolfe), by secants."""
        low, high, slope, found = 0.0, np.inf, float(direction @ self.gradient), None
        for _ in range(40):
            new = step * direction
            new += self.z
            reached, gradient = self.evaluate(new)
            bent = float(gradient @ direction)
            if not reached <= self.value + 1e-4 * step * slope + 1e-15 * abs(self.value):
                high = step
            else:
                low, found = step, (new, reached, gradient)
                if not bent < 0.9 * slope:
                    break
            if np.isinf(high):
                secant = step * slope / (slope - bent) if bent > slope else np.inf
                step *= float(np.clip(secant / step, 2.0, 100.0))
            else:
                step = 0.5 * (low + high)
            if high - low <= 1e-14 * max(low, 1e-300):
                break
        return found

    def _projected_search(
        self, kinks: Kinks, slope: Array, direction: Array, step: float
    ) -> Point | None:
        """The first projected point with enough decrease; its curvature may be any."""
        for _ in range(60):
            new = kinks.project(self.z, self.z + step * direction, slope)
            promised = float(slope @ (new - self.z))
            if promised < 0:
                reached, gradient = self.evaluate(new)
                reached += kinks.value(new)
                if reached <= self.value + 1e-4 * promised + 1e-15 * abs(self.value):
                    return new, reached, gradient
            step *= 0.5
        return None


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
        self.regulariser, self.factor = regulariser, factor
        self.scale = np.ones(len(theta)) if scale is None else scale
        z, kinks = theta * self.scale if factor is None else factor.T @ theta, None
        if not regulariser.plain:
            lower, upper = regulariser.lower * self.scale, regulariser.upper * self.scale
            kinks = Kinks(regulariser.l1 / self.scale, lower, upper)
        self.asked = self.at = z
        first = None if factor is None else 1.0
        super().__init__(function, np.asarray(z), memory, kinks, first, state)

    def weights(self, z: Array) -> Array:
        """θ at z."""
        if self.factor is not None:
            return np.asarray(solve_triangular(self.factor, z, trans="T", lower=True))
        ridge, theta = self.regulariser, z / self.scale
        return theta if ridge.plain else np.clip(theta, ridge.lower, ridge.upper)

    def evaluate(self, z: Array) -> tuple[float, Array]:
        """The function of θ, with the smooth part of R, in z."""
        if self.late is not None and self.late():
            raise OutOfTime
        self.asked, self.at = z, self.weights(z)
        value, gradient = self.function(self.at)
        off = self.at - self.regulariser.prior
        pull = off * self.regulariser.lam
        value += 0.5 * float(pull @ off)
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


class Integral:
    """∫ gradient from where a descent stands, in the place of a function's value.

    The trapezoid on each step judges it by slopes. The value itself only fences it: a point is
    infinite where that is a tenth larger, for slopes also vanish far out.
    """

    def __init__(self, function: Function) -> None:
        self.function, self.tried = function, list[IntegralPoint]()

    def __call__(self, theta: Array) -> tuple[float, Array]:
        own, gradient = self.function(theta)
        base = self.tried[0] if self.tried else IntegralPoint(theta, own, own, gradient)
        change = 0.5 * float((base.gradient + gradient) @ (theta - base.theta))
        far = own > base.own + SLACK * max(1.0, abs(base.own))
        value = np.inf if far else base.integral + change
        self.tried.append(IntegralPoint(theta, value, own, gradient))
        return value, gradient


class SlopeDescent(WeightDescent):
    """A descent on the :class:`Integral` of the gradient: it seeks gradient 0.

    A truncated relaxation's value, which follows another gradient, cannot stop it.
    """

    def __init__(
        self,
        function: Function,
        regulariser: Regulariser,
        theta: Array,
        state: Tree = None,
        *,
        scale: Array | None = None,
        **more: Any,
    ) -> None:
        self.integral = Integral(function)
        steps = None if state is None else state[0]
        super().__init__(self.integral, regulariser, theta, steps, scale=scale)
        if state is not None:
            self.integral.tried = [IntegralPoint(super().point()[0], *state[1])]

    def step(self) -> bool:
        moved, integral = super().step(), self.integral
        theta, *_ = super().point()
        here = next(p for p in reversed(integral.tried) if np.array_equal(p.theta, theta))
        integral.tried = [here]
        return moved

    def point(self) -> tuple[Array, float, Array]:
        theta, _, lack = super().point()
        return theta, self.integral.tried[0].own + self.regulariser.value(theta), lack

    def state(self) -> Tree:
        return (super().state(), self.integral.tried[0][1:]) if self.begun else None


def descents(
    batch: Batch[Any],
    features: Features | None,
    ridge: Regulariser,
    alike: Callable[[Batch[Any]], tuple[Array, Array] | None] | None = None,
    *,
    dear: bool = True,
    kind: Callable[..., WeightDescent] = WeightDescent,
) -> Callable[..., WeightDescent]:
    """Make the descents of an objective of the features' scores, in units of its own.

    ``alike`` is a routine's: where it knows the Hessian at scores that are all alike, descents step
    by a factor of it. ``dear`` evaluations make it worth to keep more steps, as many as cost
    little beside one: L-BFGS makes 4 d multiplications and some 4 µs of calls for each of them, an
    evaluation 20 ns or more for each coordinate. On 60 mails (d = 16,494) 43 steps end a skip
    chain's fit in 56 evaluations, 10 in 102. Exact sums and pseudo-likelihood take 1 to 10 ns.

    Without such a factor θ is taken times the root of its penalty, or of the objective's curvature.
    Where columns are alike but for their penalties, curvature has few large directions, which
    L-BFGS learns quickly; dividing by its diagonal would only spread them. Columns that differ by
    more than ``TAME`` are what it does not survive; where all are so large, one number has the
    first step no longer than the rest. A column and its penalty times a power of two
    change either root by just that: the same bits are learned.
    """
    lam = ridge.lam
    kept = min(batch.size // 4000, batch.size // (2 * max(len(lam), 1))) if dear else LEAST
    make = partial(kind, memory=min(max(kept, LEAST), MOST))
    if features is None:
        return make
    if alike is not None and hasattr(features, "gram"):
        known = alike(batch)
        if known is not None and ridge.plain:
            hessian = features.gram(*known)
            hessian[np.diag_indices(len(hessian))] += lam
            with suppress(LinAlgError):  # of columns beyond all sizes the penalty is rounding
                return partial(make, factor=np.asarray(cholesky(hessian, lower=True)))
    with np.errstate(over="ignore"):
        squared = features.squares(batch.weights)
        if squared is None and features.d <= FEW:
            squared = squares(features, batch.weights)
    if squared is None or not np.isfinite(squared).all():
        return make
    curvature = VARIANCE * squared + lam
    times = np.log(curvature / lam)
    if np.ptp(times) > 2.0 * np.log(TAME):
        return partial(make, scale=np.sqrt(curvature))
    if times.mean() > 2.0 * np.log(TAME):
        return partial(make, scale=np.sqrt(lam * np.exp(times.mean())))
    return make if (lam == lam[0]).all() else partial(make, scale=np.sqrt(lam))
