"""Summaries: one estimate of everything, its error and its interval, and what they rest on."""

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
    return x, labels, X, y, ms.SequenceModel(tol=1e-10, intercept=False).fit(X, y)


def test_many_examples_give_the_textbooks_interval(logistic):
    """Of a two-label softmax: weights as differences, errors as Fisher's information says."""
    x, _, X, y, model = logistic
    found = model.intervals(X, y)
    p = np.concatenate(model.predict_marginals(X))[:, 1]
    H = np.einsum("mi,mj,m->ij", x, x, p * (1 - p))
    rows = [found[f"feature {j}: 1 against 0"] for j in range(2)]
    expected = np.sqrt(np.diag(np.linalg.inv(H)))
    np.testing.assert_allclose([row.error for row in rows], expected, rtol=0.1)
    assert rows[0].low < 1.0 < rows[0].high  # the generator's own weights
    assert rows[1].low < -0.5 < rows[1].high


def test_what_is_redundant_comes_as_contrasts(logistic):
    """Softmax weights are free up to a shift: no weight alone, but labels against each other."""
    _, _, X, y, model = logistic
    found = model.intervals(X, y)
    assert (found.rank, found.weights, found.units) == (2, 8, 300)
    assert [row.name for row in found.rows] == [f"feature {j}: 1 against 0" for j in range(2)]
    turned = model.intervals(X, y, reference=1)
    assert turned.rows[0].name == "feature 0: 0 against 1"
    assert np.isclose(turned.rows[0].estimate, -found.rows[0].estimate, atol=1e-4)
    text = str(model.summary(found))
    assert "300 examples; 8 weights, 2 of them told apart by the data" in text
    assert "the intervals are for the weights of the model itself" in text


def test_print_shows_the_largest_weights_the_proof_and_the_cost():
    train = data.landmarks(sizes=(8, 0, 0), n=6, d=25)[0]
    model = ms.MatchingModel(tol=1e-4).fit(train.X, train.y)
    text = str(model.summary())
    largest = np.argsort(-np.abs(model.coef_))
    assert text.splitlines()[0].split()[:2] == ["feature", str(largest[0])]
    assert "… and 5 smaller ones" in text
    assert str(model.certificate_) in text
    assert f"{model.n_iter_} rounds by the direct route, {model.history_[-1][0]} calls" in text
    with pytest.raises(ValueError, match="not fitted yet"):
        ms.MatchingModel().summary()
    margin = ms.MatchingModel(learner="ssvm", tol=0.1).fit(train.X, train.y)
    with pytest.raises(ValueError, match="intervals are for learners of a likelihood"):
        margin.intervals(train.X, train.y)
