"""Annealing: log Z against exact sums, how often its intervals hold, and what it refuses."""

from __future__ import annotations

from math import factorial, log

import numpy as np
import pytest

import mlestruct as ms
from benchmarks.evidence import OTHERS, trial
from mlestruct.inference.exact import exact
from mlestruct.statistics import annealed


def test_intervals_hold_and_are_narrow(rng):
    held, width = np.array([trial(number, rng) for number in range(54)]).T
    assert held.mean() >= 0.89  # .93 less two binomial errors
    assert np.median(width) <= 1.0
    assert width.max() <= 1.5


@pytest.mark.nightly
def test_of_a_thousand_models_at_least_93_percent_hold(rng):
    held, width = np.array([trial(number, rng) for number in range(1000)]).T
    assert held.mean() >= 0.93
    assert np.median(width) <= 1.0


@pytest.mark.parametrize("n", [2, 5, 9])
def test_equal_scores_are_counted(n, rng):
    found = annealed(ms.BipartiteMatching(n), np.full(n * n, 0.5), rng)
    assert found.log_z == pytest.approx(log(factorial(n)) + 0.5 * n)
    assert found.high - found.low < 1e-6


def test_other_structures_have_intervals_too(rng):
    held, width = np.array([trial(number, rng, OTHERS, 3.0) for number in range(28)]).T
    assert held.mean() >= 0.85  # .93 less two binomial errors
    assert np.median(width) <= 1.0


@pytest.mark.parametrize("structure", OTHERS, ids=lambda s: type(s).__name__)
def test_outcomes_are_counted(structure, rng):
    found = annealed(structure, np.zeros(structure.size), rng)
    assert found.log_z == pytest.approx(exact(structure, np.zeros(structure.size)).log_z)
    assert found.high - found.low < 1e-9


def test_what_cannot_be_annealed_is_refused(rng):
    for structure, why in (
        (ms.Matching(4, forbidden=[(0, 1)]), "nothing is fixed|complete graphs"),
        (ms.Matching(4, [(0, 1), (1, 2), (2, 3), (0, 3)]), "complete graphs"),
        (ms.Custom(3), "no annealing for a Custom"),
    ):
        with pytest.raises(ValueError, match=why):
            annealed(structure, np.zeros(structure.size), rng)
