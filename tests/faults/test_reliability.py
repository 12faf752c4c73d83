"""The judges of ``python -m benchmarks reliability``: nothing wrong passes them."""

import os

import numpy as np
import pytest

from benchmarks._faults import instances, lost
from mlestruct.engine import Dask

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are tried where there is fork")


def test_random_problems_are_answered_as_listing_answers_them():
    assert [why for seed in range(30) for why in instances.faults(seed)] == []


@pytest.mark.nightly
def test_a_thousand_random_problems():
    assert [why for seed in range(30, 1030) for why in instances.faults(seed)] == []


@pytest.mark.parametrize("answer", ["best", "exact", "marginals"])
def test_wrong_answers_are_noticed(monkeypatch, answer):
    import mlestruct as ms

    if answer == "best":
        right = instances.best
        monkeypatch.setattr(instances, "best", lambda *a: (right(*a)[0], right(*a)[1], [-1e9]))
    else:
        right = getattr(ms, answer)

        def off(problem, score, *rest):
            return right(problem, np.asarray(score) + 0.01, *rest)

        monkeypatch.setattr(ms, answer, off)
    assert any(instances.faults(seed) for seed in range(12))


@FORKS
@pytest.mark.parametrize("fit", lost.FITS[2:5], ids=lambda fit: fit.name)
def test_a_killed_fit_goes_on_with_the_same_bits(fit):
    assert lost.killed(fit, 2) is None


@FORKS
@pytest.mark.nightly
@pytest.mark.parametrize("fit", lost.FITS, ids=lambda fit: fit.name)
def test_a_fit_killed_again_and_again(fit):
    assert lost.killed(fit, 170, seed=1) is None


@pytest.mark.nightly
@pytest.mark.parametrize("after", [0, 3])
def test_a_worker_killed_in_a_round_costs_no_bit(after):
    engine = Dask(workers=2)
    assert lost.worker_killed(engine, after) is None
    engine.close()
