"""Scores of any size, cold: prices of 1e5 nats are reached, not crept towards."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.entropy import Entropy
from mlestruct.inference.matching.scaling import Scaling


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
