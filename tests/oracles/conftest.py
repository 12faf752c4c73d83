"""Thousands of random instances against brute force, in one product per structure."""

import numpy as np
import pytest

from mlestruct.structures.batch import Batch


class Instances:
    """Scores with ties, low rank, many scales and −inf where allowed; see ``agree``."""

    def __init__(self, rng):
        self.rng = rng

    def scores(self, structure, count):
        rng, size = self.rng, structure.size
        scores = rng.standard_normal((count, size))
        scores[0::5] = rng.integers(-2, 3, scores[0::5].shape)
        scores[1::5] *= 10.0 ** rng.integers(-8, 9, (len(scores[1::5]), 1))
        scores[2::5] = rng.choice([-1.0, 0.0, 1.0], (len(scores[2::5]), 1))
        if len(structure.shape) == 2:
            left = rng.integers(-3, 4, (len(scores[3::5]), structure.shape[0], 1))
            right = rng.integers(-3, 4, (len(scores[3::5]), 1, structure.shape[1]))
            scores[3::5] = (left * right).reshape(len(left), size)
        else:
            scores[3::5] *= rng.random(scores[3::5].shape) < 0.3
        never = (structure.fixed == 0) & (np.arange(count) % 2 == 0)[:, None]
        scores[never] = -np.inf
        return scores

    def agree(self, oracle, structure, listed, count):
        """Every answer is listed, reaches the best listed score, and its bound is that score."""
        scores = self.scores(structure, count)
        answers, upper = oracle.many(Batch.of(structure, count=count), scores.ravel())
        answers = answers.reshape(count, -1)
        finite = np.where(np.isfinite(scores), scores, 0.0)
        best = (finite @ listed.T).max(axis=1)
        reached = (finite * answers).sum(axis=1)
        tol = 1e-12 * (1 + np.abs(finite).sum(axis=1))
        code = np.array([2.0**k for k in range(structure.size)])
        assert np.isin(answers @ code, listed @ code).all(), "an answer is no outcome"
        np.testing.assert_array_less(np.abs(reached - best), tol)
        np.testing.assert_array_less(np.abs(upper - best), tol)


@pytest.fixture
def instances(rng):
    return Instances(rng)
