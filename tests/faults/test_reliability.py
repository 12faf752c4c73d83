"""The judges of ``python -m benchmarks reliability``: nothing wrong passes them."""

import os

import pytest

from benchmarks._faults import instances, lost
from mlestruct.engine import Dask

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are tried where there is fork")


def test_random_problems_are_answered_as_listing_answers_them():
    assert [why for seed in range(30) for why in instances.faults(seed)] == []


@pytest.mark.nightly
def test_a_thousand_random_problems():
    assert [why for seed in range(30, 1030) for why in instances.faults(seed)] == []


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
