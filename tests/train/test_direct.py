"""The direct route's rounds: how inference gets finer as the weights settle."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import numpy as np
import pytest

from mlestruct.drive import Budget, drive
from mlestruct.drive import last as last_of
from mlestruct.dual import Certificate
from mlestruct.engine import Serial
from mlestruct.lbfgs import Step
from mlestruct.objectives.base import ShardValue
from mlestruct.regulariser import Regulariser
from mlestruct.train.descents import descend, memory
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


class Rough:
    """½‖θ − best‖² whose value creeps up by the tolerance at every call: searches fail early."""

    def __init__(self) -> None:
        self.tols: list[float] = []

    def __call__(self, question):
        if isinstance(question, Prove):
            own = Certificate(0.0, 0.0, 0.0, "simplices", "exact")
            return Proof(own, BEST - question.theta, 1, moved=False, tau=np.zeros(0))
        theta, tol = question
        self.tols.append(tol)
        value = 0.5 * float((theta - BEST) @ (theta - BEST)) + 1e6 * tol * len(self.tols)
        return ShardValue(value, theta - BEST)

    def memory(self):
        return None


def test_a_search_that_fails_at_coarse_values_gets_finer_ones_step_by_step():
    """Not inference in earnest at once, which may cost a hundred times as much."""
    shard, ridge = Rough(), Regulariser.of(2, np.array([1.0, 40.0]))
    last = fitted(shard, ridge, True)
    assert last.theta == pytest.approx(BEST / (1.0 + ridge.lam), abs=1e-5)
    used = sorted({tol for tol in shard.tols if tol > 0}, reverse=True)
    assert len(used) > 2
    assert used[-1] < 1e-7


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


def test_a_search_that_fails_starts_cold_before_it_gives_up():
    """Stale answers end the first descent; the second one, from cold inference, gets there."""
    shard, ridge = Stale(-1e6, calls=4), Regulariser.of(2, np.array([1.0, 40.0]))
    shard.forgotten = 0

    def remember(tree):
        shard.forgotten += tree is None
        shard.asked, shard.calls = 0, 1000

    shard.remember = remember
    last = fitted(shard, ridge, False)
    assert shard.forgotten
    assert last.theta == pytest.approx(BEST / (1.0 + ridge.lam), abs=1e-4)


def test_memory_is_as_long_as_is_cheap_beside_an_evaluation():
    """Ten steps where problems are small, never more products than coordinates, at most 100."""
    assert memory(39_999, 10) == memory(10**7, 10**7) == 10
    assert memory(1_428_147, 16_494) == 43
    assert memory(10**9, 1) == 100
    for size, d in [(10**5, 10), (10**6, 10**4), (10**7, 46_627)]:
        assert memory(size, d) == 10 or 2 * memory(size, d) * d <= size


def test_a_longer_memory_needs_fewer_evaluations(rng):
    """On a quadratic whose curvatures differ by 10⁴; the same point is found."""
    curvature, goal = np.geomspace(1.0, 1e4, 60), rng.standard_normal(60)
    ridge, spent, found = Regulariser.of(60, 1e-6), [], []
    for steps in (10, 43):
        descent, count = descend(ridge, np.zeros(60), memory=steps), 0
        said = next(descent)
        while not isinstance(said, Step) or np.abs(said.gradient).max() > 1e-3:
            if isinstance(said, Step):
                said = next(descent)
                continue
            pull = curvature * (said - goal)
            count += 1
            said = descent.send((0.5 * float(pull @ (said - goal)), pull))
        spent.append(count)
        found.append(said.theta)
    assert spent[1] < 0.8 * spent[0]
    np.testing.assert_allclose(*found, atol=2e-3)
