"""Evidence: exact where sums are affordable, tested elsewhere, and what it chooses."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.statistics import Evidence


def matchings(n, count, rng):
    X = rng.standard_normal((count, n, n, 2))
    noisy = X[..., 0] + rng.gumbel(size=(count, n, n))
    return list(X), [one.argmax(axis=1).argsort().argsort() for one in noisy]


def test_affordable_sums_are_exact(rng):
    X, y = matchings(4, 12, rng)
    model = ms.MatchingModel(rho=0.5).fit(X, y)
    found = model.evidence(X, y)
    assert found.summed
    batch = ms.Batch.of(model.structures(X), y)
    scores = np.concatenate(model.potentials(X))
    each = [
        score @ batch.target[batch.coordinates(m)] - exact(ms.BipartiteMatching(4), score).log_z
        for m, score in enumerate(scores.reshape(12, 16))
    ]
    np.testing.assert_allclose(found.each, each)
    low, high = model.log_likelihood(X, y)
    assert low - 1e-6 <= found.value <= high + 1e-6


def test_annealed_evidence_holds_what_is_exact(rng, monkeypatch):
    """The same examples, as if nothing could be summed; errors of examples add up."""
    X, y = matchings(5, 8, rng)
    model = ms.MatchingModel().fit(X, y)
    known = model.evidence(X, y)
    monkeypatch.setattr("mlestruct.statistics.evidence.affordable", lambda structures: False)
    found = model.evidence(X, y, random_state=1)
    low, high = found.interval
    assert low - 0.2 <= known.value <= high + 0.2
    assert 0 < high - low < 1.5
    assert "tested 95 % interval" in str(found)


def test_a_difference_has_the_error_of_its_examples():
    one = Evidence(np.array([-1.0, -2.0, -3.0]), np.zeros(3), np.zeros(3))
    other = Evidence(np.array([-1.5, -2.5, -3.5]), np.full(3, 1.96), np.full(3, 1.96))
    assert one.beside(one) == (0.0, 0.0)
    gain, error = one.beside(other)
    assert gain == pytest.approx(1.5)
    assert error == pytest.approx(np.sqrt(3.0))


def test_it_compares_what_surrogates_cannot(rng):
    X, y = matchings(4, 60, rng)
    exact_one = ms.MatchingModel(learner="exact_mle", alpha=0.01).fit(X, y)
    surrogate = ms.MatchingModel(rho=0.5, alpha=0.01).fit(X, y)
    assert exact_one.evidence(X, y).value > surrogate.evidence(X, y).value


def test_what_can_neither_be_summed_nor_annealed_is_refused(rng):
    model = ms.StructuredModel(oracle=lambda s: (s > 0).astype(float))
    X, y = [rng.standard_normal((4, 2)) for _ in range(5)], [np.array([1.0, 0, 1, 0])] * 5
    with pytest.raises(ValueError, match="no annealing for a Custom"):
        model.fit(X, y).evidence(X, y)
