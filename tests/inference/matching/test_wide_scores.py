"""Scores of any size, cold: prices of 1e5 nats are reached, not crept towards."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.matching import Scaling
from mlestruct.structures.entropy import Entropy


@pytest.mark.parametrize("far", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("structure", [ms.Matching(14), ms.Matching(13, kind="partial")])
def test_three_far_off_people(structure, rho, far):
    """|a − b| of three people who are far from all others and from each other."""
    where = np.random.default_rng(0).integers(1, 6, structure.n_nodes).astype(float)
    where[[0, 3, 9]] = far, 2 * far, 3 * far
    tail, head = structure.ends.T
    for sign in (1.0, -1.0):
        scores, batch = sign * np.abs(where[tail] - where[head]), ms.Batch.of(structure, count=1)
        entropy, routine = Entropy.of(batch, rho), Scaling(rho)
        found = routine.many(batch, scores)
        lower = entropy.each(found.tau) + scores @ found.tau
        upper = routine.above(batch, scores, found.warm, lower)
        assert upper[0] - lower[0] + 1e-9 * far >= 0
        assert upper[0] - lower[0] <= 1e-6 * (1.0 + abs(lower[0]))


@pytest.mark.parametrize("rho", [0.75, 0.95, 1.0])
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
@pytest.mark.parametrize(
    "structure", [ms.BipartiteMatching(10, 11, kind="partial"), ms.BipartiteMatching(9, 9)]
)
def test_what_stays_single_pays_its_entropy_once(structure, size, rho):
    """Duals of the ρ = ½ problem start the others: in the limit of large scores they are theirs."""
    scores = size * np.random.default_rng(3).normal(size=structure.size)
    batch = ms.Batch.of(structure, count=1)
    entropy, routine = Entropy.of(batch, rho), Scaling(rho)
    found = routine.many(batch, scores)
    lower = entropy.each(found.tau) + scores @ found.tau
    upper = routine.above(batch, scores, found.warm, lower)
    assert upper[0] - lower[0] <= 1e-6 * abs(lower[0])


def test_prices_of_so_many_digits_end_where_the_digits_do():
    """A residual of 1e-11 cannot be reached beside prices of 5e7: it was looked for for minutes."""
    rng, structure = np.random.default_rng(0), ms.BipartiteMatching(7, 7)
    scores = 5e7 * rng.integers(-1, 2, structure.size) + rng.standard_normal(structure.size)
    batch = ms.Batch.of(structure, count=1)
    found = Scaling(0.75).many(batch, scores)
    assert found.log_z[0] == pytest.approx(scores @ found.tau, rel=1e-6)
