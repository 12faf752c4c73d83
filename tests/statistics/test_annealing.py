"""Annealing: log Z against exact sums, how often its intervals hold, and what it refuses."""

from __future__ import annotations

from math import factorial, log

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.statistics import annealed

STRUCTURES = [
    ms.BipartiteMatching(1),
    ms.BipartiteMatching(4),
    ms.BipartiteMatching(8),
    ms.BipartiteMatching(12),
    ms.Matching(2),
    ms.Matching(8),
    ms.Matching(14),
]


def trial(number, rng):
    """(holds, width) at one random model, scores between .1 and 10 apart."""
    structure = STRUCTURES[number % len(STRUCTURES)]
    score = 10 ** rng.uniform(-1, 1) * rng.standard_normal(structure.size)
    found = annealed(structure, score, rng)
    assert found.low <= found.log_z <= found.high
    log_z = exact(structure, score).log_z
    return found.low - 1e-9 <= log_z <= found.high + 1e-9, found.high - found.low


def test_intervals_hold_and_are_narrow(rng):
    held, width = np.array([trial(number, rng) for number in range(56)]).T
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
    """Nothing to sample: the count itself, and each pair's score."""
    found = annealed(ms.BipartiteMatching(n), np.full(n * n, 0.5), rng)
    assert found.log_z == pytest.approx(log(factorial(n)) + 0.5 * n)
    assert found.high - found.low < 1e-6


def test_other_matchings_are_refused(rng):
    for structure in (
        ms.Matching(4, kind="partial"),
        ms.BipartiteMatching(3, 4, "one_sided"),
        ms.Matching(4, forbidden=[(0, 1)]),
        ms.Matching(4, [(0, 1), (1, 2), (2, 3), (0, 3)]),
    ):
        with pytest.raises(ValueError, match="perfect matchings of complete graphs"):
            annealed(structure, np.zeros(structure.size), rng)
