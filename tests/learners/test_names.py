"""Every learner by name, and with settings of its own, at the front door."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learners import LEARNERS, camel
from mlestruct.testing import vertices

WEIGHTS = np.array([2.0, -1.0, 0.5])
CERTIFIED = {"camel", "camel0", "exact_mle", "mle_struct", "piecewise", "pseudo_likelihood", "trw"}


@pytest.fixture(scope="module")
def labelled():
    """Cycles whose labels are the best under known weights, with Gumbel noise on every score."""
    rng, graph = np.random.default_rng(3), ms.grid(2, 2)
    listed = vertices(graph)
    X = [rng.standard_normal((graph.size, 3)) for _ in range(40)]
    noise = rng.gumbel(size=(40, len(listed)))
    y = [
        graph.decode(listed[(listed @ (x @ WEIGHTS) + n).argmax()])
        for x, n in zip(X, noise, strict=True)
    ]
    return graph, X, y


@pytest.mark.parametrize("name", LEARNERS)
def test_every_name_learns_at_the_front_door(name, labelled):
    graph, X, y = labelled
    model = ms.StructuredModel(graph, learner=name, alpha=0.1, tol=1e-3).fit(X[:30], y[:30])
    cosine = model.coef_ @ WEIGHTS / np.linalg.norm(model.coef_) / np.linalg.norm(WEIGHTS)
    assert cosine > 0.9
    assert model.score(X[30:], y[30:]) > 0.7
    if name in CERTIFIED:
        assert model.certificate_.withheld is None
        assert model.certificate_.relative <= 1e-3
    if name in {"lbp", "perceptron"}:
        assert model.certificate_.withheld is not None
        assert np.isinf(model.certificate_.gap)


@pytest.mark.parametrize("name", ["camel", "exact_mle", "lbp", "trw"])
def test_likelihoods_are_one_on_sequences(name):
    train, _, _ = ms.data.sequences(sizes=(20, 0, 0), states=2, d=4)
    model = ms.SequenceModel(learner=name, tol=1e-5, max_rounds=300).fit(train.X, train.y)
    exact = ms.SequenceModel(tol=1e-7).fit(train.X, train.y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.02)


def test_settings_of_its_own_through_a_ready_learner(labelled):
    """What ``partial`` fixes reaches the learner: rounds = 1 from zero is CAMEL(0)."""
    graph, X, y = labelled
    made = ms.StructuredModel(graph, learner=partial(camel, rounds=1)).fit(X[:30], y[:30])
    named = ms.StructuredModel(graph, learner="camel0").fit(X[:30], y[:30])
    whole = ms.StructuredModel(graph, learner="camel").fit(X[:30], y[:30])
    np.testing.assert_allclose(made.coef_, named.coef_, atol=1e-8)
    assert np.abs(made.coef_ - whole.coef_).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("exact_mle", {"rho": 0.5}, "exact_mle has no use for rho=0.5"),
        ("pseudo_likelihood", {"oracle": "qpbo"}, "has no use for oracle='qpbo'"),
        ("lbp", {"route": "frank_wolfe"}, "direct route only"),
        ("perceptron", {"rho": 1.0}, "no entropy"),
    ],
)
def test_settings_without_effect_are_refused(name, settings, message):
    with pytest.raises(ValueError, match=message):
        LEARNERS[name](**settings)
