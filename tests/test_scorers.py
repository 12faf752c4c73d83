"""Scorers: each against its definition, and in scikit-learn's searches over ragged lists."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data, scorers


@pytest.fixture(scope="module")
def sequences():
    return data.sequences(sizes=(24, 0, 10), states=3, d=12)


def test_scorers_are_what_they_say(sequences):
    test, _, _ = sequences
    model = ms.SequenceModel(tol=1e-6, alpha=1e-3).fit(test.X, test.y)
    whole = np.mean(
        [np.array_equal(p, y) for p, y in zip(model.predict(test.X), test.y, strict=True)]
    )
    assert scorers.all_right(model, test.X, test.y) == whole
    assert 0 < whole < scorers.parts_right(model, test.X, test.y)
    assert scorers.log_likelihood(model, test.X, test.y) == pytest.approx(
        model.log_likelihood(test.X, test.y)[1] / len(test), rel=1e-6
    )
    tau = np.concatenate(model.predict_marginals(test.X))
    truth = np.eye(3)[np.concatenate(test.y)]
    assert scorers.brier(model, test.X, test.y) == pytest.approx(-np.mean((tau - truth) ** 2))
    assert scorers.calibrated(model, test.X, test.y) == pytest.approx(
        -model.calibration(test.X, test.y).error
    )


def test_all_right_asks_for_the_outcome_whatever_form_it_is_told_in():
    rng = np.random.default_rng(0)
    X = list(rng.random((10, 4, 2)))
    largest = [int(x[:, 0].argmax()) for x in X]
    picks = ms.StructuredModel(oracle=lambda s: np.arange(4) == s.argmax(), alpha=0.01)
    vectors = picks.fit(X, largest_of := [{k} for k in largest]).predict(X)
    assert scorers.all_right(picks, X, largest_of) == scorers.all_right(picks, X, vectors) == 1.0
    walks = ms.StructuredModel(ms.Flow([(1, 2), (0, 1), (0, 2)], {0: 1, 2: -1}), alpha=0.01)
    ways = [[1, 0] if x[2, 0] < 0.5 else [2] for x in X]
    features = [np.outer([0.0, 0.0, 1.0], [1.0, x[2, 0]]) for x in X]
    walks.fit(features, ways)
    assert scorers.all_right(walks, features, ways) == walks.score(features, ways) == 1.0
    train = data.grids(sizes=(3, 0, 0), side=4, flips=0.0)[0]
    pictures = ms.GridModel(tol=0.01, alpha=0.01).fit(train.X, train.y)
    seen = [np.where(np.arange(16) < 5, None, y.ravel()).reshape(4, 4) for y in train.y]
    assert scorers.all_right(pictures, train.X, seen) == 1.0


def test_searches_and_cross_validation_over_ragged_lists(sequences):
    selection = pytest.importorskip("sklearn.model_selection", reason="scikit-learn is optional")
    train, _, test = sequences
    search = selection.GridSearchCV(
        ms.SequenceModel(tol=1e-4),
        {"alpha": [0.1, 1000.0]},
        scoring={"likely": scorers.log_likelihood, "right": scorers.parts_right},
        refit="likely",
        cv=3,
    ).fit(train.X, train.y)
    assert search.best_params_ == {"alpha": 0.1}
    assert search.predict(test.X)[0].shape == test.y[0].shape
    found = selection.cross_val_score(ms.SequenceModel(), train.X, train.y, cv=3)
    folds = selection.KFold(3).split(train.X)
    by_hand = []
    for kept, held in folds:
        model = ms.SequenceModel().fit([train.X[i] for i in kept], [train.y[i] for i in kept])
        by_hand.append(model.score([train.X[i] for i in held], [train.y[i] for i in held]))
    np.testing.assert_array_equal(found, by_hand)


def test_regret_of_values_is_that_of_costs_with_their_sign():
    rng = np.random.default_rng(0)
    X = [
        {"features": x, "value": x[:, 0] + 0.1, "cost": -x[:, 0] - 0.1}
        for x in rng.random((6, 4, 2))
    ]
    y = [np.arange(4) == rng.integers(4) for _ in X]
    model = ms.StructuredModel(oracle=lambda s, _: np.arange(4) == s.argmax()).fit(X, y)
    for make in (scorers.regret, scorers.cost_equal):
        values, costs = make("value", sense="max"), make("cost")
        assert values(model, X, y) == costs(model, X, y)
        with pytest.raises(ValueError, match="sense is 'min' or 'max'"):
            make("value", sense="most")(model, X, y)


def test_scorers_ask_the_last_step_of_a_pipeline_and_the_best_of_a_search(sequences):
    pytest.importorskip("sklearn", reason="scikit-learn is optional")
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    train, _, test = sequences
    half = FunctionTransformer(lambda X: [x / 2 for x in X])
    pipe = make_pipeline(half, "passthrough", ms.SequenceModel(tol=1e-4))
    own = ms.SequenceModel(tol=1e-4).fit([x / 2 for x in train.X], train.y)
    halved = [x / 2 for x in test.X]
    named = ("parts_right", "all_right", "log_likelihood", "evidence", "brier", "calibrated")
    for name in named:
        scorer = getattr(scorers, name)
        assert scorer(pipe.fit(train.X, train.y), test.X, test.y) == scorer(own, halved, test.y)
    search = GridSearchCV(
        pipe, {"sequencemodel__alpha": [0.1, 1.0]}, scoring=scorers.log_likelihood, cv=2
    ).fit(train.X, train.y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert (
        scorers.brier(search, test.X, test.y)
        == -search.best_estimator_[-1].calibration(halved, test.y).brier
    )
