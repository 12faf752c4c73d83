"""One class is a new estimator: CONTRIBUTING.md's recipe, with all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import mlestruct as ms
from mlestruct.estimators.base import Estimator


@dataclass(kw_only=True, eq=False, repr=False)
class ChoiceModel(Estimator):
    """One of several options: X holds (options, d) arrays, y the number of the one chosen."""

    oracle: str = "simplices"
    axes = 2
    learns = ("most_",)

    def prepare(self, given):
        self.most_ = max(len(x) for x in given.X)
        return given

    def structures(self, X):
        return [ms.Custom(len(x), exactly_one=[range(len(x))]) for x in X]

    def encode(self, X, y):
        return [np.arange(len(x)) == chosen for x, chosen in zip(X, y, strict=True)]

    def present(self, x, outcome):
        return int(np.argmax(outcome))


@pytest.fixture
def choices(rng):
    X = [rng.standard_normal((n, 2)) for n in rng.integers(2, 5, 40)]
    return X, [int(np.argmax(x @ [1.0, -1.0] + rng.gumbel(size=len(x)))) for x in X]


def test_it_learns_what_a_conditional_logit_does(choices):
    X, y = choices

    def loss(theta):
        own = sum(logsumexp(x @ theta) - x[k] @ theta for x, k in zip(X, y, strict=True))
        return own + theta @ theta / 2

    model = ChoiceModel(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, minimize(loss, np.zeros(2)).x, atol=1e-4)
    assert model.predict(X) == [int(np.argmax(x @ model.coef_)) for x in X]
    for x, tau in zip(X, model.predict_marginals(X), strict=True):
        scores = x @ model.coef_
        np.testing.assert_allclose(tau, np.exp(scores - logsumexp(scores)), atol=1e-4)


def test_files_searches_and_intervals_follow(choices, tmp_path):
    X, y = choices
    model = ChoiceModel(alpha=(0.1, 10.0)).fit(X, y)
    model.save(tmp_path / "choice.npz")
    again = ChoiceModel.load(tmp_path / "choice.npz")
    assert (again.most_, again.predict(X)) == (4, model.predict(X))
    assert {row.name for row in model.intervals(X, y).rows} == {"feature 0", "feature 1"}
    with pytest.raises(ValueError, match=r"not one ndarray: pass \[X\]"):
        model.predict(X[0])
    searches = pytest.importorskip("sklearn.model_selection")
    found = searches.GridSearchCV(ChoiceModel(), {"alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    assert found.best_score_ > 0.4
