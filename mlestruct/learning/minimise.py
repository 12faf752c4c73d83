"""Minimise R(θ) + Σ over examples by L-BFGS, and prove what was reached.

Nocedal and Wright, *Numerical Optimization* (2006), section 7.2; with kinks as in Andrew and Gao,
*Scalable training of L1-regularized log-linear models* (ICML 2007).

L-BFGS that begins with equal steps in all weights spends its rounds, and then all its digits, on a
column of 50,000 beside one of 1. Descents therefore have a metric: what the inverse of the Hessian
is taken for until steps tell more of it. The objective, its penalty and its certificate stay those
of θ.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

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


def minimise(problem: Problem, loop: Loop, start: Array | None = None) -> Found:
    """Minimise the problem from ``start``, by default the regulariser's optimum.

    It stops where the Fenchel gap of R, which bounds the error once inference has converged, is at
    most the loop's ``tol`` relative to the value, and the proof agrees, if the problem has one.
    Rounds before are estimates without τ.
    """
    if loop.found is not None:
        return loop.found
    ridge, now, steps = problem.regulariser, Standing(), None
    theta = ridge.weights(np.zeros(len(ridge.lam))) if start is None else start
    if loop.state is not None:
        now, (memory, theta, steps) = Standing(*loop.state[0]), loop.state[1:]
        problem.remember(memory)

    def where() -> Tree:
        return astuple(now), problem.memory(), theta, descent.state()

    stuck: str | None = None
    with closing(problem):
        descent = problem.steps(problem.value_and_gradient, theta, ridge, state=steps)
        while True:
            try:
                moved = descent.step()
                stuck = now.look(problem, descent, moved, loop.tol)
            except OutOfTime:  # the last point stands
                if stuck is None:
                    raise
            theta, size = descent.theta, max(1.0, abs(now.value))
            learned = {name: theta[at] for name, at in problem.others.items()}
            said = Found(
                theta, problem.claim(now.value, now.gap), round=now.number,
                calls=(now.number + 1) * problem.examples, examples=problem.examples,
                route="direct", learned=learned or None,
            )  # fmt: skip
            why, met = loop.over(said, stuck or ""), now.gap <= now.share * loop.tol * size
            if problem.provable and (why or met or now.still):
                room, balance = PROOF * loop.tol / problem.examples, why in ("", "step")
                found = problem.prove(theta, room * size, balance=balance)
                proof, tau, odd = found.certificate, found.tau, found.moved
                said = replace(said, certificate=proof, tau=tau, at=tau, moved=odd)
                met = proof.relative <= loop.tol
                why = why or ("" if met else now.settled(proof.gap))
            if why or met:
                return loop.end(said, "" if met else why)
            loop.tell(said)
            # Where no step led on inference has changed: another descent from here.
            if not moved:
                descent = problem.steps(problem.value_and_gradient, theta, ridge)
            now.number, problem.late = now.number + 1, loop.late
            loop.save(where)


@dataclass
class Standing:
    """Where a fit by descent stands, beside its descent and its problem.

    At weights of this ``value`` the best is at most ``gap`` below it by their slope; ``share`` of
    the tolerance is what that may take. Values fell last below ``low``, at round ``since``, and are
    ``still`` if not for as many rounds as there is ``patience``. Where inference was coarse so far
    it is ``unsure``: a proof may tell another gap.
    """

    number: int = 0
    value: float = np.inf
    gap: float = np.inf
    share: float = 1.0
    low: float = np.inf
    since: int = 0
    patience: int = PATIENCE
    still: bool = False
    unsure: bool = False

    def look(self, problem: Problem, descent: LBFGS, moved: bool, tol: float) -> str:
        """See how far a new point is from the best; return "step" if no way leads on from it.

        Where a search has ended, as weights are as good as inference can tell or no step was found,
        inference becomes exact, and then cold, as often as that helps.
        """
        ridge, theta = problem.regulariser, descent.theta
        self.value = descent.own + ridge.value(theta)
        self.gap, size = ridge.bracket(theta, -descent.gradient), max(1.0, abs(self.value))
        met, coarse, stuck = self.gap <= tol * size, problem.coarse, "" if moved else "step"
        if self.value < self.low - max(STILL * tol, 1e-13) * size:
            self.low, self.since = self.value, self.number
        # Of columns beyond all sizes the gap of the weights is rounding, times their squares.
        still = self.number - self.since >= self.patience
        if still:
            self.since, self.patience = self.number, 2 * self.patience
        self.still = still and moved and not met and problem.provable
        if coarse and (met or self.still or not moved):
            problem.coarse, problem.tol, stuck = False, 0.0, ""
        elif not (met or self.still or moved) and problem.colder():
            stuck = ""
        problem.taken += moved
        self.unsure = bool(coarse and met and problem.provable)
        if coarse and not (problem.coarse or self.unsure):
            self.gap = ridge.bracket(theta, -problem.value_and_gradient(theta)[1])
        if problem.coarse:
            problem.tol = min(problem.tol, INNER * (self.gap / size))
        return stuck

    def settled(self, gap: float) -> str:
        """Return "proof" if no descent can make a proof's gap smaller."""
        if self.unsure or (self.still and self.patience <= LONG):
            return ""
        if not self.still and self.gap > AGAIN * gap:
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


class LBFGS:
    """A descent of R(θ) + ``function(θ) -> (value, gradient)``; the value never rises.

    Two passes over 2·memory·d numbers per iteration besides the function. The ``metric`` is what
    −gradient is multiplied with: d numbers, or the inverse of L Lᵀ by a lower triangular L, which
    is near the Hessian, so that first steps have the length 1; others are no longer than 1. By
    ``slopes`` a step is judged by the trapezoid of the gradient, which is not the value's own; the
    value only fences it, for slopes also vanish far out. ``own`` is the function's value,
    ``gradient`` its gradient, ``pairs`` are the last steps s, what they changed the slope by, y,
    and the metric times y. From another descent's ``state()`` it takes the steps that that one
    would have.
    """

    def __init__(
        self,
        function: Function,
        theta: Array,
        ridge: Regulariser | None = None,
        memory: int = 10,
        metric: Array | None = None,
        slopes: bool = False,
        state: Tree = None,
    ) -> None:
        self.function, self.memory, self.metric, self.slopes = function, memory, metric, slopes
        if ridge is None:
            none, wide = np.zeros(len(theta)), np.full(len(theta), np.inf)
            ridge = Regulariser(none, none, none, -wide, wide)
        self.ridge, self.theta = ridge, np.clip(theta, ridge.lower, ridge.upper)
        self.value, self.own, self.gradient, self.begun = np.inf, np.inf, theta, state is not None
        self.pairs: list[tuple[Array, Array, Array]] = []
        if state is not None:
            self.theta, self.value, self.own, self.gradient, self.pairs = state
            for one in (self.theta, self.gradient, *(part for pair in self.pairs for part in pair)):
                like(one, theta)

    def state(self) -> Tree:
        """Where another descent can go on from: a tree of live arrays; None at its start."""
        if not self.begun:
            return None
        return self.theta, self.value, self.own, self.gradient, self.pairs

    def step(self) -> bool:
        """Move to the next point, or at first evaluate the start; False if no step led on."""
        ridge = self.ridge
        if not self.begun:
            self.begun = True
            self.own, self.gradient = self.function(self.theta)
            self.value = self.own + ridge.value(self.theta)
            return True
        while True:
            slope = self.gradient + ridge.lam * (self.theta - ridge.prior)
            if not ridge.plain:  # zero where a bound or the kink at 0 holds a weight
                pull = np.sign(slope) * np.maximum(np.abs(slope) - ridge.l1, 0.0)
                at_zero = (self.theta == 0) & (ridge.l1 > 0)
                slope = np.where(at_zero, pull, slope + ridge.l1 * np.sign(self.theta))
                low, high = self.theta <= ridge.lower, self.theta >= ridge.upper
                slope = np.where((low & (slope > 0)) | (high & (slope < 0)), 0.0, slope)
            direction = self.direction(slope, None if ridge.plain or slope.all() else slope != 0)
            if float(direction @ slope) >= 0:
                self.pairs, direction = [], -self._scaled(slope)
            length = 1.0
            if not self.pairs and (self.metric is None or self.metric.ndim == 1):
                length = 1.0 / max(1.0, float(np.sqrt(-(direction @ slope))))
            found = self._search(slope, direction, length)
            if found is not None:
                s = found[0] - self.theta
                y = found[3] - self.gradient + ridge.lam * s
                pair = s, y, self._scaled(y)
                if float(s @ y) > 1e-12 * float(y @ pair[2]):  # else its curvature is rounding
                    self.pairs = [*self.pairs, pair][-self.memory :]
                self.theta, self.value, self.own, self.gradient = found
                return True
            if not self.pairs:
                return False
            self.pairs = []  # stale curvature: once more, straight downhill

    def _scaled(self, g: Array) -> Array:
        """The metric times g."""
        if self.metric is None:
            return g
        if self.metric.ndim == 1:
            return self.metric * g
        return np.asarray(cho_solve((self.metric, True), g))

    def direction(self, g: Array, free: NDArray[np.bool_] | None = None) -> Array:
        """−H g by the two-loop recursion, on the free weights alone where some are held."""
        out = -g
        if free is not None:
            out[~free] = 0.0
        pairs = self.pairs
        if free is not None:
            pairs = [(s * free, y * free, scaled * free) for s, y, scaled in pairs]
        size, used, alphas = 1.0, [], []
        for s, y, scaled in pairs:
            sy, yy = float(s @ y), float(y @ scaled)
            if sy > 1e-12 * yy:
                size = sy / yy
                used.append((s, y, sy))
        for s, y, sy in reversed(used):
            alphas.append(float(s @ out) / sy)
            out -= alphas[-1] * y
        out = size * self._scaled(out)
        for s, y, sy in used:
            out += (alphas.pop() - float(y @ out) / sy) * s
        return out

    def _search(
        self, slope: Array, direction: Array, step: float
    ) -> tuple[Array, float, float, Array] | None:
        """A point with enough decrease and enough curvature (weak Wolfe), by secants.

        With kinks it is the first projected point with enough decrease; its curvature may be any.
        """
        ridge, plain, along, found = self.ridge, self.ridge.plain, float(direction @ slope), None
        low, high, cost = 0.0, np.inf, ridge.value(self.theta)
        for _ in range(40):
            new, promised = self.theta + step * direction, step * along
            if not plain:
                side = np.where(self.theta != 0, np.sign(self.theta), -np.sign(slope))
                new = np.where((ridge.l1 > 0) & (new * side < 0), 0.0, new)
                new = np.clip(new, ridge.lower, ridge.upper)
                promised = float(slope @ (new - self.theta))
            reached = bent = np.inf
            if promised < 0:
                own, gradient = self.function(new)
                bent = float(direction @ (gradient + ridge.lam * (new - ridge.prior)))
                reached = own + ridge.value(new)
                if self.slopes:
                    far = own > self.own + SLACK * max(1.0, abs(self.own))
                    change = 0.5 * float((self.gradient + gradient) @ (new - self.theta))
                    reached = np.inf if far else self.value + change + ridge.value(new) - cost
            if not reached <= self.value + 1e-4 * promised + 1e-15 * abs(self.value):
                high = step
            else:
                low, found = step, (new, reached, own, gradient)
                if not plain or not bent < 0.9 * along:
                    break
            if np.isinf(high):
                secant = step * along / (along - bent) if bent > along else np.inf
                step *= float(np.clip(secant / step, 2.0, 100.0))
            else:
                step = 0.5 * (low + high)
            if high - low <= 1e-14 * max(low, 1e-300):
                break
        return found


def descents(
    batch: Batch[Any],
    features: Features | None,
    ridge: Regulariser,
    alike: Callable[[Batch[Any]], tuple[Array, Array] | None] | None = None,
    *,
    dear: bool = True,
    kind: Callable[..., LBFGS] = LBFGS,
) -> Callable[..., LBFGS]:
    """Make the descents of an objective of the features' scores, in a metric of its own.

    ``alike`` is a routine's: where it knows the Hessian at scores that are all alike, that is the
    metric's inverse. ``dear`` evaluations make it worth to keep more steps, as many as cost
    little beside one: L-BFGS makes 4 d multiplications and some 4 µs of calls for each of them, an
    evaluation 20 ns or more for each coordinate. On 60 mails (d = 16,494) 43 steps end a skip
    chain's fit in 56 evaluations, 10 in 102. Exact sums and pseudo-likelihood take 1 to 10 ns.

    Otherwise every weight is divided by its penalty, or by the objective's curvature.
    Where columns are alike but for their penalties, curvature has few large directions, which
    L-BFGS learns quickly; dividing by its diagonal would only spread them. Columns that differ by
    more than ``TAME`` are what it does not survive; where all are so large, one number has the
    first step no longer than the rest. A column and its penalty times a power of two
    change either by just that: the same bits are learned.
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
                return partial(make, metric=np.asarray(cholesky(hessian, lower=True)))
    with np.errstate(over="ignore"):
        squared = features.squares(batch.weights)
        if squared is None and features.d <= FEW:
            squared = squares(features, batch.weights)
    if squared is None or not np.isfinite(squared).all():
        return make
    curvature = VARIANCE * squared + lam
    times = np.log(curvature / lam)
    if np.ptp(times) > 2.0 * np.log(TAME):
        return partial(make, metric=1.0 / curvature)
    if times.mean() > 2.0 * np.log(TAME):
        return partial(make, metric=1.0 / (lam * np.exp(times.mean())))
    return make if (lam == lam[0]).all() else partial(make, metric=1.0 / lam)
