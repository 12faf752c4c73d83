"""The direct route keeps the start where nothing better is found."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import numpy as np

from mlestruct.drive import Budget, drive
from mlestruct.drive import last as last_of
from mlestruct.dual import Certificate
from mlestruct.engine import Serial
from mlestruct.objectives.base import ShardValue
from mlestruct.regulariser import Regulariser
from mlestruct.train.descents import descend
from mlestruct.train.direct import Descending, Proof, Prove, estimate

BEST = np.array([3.0, -2.0])


def fitted(shard, ridge, coarse, rounds=1000):
    """The last round of a fit to one shard."""
    method = Descending(
        shards=lambda: closing(Serial().start([lambda: shard])),
        regulariser=ridge,
        examples=1,
        claim=partial(estimate, "exact"),
        coarse=coarse,
        descents=lambda: partial(descend, ridge),
        tol=1e-10,
    )
    return last_of(drive(method, Budget(1e-10, rounds)))


class Stale:
    """½‖θ − best‖², and when warm a slope that leads away from θ = ``best`` at falling values."""

    def __init__(self, lies: float, calls: int = 1) -> None:
        self.lies, self.calls, self.asked = lies, calls, 0

    def __call__(self, question):
        if isinstance(question, Prove):
            own = Certificate(1.0, 0.0, 0.0, "simplices", "exact")
            return Proof(own, BEST - question.theta, 1, moved=False, tau=np.zeros(0))
        off = question.theta - BEST
        self.asked += 1
        if self.asked > self.calls:
            return ShardValue(-self.lies * self.asked, -np.ones(2))
        return ShardValue(0.5 * float(off @ off), off)

    def memory(self):
        return self.asked

    def remember(self, tree):
        self.asked = 0 if tree is None else tree


def test_weights_are_never_worse_than_the_starts():
    """Warm answers that lie lead anywhere; what cold ones say of both ends decides."""
    ridge = Regulariser.of(2, 1e-9)
    last = fitted(Stale(1e6), ridge, False, rounds=20)
    assert last.short
    assert last.theta @ last.theta <= BEST @ BEST  # 0 is the start
    assert np.linalg.norm(last.theta - BEST) <= np.linalg.norm(BEST)
