"""L-BFGS for a smooth function plus l1‖z‖₁ within bounds; projected where there are kinks.

Nocedal and Wright, *Numerical Optimization* (2006), section 7.2; with kinks as in Andrew and Gao,
*Scalable training of L1-regularized log-linear models* (ICML 2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array

Function = Callable[[Array], tuple[float, Array]]
Point = tuple[Array, float, Array]


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
    From another descent's ``state()`` it takes the steps that that one would have.
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
        self.function, self.kinks, self.first = function, kinks, first
        self.z = z.copy() if kinks is None else np.clip(z, kinks.lower, kinks.upper)
        self.value, self.gradient, self.begun = np.inf, self.z, state is not None
        self.pairs = StepPairs(memory)
        if state is not None:
            self.z, self.value, self.gradient, known = state
            for one in (self.z, self.gradient, *(part for pair in known for part in pair)):
                like(one, z)
            self.pairs.pairs = known

    def state(self) -> Tree:
        """Where another descent can go on from: a tree of live arrays; None at its start."""
        return None if not self.begun else (self.z, self.value, self.gradient, self.pairs.pairs)

    def step(self) -> bool:
        """Move to the next point, or at first evaluate the start; False if no step led on.

        Without kinks a step has enough decrease and enough curvature (weak Wolfe), by secants.
        """
        if not self.begun:
            self.begun, kinks = True, self.kinks
            self.value, self.gradient = self.function(self.z)
            self.value += 0.0 if kinks is None else kinks.value(self.z)
            return True
        if self.kinks is not None:
            return self._projected_step(self.kinks)
        while True:
            direction, step = self._downhill(self.gradient)
            low, high, slope, found = 0.0, np.inf, float(direction @ self.gradient), None
            for _ in range(40):
                new = step * direction
                new += self.z
                reached, gradient = self.function(new)
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
            if found is not None or not self.pairs.pairs:
                return self._move(found)
            self.pairs.pairs = []  # stale curvature: once more, straight downhill

    def _projected_step(self, kinks: Kinks) -> bool:
        """The first projected step with enough decrease; its curvature may be any."""
        while True:
            slope, found = kinks.slope(self.z, self.gradient), None
            direction, step = self._downhill(slope, None if (slope != 0).all() else slope != 0)
            for _ in range(60):
                new = kinks.project(self.z, self.z + step * direction, slope)
                promised = float(slope @ (new - self.z))
                if promised < 0:
                    reached, gradient = self.function(new)
                    reached += kinks.value(new)
                    if reached <= self.value + 1e-4 * promised + 1e-15 * abs(self.value):
                        found = new, reached, gradient
                        break
                step *= 0.5
            if found is not None or not self.pairs.pairs:
                return self._move(found)
            self.pairs.pairs = []

    def _downhill(self, slope: Array, free: Any = None) -> tuple[Array, float]:
        """Where to step, and how far at first."""
        direction = self.pairs.direction(slope, free)
        if float(direction @ slope) >= 0:
            self.pairs.pairs, direction = [], -slope
        if self.pairs.pairs:
            return direction, 1.0
        return direction, self.first or 1.0 / max(1.0, float(np.linalg.norm(slope)))

    def _move(self, found: Point | None) -> bool:
        if found is None:
            return False
        self.pairs.push(found[0] - self.z, found[2] - self.gradient)
        self.z, self.value, self.gradient = found
        return True


class StepPairs:
    """The last steps s and bends y, of which H is made by the two-loop recursion."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.pairs: list[tuple[Array, Array]] = []

    def push(self, s: Array, y: Array) -> None:
        """Remember a step, unless its curvature is lost in rounding."""
        if float(s @ y) > 1e-12 * float(y @ y):
            self.pairs = [*self.pairs, (s, y)][-self.memory :]

    def direction(self, g: Array, free: NDArray[np.bool_] | None = None) -> Array:
        """−H g, on the free weights alone where some are held."""
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
