"""The gradient's integral as a value for line searches, where the gradient is not the value's."""

from __future__ import annotations

from collections import deque

from mlestruct.objectives.base import Sum
from mlestruct.structures.base import Array

KEPT = 128  # more points than a search tries before it gives up


class Slopes:
    """θ → (∫ gradient along the points asked for, gradient): a minimiser then seeks gradient 0.

    Trapezoids from one point to the next, from the objective's own value at the first. A step is
    so judged by slopes alone, and a truncated relaxation's value, which follows another gradient,
    cannot stop the search.
    """

    def __init__(self, total: Sum) -> None:
        self.total = total
        self.last: tuple[Array, float, Array] | None = None
        self.tried: deque[tuple[Array, float]] = deque(maxlen=KEPT)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        value, gradient = self.total(theta)
        self.tried.append((theta, value))
        if self.last is not None:
            at, before, slope = self.last
            value = before + 0.5 * float((slope + gradient) @ (theta - at))
        self.last = theta, value, gradient
        return value, gradient

    def settle(self, theta: Array) -> float:
        """The objective's value at the point a search ended at; forgets the others it tried."""
        kept = next(pair for pair in reversed(self.tried) if pair[0] is theta)
        self.tried.clear()
        self.tried.append(kept)
        return kept[1]
