"""Bias-reduced estimates: Firth (1993, Biometrika 80, equation 3), by Newton's steps.

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
LONGEST = 5.0  # standard errors that one step may take
DONE = 1e-5  # of a step, in standard errors
KEPT = 1e-3  # the same while a contrast is held: what is asked for is the height alone
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
        if stuck and left > KEPT and self.step is None:
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
        for _ in range(STEPS):
            step = self._step(point, along)
            length = float(np.linalg.norm(step))
            if length <= (DONE if along is None else KEPT):
                break
            found = self._shorter(point, step * min(1.0, LONGEST / length))
            if found is None:
                return point, length, True
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

    def _shorter(self, point: Point, step: Array) -> Point | None:
        reached = point.reached(self.weight)
        floor = 1e-9 * max(1.0, abs(reached))
        for _ in range(HALVES):
            theta = point.theta + point.basis @ step
            try:
                found = self._at(theta, point.basis, point.volume)
                if found.reached(self.weight) >= reached - floor:
                    return found
            except np.linalg.LinAlgError:
                pass  # H is not positive there: too far
            step = step / 2.0
        return None

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
