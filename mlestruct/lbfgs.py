"""L-BFGS for a smooth function plus l1‖θ‖₁ within bounds; projected where there are kinks.

It calls no function: a descent is a generator that asks for the value and gradient at a point, is
sent them, and says after every step where it stands. Whoever answers keeps its own loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.checkpoint import never
from mlestruct.structures.base import Array
from mlestruct.trees import Tree, like

Function = Callable[[Array], tuple[float, Array]]
Found = tuple[Array, float, Array]
Answer = tuple[float, Array]


class Step(NamedTuple):
    """A point of a descent, whether it moved there, and ``where`` another can go on from.

    ``where()`` is a tree of live arrays: call it before the next step is asked for, and copy what
    you keep.
    """

    theta: Array
    value: float
    gradient: Array
    moved: bool
    where: Callable[[], Tree]


@dataclass(frozen=True)
class Kinks:
    """l1·|θ| and lower ≤ θ ≤ upper: what a step may not cross, beside the smooth function."""

    l1: Array
    lower: Array
    upper: Array

    def clip(self, theta: Array) -> Array:
        return np.clip(theta, self.lower, self.upper)

    def value(self, theta: Array) -> float:
        return float(self.l1 @ np.abs(theta))

    def slope(self, theta: Array, gradient: Array) -> Array:
        """The steepest feasible slope: zero where a bound or the kink at 0 holds a weight."""
        at_zero = (theta == 0) & (self.l1 > 0)
        pull = np.sign(gradient) * np.maximum(np.abs(gradient) - self.l1, 0.0)
        slope = np.where(at_zero, pull, gradient + self.l1 * np.sign(theta))
        held = ((theta <= self.lower) & (slope > 0)) | ((theta >= self.upper) & (slope < 0))
        return np.where(held, 0.0, slope)

    def project(self, theta: Array, moved: Array, slope: Array) -> Array:
        """``moved`` within the bounds, and on θ's side of zero wherever |θ| has a kink there."""
        side = np.where(theta != 0, np.sign(theta), -np.sign(slope))
        crossed = (self.l1 > 0) & (moved * side < 0)
        return self.clip(np.where(crossed, 0.0, moved))


Descent = Generator[Array | Step, Answer, None]
"""Yields points, each to be answered by ``send((value, gradient))``, and steps, which are not."""
Search = Generator[Array, Answer, Found | None]


def next_step(
    asking: Descent, objective: Function, late: Callable[[], bool] = never
) -> Step | None:
    """Answers a descent's questions until it has made a step.

    None where it has ended, or where it is ``late`` before one of them is answered.
    """
    said = next(asking, None)
    while said is not None and not isinstance(said, Step):
        if late():
            return None
        said = asking.send(objective(said))
    return said


def descent(
    theta: Array,
    memory: int = 10,
    kinks: Kinks | None = None,
    first: float | None = None,
    since: Tree = None,
) -> Descent:
    """Yields every point with the gradient of the smooth part there; the value never rises.

    Two passes over 2·memory·d numbers per iteration besides the objective. Steps along −gradient
    start at length 1, or at ``first`` times the gradient where its units are known to be right.
    ``since`` another descent's ``where()``, it yields what that one would have next.
    """
    given, pairs, smooth = theta, StepPairs(len(theta), memory), kinks is None

    def where() -> Tree:
        return theta, value, gradient, pairs.tree()

    if since is None:
        theta = theta.copy() if kinks is None else kinks.clip(theta)
        value, gradient = yield theta
        value += 0.0 if kinks is None else kinks.value(theta)
        yield Step(theta, value, gradient, True, where)
    else:
        theta, value, gradient, known = since
        like((theta, gradient), (given, given))
        pairs.recall(known)
    while True:
        slope = gradient if kinks is None else kinks.slope(theta, gradient)
        free = None if smooth or (slope != 0).all() else slope != 0
        direction = pairs.descent(slope, free)
        if float(direction @ slope) >= 0:
            pairs.clear()
            direction = -slope
        step = 1.0 if pairs.count else first or 1.0 / max(1.0, float(np.linalg.norm(slope)))
        if kinks is None:
            found = yield from _search(theta, value, direction, float(direction @ slope), step)
        else:
            found = yield from _backtrack(kinks, theta, value, direction, slope, step)
        if found is None and pairs.count:
            pairs.clear()  # stale curvature: once more, straight downhill
            continue
        if found is None:
            yield Step(theta, value, gradient, False, where)
            return
        new, value, fresh = found
        pairs.push(new, theta, fresh, gradient)
        theta, gradient = new, fresh
        yield Step(theta, value, gradient, True, where)


class StepPairs:
    """The last steps s and bends y; only S·g, Y·g and two sums of rows touch long vectors.

    The two loops run on the (memory × memory) products of the rows, which are kept current.
    """

    def __init__(self, d: int, memory: int) -> None:
        self.s, self.y = np.zeros((memory, d)), np.zeros((memory, d))
        self.sy, self.yy = np.zeros((memory, memory)), np.zeros((memory, memory))
        self.order: list[int] = []

    @property
    def count(self) -> int:
        return len(self.order)

    def clear(self) -> None:
        self.order = []

    def tree(self) -> Tree:
        return self.order, self.s, self.y, self.sy, self.yy

    def recall(self, tree: Tree) -> None:
        self.order, *rows = tree
        self.s, self.y, self.sy, self.yy = like(rows, self.tree()[1:])

    def push(self, new: Array, old: Array, fresh: Array, gradient: Array) -> None:
        """Remember a step, unless its curvature is lost in rounding."""
        rows = len(self.s)
        row = self.order[0] if self.count == rows else min(set(range(rows)) - set(self.order))
        s, y = self.s[row], self.y[row]
        np.subtract(new, old, out=s)
        np.subtract(fresh, gradient, out=y)
        self.order = [k for k in self.order if k != row]
        if not float(s @ y) > 1e-12 * float(y @ y):
            return
        self.order.append(row)
        self.sy[:, row], self.yy[:, row] = self.s @ y, self.y @ y
        self.sy[row], self.yy[row] = self.y @ s, self.yy[:, row]

    def descent(self, g: Array, free: NDArray[np.bool_] | None = None) -> Array:
        """−H g, on the free weights alone where some are held."""
        if not self.order:
            return -g
        if free is None:
            return self._loops(self.s, self.y, self.sy, self.yy, g)
        out = np.zeros_like(g)
        s, y = self.s[:, free], self.y[:, free]
        out[free] = self._loops(s, y, s @ y.T, y @ y.T, g[free])
        return out

    def _loops(self, s: Array, y: Array, sy: Array, yy: Array, g: Array) -> Array:
        used = [k for k in self.order if sy[k, k] > 1e-12 * yy[k, k]]
        if not used:
            return -g
        s_g, y_g = s @ g, y @ g
        alpha, beta = np.zeros(len(s)), np.zeros(len(s))
        for k in reversed(used):
            alpha[k] = (s_g[k] - sy[k] @ alpha) / sy[k, k]
        scale = sy[used[-1], used[-1]] / yy[used[-1], used[-1]]
        for k in used:
            slope = scale * (y_g[k] - yy[k] @ alpha) + sy[:, k] @ beta
            beta[k] = alpha[k] - slope / sy[k, k]
        out: Array = (scale * alpha) @ y
        out -= beta @ s
        out -= scale * g
        return out


def _search(theta: Array, value: float, direction: Array, slope: float, step: float) -> Search:
    """A step with enough decrease and enough curvature (weak Wolfe), by bracketing and secants."""
    low, high, before = 0.0, np.inf, slope
    kept = None
    for _ in range(40):
        new = step * direction
        new += theta
        reached, gradient = yield new
        bent = float(gradient @ direction)
        if not reached <= value + 1e-4 * step * slope + 1e-15 * abs(value):
            high = step
        elif bent < 0.9 * slope:
            low, kept = step, (new, reached, gradient)
        else:
            return new, reached, gradient
        if np.isinf(high):
            secant = step * before / (before - bent) if bent > before else np.inf
            step *= float(np.clip(secant / step, 2.0, 100.0))
        else:
            step = 0.5 * (low + high)
        if high - low <= 1e-14 * max(low, 1e-300):
            break
    return kept


def _backtrack(
    kinks: Kinks, theta: Array, value: float, direction: Array, slope: Array, step: float
) -> Search:
    """The first projected step with enough decrease; its curvature may be any."""
    for _ in range(60):
        new = kinks.project(theta, theta + step * direction, slope)
        promised = float(slope @ (new - theta))
        if promised < 0:
            reached, gradient = yield new
            reached += kinks.value(new)
            if reached <= value + 1e-4 * promised + 1e-15 * abs(value):
                return new, reached, gradient
        step *= 0.5
    return None
