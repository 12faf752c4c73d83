"""Summaries: weights by name, errors by the textbook's sandwich, what is not identified."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data


@pytest.fixture(scope="module")
def logistic():
    """Sequences of one position: a binary logistic regression written with two labels."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    labels = (x @ [1.0, -0.5] + rng.logistic(size=300) > 0).astype(int)
    X, y = list(x[:, None]), list(labels[:, None])
    return x, labels, X, y, ms.SequenceModel(tol=1e-10).fit(X, y)


def test_errors_are_the_textbooks_sandwich(logistic):
    """M⁻¹ J M⁻¹ of a two-label softmax, from its own Hessian and scores."""
    x, labels, X, y, model = logistic
    summary = model.summary(model.sandwich(X, y))
    p = np.concatenate(model.predict_marginals(X))
    cov = np.einsum("mk,kl->mkl", p, np.eye(2)) - p[:, :, None] * p[:, None, :]
    H = np.einsum("mi,mj,mkl->ikjl", x, x, cov).reshape(4, 4)
    scores = np.einsum("mi,mk->mik", x, np.eye(2)[labels] - p).reshape(-1, 4)
    bread = np.linalg.inv(H + np.eye(4))
    expected = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    np.testing.assert_allclose(summary.errors[:4], expected, rtol=1e-5)
    assert summary.names[:4] == ["feature 0: 0", "feature 0: 1", "feature 1: 0", "feature 1: 1"]


def test_only_what_the_data_identify_has_an_interval(logistic):
    """Softmax weights are free up to a shift: no weight alone, but their difference."""
    _, _, X, y, model = logistic
    sandwich = model.sandwich(X, y)
    summary = model.summary(sandwich)
    assert np.isinf(summary.intervals).all()
    assert "not identified alone" in str(summary)
    assert "2 of 8 directions" in str(summary)
    difference = np.eye(8)[1] - np.eye(8)[0]
    found = sandwich.contrast(difference)
    assert found.identified
    assert found.lower < 1.0 < found.upper  # the generator's own weight


def test_print_shows_the_largest_weights_the_proof_and_the_cost():
    """Twenty weights at most, the certificate and the rounds; errors only where asked for."""
    train = data.landmarks(sizes=(8, 0, 0), n=6, d=25)[0]
    model = ms.MatchingModel(tol=1e-4).fit(train.X, train.y)
    text = str(model.summary())
    largest = np.argsort(-np.abs(model.coef_))
    assert text.splitlines()[0].split()[:2] == ["feature", str(largest[0])]
    assert "… and 5 smaller weights" in text
    assert str(model.certificate_) in text
    assert f"{model.n_iter_} rounds by the direct route, {model.history_[-1][0]} calls" in text
    sure = model.summary(model.sandwich(train.X, train.y, meat="parts"))
    assert (sure.errors > 0).all()
    assert "debiased 95 % interval" in str(sure).splitlines()[0]
    with pytest.raises(ValueError, match="not fitted yet"):
        ms.MatchingModel().summary()
    margin = ms.MatchingModel(learner="ssvm", tol=0.1).fit(train.X, train.y)
    with pytest.raises(ValueError, match="standard errors are those of mle_struct, not of 'ssvm'"):
        margin.sandwich(train.X, train.y)
