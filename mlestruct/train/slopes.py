"""The gradient's integral as a value for line searches, where the gradient is not the value's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.lbfgs import Descent, Step
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train.descents import descend
from mlestruct.trees import Tree

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
