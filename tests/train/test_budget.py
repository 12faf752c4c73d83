"""A budget of seconds is the whole fit's: loops inside get what is left of it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.checkpoint import begin
from mlestruct.learners import camel, mle_struct, trw_tightest
from mlestruct.learners.missing import Missing

NESTED = {"camel": partial(camel, tol=0.0), "trw_tightest": partial(trw_tightest, rounds=20)}


def problem(rng):
    graph = ms.grid(3, 3)
    batch = ms.Batch.of([graph] * 4, [rng.integers(0, 2, 9) for _ in range(4)])
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))


@pytest.mark.parametrize("name", NESTED)
def test_rounds_end_when_the_time_of_all_is_over(name, rng):
    batch, features = problem(rng)
    learner = NESTED[name](regulariser=0.1, solver=ms.FrankWolfe(tol=1e-12, seconds=1e-9))
    model = learner.fit(batch, features)
    assert model.short == "seconds"
    assert len(model.history) == 1
    assert not model.converged


def test_missing_labels_share_the_time_of_all_rounds(rng):
    batch, features = problem(rng)
    learner = mle_struct(regulariser=0.1, solver=ms.FrankWolfe(seconds=1e-9))
    rounds = Missing(learner, tol=1e-12)
    observed = [np.where(np.arange(9) % 3, rng.integers(0, 2, 9), -1) for _ in range(4)]
    seen = ms.Batch.of(batch.structures[0], [ms.Partial(one) for one in observed])
    found = list(rounds.states(seen, features))
    assert len(found) <= 2
    assert found[-1].left > 1e-12


def test_a_later_regulariser_has_what_an_earlier_one_left(rng, monkeypatch):
    """Time between two models is the caller's."""
    now = [0.0]
    monkeypatch.setattr("mlestruct.checkpoint.clock", lambda: now[0])
    outer = begin(None, "outer")
    now[0] = 5.0
    inner = outer.loop("inner", dict)
    assert inner.clock.seconds == 5.0
    now[0] = 7.0
    assert outer.loop("next", dict).clock.seconds == 7.0
    outer.clock.start(1.0)
    assert inner.clock.seconds == outer.loop("again", dict).clock.seconds == 1.0
