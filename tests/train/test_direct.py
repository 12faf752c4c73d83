"""The direct route's rounds: how inference gets finer as the weights settle."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mlestruct.checkpoint import begin
from mlestruct.engine import Serial
from mlestruct.objectives.base import Answer
from mlestruct.regulariser import Regulariser
from mlestruct.train import Direct
from mlestruct.train.descents import descents
from mlestruct.train.direct import Task
from mlestruct.train.proofs import Evidence, Prove

BEST = np.array([3.0, -2.0])


class Rough:
    """½‖θ − best‖² whose value creeps up by the tolerance at every call: searches fail early."""

    def __init__(self) -> None:
        self.tols: list[float] = []

    def __call__(self, question):
        if isinstance(question, Prove):
            return Evidence(0.0, 0.0, 0.0, BEST - question.theta, "simplices", "exact")
        theta, tol = question
        self.tols.append(tol)
        value = 0.5 * float((theta - BEST) @ (theta - BEST)) + 1e6 * tol * len(self.tols)
        return Answer(value, theta - BEST)

    def memory(self):
        return None


def test_a_search_that_fails_at_coarse_values_gets_finer_ones_step_by_step():
    """Not inference in earnest at once, which may cost a hundred times as much."""
    shard, ridge = Rough(), Regulariser.of(2, np.array([1.0, 40.0]))
    with Serial().start([lambda: shard]) as running:
        steps = partial(_steps, ridge)
        task = Task(running, ridge, 1, "exact", loose=True, cheap=True, steps=steps, keep=False)
        *_, last = Direct(tol=1e-10).follow(task, None, begin(None, "direct"), 0.0)
    assert last.theta == pytest.approx(BEST / (1.0 + ridge.lam), abs=1e-5)
    used = sorted({tol for tol in shard.tols if tol > 0}, reverse=True)
    assert len(used) > 2
    assert used[-1] < 1e-7


def _steps(ridge, total, theta, since):
    return descents(total, ridge, theta, 10, None, since)
