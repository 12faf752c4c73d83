"""A descent keeps the start where nothing better is found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.engine import Serial
from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Loop
from mlestruct.learning.minimise import WeightDescent, minimise
from mlestruct.learning.problem import Proof, SurrogateProblem, Value
from mlestruct.learning.regulariser import Regulariser

BEST = np.array([3.0, -2.0])


@dataclass
class Stale:
    """½‖θ − best‖², and when warm a slope that leads away from θ = ``best`` at falling values."""

    lies: float
    batch = np.zeros(0)

    def evaluate(self, theta, tol, asked):
        off, asked = theta - BEST, (asked or 0) + 1
        if asked > 1:
            return Value(-self.lies * asked, -np.ones(2)), asked
        return Value(0.5 * float(off @ off), off), asked

    def prove(self, theta, enough, excess, lam, asked):
        own = Certificate(1.0, 0.0, 0.0, "simplices", "exact")
        return Proof(own, np.zeros(0), False, BEST - theta), asked


def test_weights_are_never_worse_than_the_starts():
    """Warm answers that lie lead anywhere; what cold ones say of both ends decides."""
    ridge = Regulariser.of(2, 1e-9)
    fit = SurrogateProblem(Stale(1e6), ridge, Serial(), WeightDescent)
    fit.examples, fit.restarts = 1, 1
    last = minimise(fit, Loop(tol=1e-10, rounds=20))
    assert last.short
    assert last.theta @ last.theta <= BEST @ BEST  # 0 is the start
    assert np.linalg.norm(last.theta - BEST) <= np.linalg.norm(BEST)
