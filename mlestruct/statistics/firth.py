"""Bias-reduced estimates: Firth (1993, Biometrika 80, equation 3), by Newton's steps; their ends.

θ maximises ℓ(θ) + w log det H(θ), with H the information: with w = ½ that is Jeffreys' prior, and
takes away the bias of order 1/examples. For a surrogate of the likelihood w = ½ tr(H⁻¹J)/rank, with
J the exact variance of the scores (Kosmidis & Lunardon 2024, J. R. Stat. Soc. B 86: M-estimators).
The penalty is finite where the likelihood alone has no maximum, and so is the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mlestruct.statistics.likelihood import Likelihood, Slopes
from mlestruct.structures.base import Array

STEPS, HALVES = 60, 12  # of Newton's, and of one of them
LONGEST = 5.0  # standard errors that the first step may take; twice as many where it was not halved
DONE = 1e-4  # of a step, in standard errors: below a third of it differences are rounding
HELD = 0.03  # the same while a contrast is held: the height, off by half its square, is all
KEPT = 1e-3  # the same where no step leads higher, and for whether there is a maximum
ROUGH = 0.1  # the same where all steps are spent
FINER = 1 / 16  # of a difference, where the usual ones lead no higher
TURNED = 1e-4  # how far H may be from the identity before the basis is turned again


class Unsettled(ArithmeticError):
    """A search that did not come to rest: what it found is no estimate."""


@dataclass(frozen=True)
class Point:
    """θ with its slopes along a ``basis`` that makes H the identity there, or nearly.

    ``volume`` is log det H in the units that the search began with.
    """

    theta: Array
    basis: Array
    slopes: Slopes
    volume: float

    @property
    def hessian(self) -> Array:
        return np.asarray(self.slopes.hessian.sum(axis=0))

    def reached(self, weight: float) -> float:
        """The penalised log-likelihood."""
        return float(self.slopes.value.sum()) + weight * self.volume


@dataclass(frozen=True)
class Firth:
    """The search for one likelihood, and ``weight`` of log det H; 0 is the plain likelihood.

    ``step`` is that of its differences, where it is not the usual one.
    """

    likelihood: Likelihood
    weight: float
    step: float | None = None

    def start(self, theta: Array, basis: Array, volume: float = 0.0) -> Point:
        """θ in a basis of its own; ``volume`` is that of the basis handed in."""
        return self._turned(self._at(theta, basis, volume))

    def maximise(self, point: Point, along: Array | None = None) -> Point:
        """Steps to the top, or to the top where ⟨along, θ⟩ stays; else :class:`Unsettled`.

        A top may be an edge: of some surrogates H jumps where τ comes to a face of its polytope.
        """
        found, left, stuck = self.climb(point, along)
        if stuck and left > (KEPT if along is None else HELD) and self.step is None:
            finer = replace(self, step=FINER * self.likelihood.step)
            found, left, stuck = finer.climb(
                finer.start(found.theta, found.basis, found.volume), along
            )
        if not stuck and left > ROUGH:
            raise Unsettled
        return found

    def climb(self, point: Point, along: Array | None = None) -> tuple[Point, float, bool]:
        """Where Newton's steps end, the length of one more, and whether it leads no higher.

        A step is halved until the penalised likelihood rises. O(rank) calls of inference each.
        """
        longest = LONGEST
        for _ in range(STEPS):
            step = self._step(point, along)
            length = float(np.linalg.norm(step))
            if length <= (DONE if along is None else HELD):
                break
            found, halves = self._shorter(point, step * min(1.0, longest / length))
            if found is None:
                return point, length, True
            longest = max(LONGEST, longest * (2.0 if halves == 0 else 0.5**halves))
            point = self._turned(found)
        return point, length, False

    def _step(self, point: Point, along: Array | None) -> Array:
        slope = point.slopes.score.sum(axis=0) + self.weight * point.slopes.third
        H = point.hessian
        step = np.linalg.solve(H, slope)
        if along is not None:
            c = point.basis.T @ along
            back = np.linalg.solve(H, c)
            step = step - back * (c @ step) / (c @ back)
        return np.asarray(step)

    def _shorter(self, point: Point, step: Array) -> tuple[Point | None, int]:
        """Where the step leads once it is short enough to lead higher, and how often halved."""
        reached = point.reached(self.weight)
        floor = 1e-9 * max(1.0, abs(reached))
        for halves in range(HALVES):
            theta = point.theta + point.basis @ step
            try:
                found = self._at(theta, point.basis, point.volume)
                if found.reached(self.weight) >= reached - floor:
                    return found, halves
            except np.linalg.LinAlgError:
                pass  # H is not positive there: too far
            step = step / 2.0
        return None, HALVES

    def _at(self, theta: Array, basis: Array, volume: float) -> Point:
        """At θ, ``volume`` being that of the basis."""
        slopes = self.likelihood.slopes(theta, basis, self.step)
        factor = np.linalg.cholesky(slopes.hessian.sum(axis=0))
        return Point(theta, basis, slopes, volume + 2.0 * float(np.log(np.diag(factor)).sum()))

    def _turned(self, point: Point) -> Point:
        """The same θ, in a basis that makes its H the identity, nearly at least."""
        if np.abs(point.hessian - np.eye(len(point.hessian))).max() <= TURNED:
            return point
        basis = point.basis @ np.linalg.inv(np.linalg.cholesky(point.hessian)).T
        slopes = self.likelihood.slopes(point.theta, basis, self.step)
        return replace(point, basis=basis, slopes=slopes)


TRIES = 30  # steps to an end
CLOSE = 0.01  # of the fall's root, from which a last secant is right to a thousandth
LEAP = 1e-3  # of a distance within which it falls at once
FAR = 40.0  # standard errors from the estimate, beyond which there is no end
DRIFT = 0.02  # of a separated direction's length, that a contrast may have in it


def end(firth: Firth, top: Point, contrast: Array, fall: float, side: int) -> float:
    """Where 2 (top − profile of ⟨contrast, θ⟩) reaches ``fall`` on one side; ±inf where never.

    The root of the fall is nearly linear, so it is followed by secants; others are kept at their
    best, one Newton search each. :class:`Unsettled` where that ends nowhere.
    """
    centre, best = float(contrast @ top.theta), top.reached(firth.weight)
    unit = float(np.linalg.norm(top.basis.T @ contrast))
    root, point = np.sqrt(fall), top
    near, far = (0.0, 0.0), None
    distance = root
    for _ in range(TRIES):
        if distance > FAR:
            return side * np.inf
        point = _moved(point, contrast, centre + side * distance * unit)
        try:
            point = firth.start(point.theta, point.basis, point.volume)
        except np.linalg.LinAlgError:
            far, distance, point = (distance, 2 * root), 0.5 * (near[0] + distance), top
            continue
        point = firth.maximise(point, contrast)
        fell = float(np.sqrt(max(2.0 * (best - point.reached(firth.weight)), 0.0)))
        if fell < root:
            near = (distance, fell)
        else:
            far = (distance, fell)
        if abs(fell - root) <= CLOSE * root:
            return centre + side * _last(near, far, root) * unit
        if far is not None and far[0] - near[0] <= LEAP * far[0]:
            return centre + side * far[0] * unit
        distance = _next(near, far, root)
    raise Unsettled


def _next(near: tuple[float, float], far: tuple[float, float] | None, root: float) -> float:
    if far is None:
        return near[0] * float(np.clip(root / max(near[1], 1e-3), 1.05, 2.0))
    share = (root - near[1]) / (far[1] - near[1])
    return near[0] + float(np.clip(share, 0.05, 0.95)) * (far[0] - near[0])


def _last(near: tuple[float, float], far: tuple[float, float] | None, root: float) -> float:
    """The root of the fall's line, close to one of both."""
    if far is None:
        return near[0] * root / near[1]
    return near[0] + (root - near[1]) / (far[1] - near[1]) * (far[0] - near[0])


def _moved(point: Point, contrast: Array, value: float) -> Point:
    """The nearest θ with this value of the contrast, nearness by the point's own information."""
    c = point.basis.T @ contrast
    step = c * (value - contrast @ point.theta) / (c @ c)
    return Point(point.theta + point.basis @ step, point.basis, point.slopes, point.volume)


def without_end(firth: Firth, top: Point) -> Array | None:
    """The direction in which the plain likelihood rises for ever (separation), or None.

    Newton's steps double their way along it, while its information dies; towards a maximum they
    become small.
    """
    found, left, _ = Firth(firth.likelihood, 0.0).climb(top)
    drift = found.theta - top.theta
    far = np.linalg.norm(np.linalg.lstsq(top.basis, drift, rcond=None)[0]) > FAR / 4
    if left <= KEPT and not far:
        return None
    return np.asarray(drift)


def open_sides(drift: Array | None, top: Point, contrast: Array) -> tuple[bool, bool]:
    """Whether a contrast has no (lower, upper) end, because a separation moves it."""
    if drift is None:
        return False, False
    moved = float(contrast @ drift) / float(np.linalg.norm(top.basis.T @ contrast))
    length = float(np.linalg.norm(np.linalg.lstsq(top.basis, drift, rcond=None)[0]))
    return moved < -DRIFT * length, moved > DRIFT * length
