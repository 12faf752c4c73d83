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
OTHERS = [
    ms.BipartiteMatching(3, 5, "one_sided"),
    ms.BipartiteMatching(5, 9, "one_sided"),
    ms.BipartiteMatching(3, 3, "partial"),
    ms.BipartiteMatching(4, 6, "partial"),
    ms.Matching(6, kind="partial"),
    ms.Matching(9, kind="partial"),
    ms.chain(6, 3),
    ms.tree([(0, 1), (1, 2), (1, 3), (3, 4)], [2, 3, 2, 2, 3]),
    ms.grid(4, 4, 2),
]


def trial(number, rng, structures=STRUCTURES, most=1.0):
    """(holds, width) at one random model, scores between .1 and 10 apart."""
    structure = structures[number % len(structures)]
    score = 10 ** rng.uniform(-1, most) * rng.standard_normal(structure.size)
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


def test_other_structures_have_intervals_too(rng):
    """One-sided and partial matchings, chains, trees and grids; scores .1 to 3 apart."""
    held, width = np.array([trial(number, rng, OTHERS, 0.5) for number in range(27)]).T
    assert held.mean() >= 0.85  # .93 less two binomial errors
    assert np.median(width) <= 1.0


@pytest.mark.parametrize("structure", OTHERS, ids=lambda s: type(s).__name__)
def test_outcomes_are_counted(structure, rng):
    """Scores of 0: log of how many outcomes, exactly."""
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
