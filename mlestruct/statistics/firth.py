"""Bias-reduced estimates: Firth (1993, Biometrika 80, equation 3), by Newton's steps; their ends.

θ maximises ℓ(θ) + w log det H(θ), with H the information: with w = ½ that is Jeffreys' prior, and
takes away the bias of order 1/examples. For a surrogate of the likelihood w = ½ tr(H⁻¹J)/rank, with
J the exact variance of the scores (Kosmidis & Lunardon 2024, J. R. Stat. Soc. B 86: M-estimators).
The penalty is finite where the likelihood alone has no maximum, and so is the estimate.

H and the penalty's slope take 2 · rank + 1 calls of inference, the likelihood's own slope one. So
both are taken as constant while BFGS climbs by slopes alone, and computed anew where it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mlestruct.statistics.likelihood import Likelihood, Slopes
from mlestruct.structures.base import Array

STEPS, SHORTER = 60, 6  # of the search, each with H and its slope anew; quarters of one of them
INNER = 15  # steps of BFGS between two of these
NEAR = 0.3  # of the penalty's slope what may be off for it to lead anywhere
DONE = 2e-3  # of a step, in standard errors
HELD = 0.08  # the same while a contrast is held: the height, off by half its square, is all
NOISE = 0.03  # the same where no step leads higher
KEPT = 1e-3  # the same for whether there is a maximum
ROUGH = 0.1  # the same where all steps are spent
FINER = 1 / 16  # of a difference, where the usual ones lead no higher


class Unsettled(ArithmeticError):
    """A search that did not come to rest: what it found is no estimate."""


@dataclass(frozen=True)
class Point:
    """θ with its slopes along a ``basis`` that makes H the identity there.

    ``volume`` is log det H in the units that the search began with. ``turned`` is how far H was
    from the identity in the basis that slopes were computed in: ``slopes.third`` is off by about as
    much of itself.
    """

    theta: Array
    basis: Array
    slopes: Slopes
    volume: float
    turned: float

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

    def begin(self, theta: Array, basis: Array, done: float = DONE) -> Point:
        """Where BFGS leads from θ, H being about the identity in this basis."""
        value, score = self.likelihood.values(theta)
        none = np.zeros(basis.shape[1])
        point = Point(theta, basis, Slopes(value, score @ basis, none, none), 0.0, 0.0)
        found = self._higher(point, -np.inf, done, None)
        if found is None:
            raise np.linalg.LinAlgError
        return found

    def start(self, theta: Array, basis: Array, volume: float = 0.0) -> Point:
        """Compute the slopes at θ, and turn the ``basis`` so that H is the identity.

        ``volume`` is log det H in the units of the basis handed in.
        """
        value, score, hessian, third = self.likelihood.slopes(theta, basis, self.step)
        H = hessian.sum(axis=0)
        factor = np.linalg.cholesky(H)
        turn = np.linalg.inv(factor).T
        # as if the basis had been scaled before: what is left of the turn is in ``turned``
        third = third @ turn * len(H) / np.trace(H)
        slopes = Slopes(value, score @ turn, turn.T @ hessian @ turn, third)
        far = float(np.abs(H / (np.trace(H) / len(H)) - np.eye(len(H))).max())
        return Point(theta, basis @ turn, slopes, volume + 2.0 * np.log(np.diag(factor)).sum(), far)

    def maximise(self, point: Point, along: Array | None = None) -> Point:
        """Steps to the top, or to the top where ⟨along, θ⟩ stays; else :class:`Unsettled`.

        A top may be an edge: of some surrogates H jumps where τ comes to a face of its polytope.
        """
        done = DONE if along is None else HELD
        found, left, stuck = self.climb(point, done, along)
        if stuck and left > max(NOISE, done) and self.step is None:
            finer = replace(self, step=FINER * self.likelihood.step)
            again = finer.start(found.theta, found.basis, found.volume)
            found, left, stuck = finer.climb(again, done, along)
        if not stuck and left > ROUGH:
            raise Unsettled
        return found

    def climb(self, point: Point, done: float, along: Array | None) -> tuple[Point, float, bool]:
        """Where the search ends, the length of one more Newton's step, and whether it is stuck.

        It is stuck where that step leads no higher however short it is.
        """
        anew = False
        for _ in range(STEPS):
            length = float(np.linalg.norm(self._slope(point, point.slopes.score, along)))
            found = (
                None
                if length <= done
                else self._higher(point, point.reached(self.weight), done, along)
            )
            if found is None:
                if anew or self._doubt(point) <= done:
                    return point, length, length > done
                found = self.start(point.theta, point.basis, point.volume)
                anew = True
            else:
                anew = False
            point = found
        return point, length, False

    def _higher(
        self, point: Point, reached: float, done: float, along: Array | None
    ) -> Point | None:
        """Where BFGS leads, or a quarter as far, and so on until more is ``reached``."""
        floor = 1e-9 * max(1.0, abs(reached))
        move = self.follow(point, np.zeros(point.basis.shape[1]), done, along)
        for _ in range(SHORTER):
            try:
                found = self.start(point.theta + point.basis @ move, point.basis, point.volume)
                if found.reached(self.weight) >= reached - floor:
                    if self._doubt(found) <= NEAR:
                        return found
                    return self.start(found.theta, found.basis, found.volume)
            except np.linalg.LinAlgError:
                pass  # H is not positive there: too far
            if np.linalg.norm(move) <= NOISE:
                break
            move = move / 4.0
        return None

    def _doubt(self, point: Point) -> float:
        """How far off the penalty's slope may be, in standard errors."""
        return point.turned * self.weight * float(np.linalg.norm(point.slopes.third))

    def follow(
        self,
        point: Point,
        move: Array,
        done: float,
        along: Array | None = None,
        furthest: float | None = None,
    ) -> Array:
        """BFGS from ``move`` standard errors beside a point, with the penalty's slope as there.

        No further than Newton's step, by default: far away the penalty's slope is another.
        """
        inverse, began = np.eye(len(move)), move
        value, slope = self._linear(point, move, along)
        furthest = float(np.linalg.norm(slope)) if furthest is None else furthest
        for _ in range(INNER):
            if np.linalg.norm(slope) <= done / 2:
                break
            step = _within(inverse @ slope, move - began, furthest)
            for _ in range(SHORTER):
                higher, there = self._linear(point, move + step, along)
                if higher >= value:
                    break
                step = step / 4.0
            else:
                break
            fall, move = slope - there, move + step
            value, slope = higher, there
            if np.linalg.norm(move - began) >= 0.999 * furthest:
                break
            if (bent := float(step @ fall)) > 0:
                side = np.eye(len(move)) - np.outer(step, fall) / bent
                inverse = side @ inverse @ side.T + np.outer(step, step) / bent
        return move

    def _linear(self, point: Point, move: Array, along: Array | None) -> tuple[float, Array]:
        """ℓ + w ⟨third, move⟩ and its slope, in the basis of the point."""
        if not move.any():
            return float(point.slopes.value.sum()), self._slope(point, point.slopes.score, along)
        value, score = self.likelihood.values(point.theta + point.basis @ move)
        slope = self._slope(point, score @ point.basis, along)
        return float(value.sum() + self.weight * point.slopes.third @ move), slope

    def _slope(self, point: Point, score: Array, along: Array | None) -> Array:
        """The penalised slope; of what ``along`` moves nothing."""
        slope = score.sum(axis=0) + self.weight * point.slopes.third
        if along is not None:
            c = point.basis.T @ along
            slope = slope - c * (c @ slope) / (c @ c)
        return np.asarray(slope)


def _within(step: Array, gone: Array, furthest: float) -> Array:
    """A step, shortened so that with what is gone already it leads no further."""
    length = float(np.linalg.norm(gone + step))
    return step if length <= furthest else (gone + step) * (furthest / length) - gone


TRIES = 30  # steps to an end
CLOSE = 0.01  # of the fall's root, from which a last secant is right to a thousandth
LEAP = 1e-3  # of a distance within which it falls at once
BESIDE = 2.0  # standard errors within which nearly every plain likelihood has its maximum
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
        try:
            point = _moved(firth, point, contrast, centre + side * distance * unit)
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


def _moved(firth: Firth, point: Point, contrast: Array, value: float) -> Point:
    """About the highest θ with this value of the contrast, as seen from a point beside."""
    c = point.basis.T @ contrast
    move = firth.follow(point, c * (value - contrast @ point.theta) / (c @ c), HELD, contrast)
    return firth.start(point.theta + point.basis @ move, point.basis, point.volume)


def without_end(firth: Firth, top: Point) -> Array | None:
    """The direction in which the plain likelihood rises for ever (separation), or None.

    Where it has a maximum within ``BESIDE``, that is all. Else Newton's steps lead along it, while
    its information dies; towards a maximum they become small.
    """
    plain = Firth(firth.likelihood, 0.0)
    move = plain.follow(top, np.zeros(top.basis.shape[1]), KEPT, None, BESIDE)
    score = firth.likelihood.values(top.theta + top.basis @ move)[1]
    if np.linalg.norm(score.sum(axis=0) @ top.basis) <= KEPT:
        return None
    found, left, _ = plain.climb(top, KEPT / 10.0, None)
    drift = found.theta - top.theta
    far = np.linalg.norm(np.linalg.lstsq(top.basis, drift, rcond=None)[0]) > FAR / 4
    return np.asarray(drift) if far or left > KEPT else None


def open_sides(drift: Array | None, top: Point, contrast: Array) -> tuple[bool, bool]:
    """Whether a contrast has no (lower, upper) end, because a separation moves it."""
    if drift is None:
        return False, False
    moved = float(contrast @ drift) / float(np.linalg.norm(top.basis.T @ contrast))
    length = float(np.linalg.norm(np.linalg.lstsq(top.basis, drift, rcond=None)[0]))
    return moved < -DRIFT * length, moved > DRIFT * length
