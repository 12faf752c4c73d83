"""Several labels at once: exact decisions for every learner, against all sets; what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.learners import LEARNERS


def labelled(rng, count=30, labels=4):
    X = rng.standard_normal((count, 2))
    pull = X @ rng.standard_normal((2, labels)) + rng.standard_normal((count, 1))
    return X, (pull + 0.5 * rng.standard_normal(pull.shape) > 0).astype(int)


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_the_best_set_is_found_among_all(learner, rng):
    X, y = labelled(rng)
    model = ms.MultiLabelModel(learner=learner, alpha=0.3, tol=1e-2).fit(X, y)
    weight = dict(zip(model.names(), model.coef_, strict=True))
    others = np.concatenate([X, 5 * rng.standard_normal((40, 2))])
    for x, predicted in zip(others, model.predict(others), strict=True):

        def worth(labels, x=x):
            own = sum(
                weight[f"{k}: feature 0"] * x[0] + weight[f"{k}: feature 1"] * x[1]
                + weight[f"{k}: constant"] for k in np.flatnonzero(labels)
            )  # fmt: skip
            pairs = itertools.combinations(np.flatnonzero(labels), 2)
            return own + sum(weight[f"{a} with {b}"] for a, b in pairs)

        best = max(worth(labels) for labels in itertools.product((0, 1), repeat=4))
        assert worth(predicted) == pytest.approx(best, abs=1e-9)


def test_exact_learning_has_exact_probabilities(rng):
    X, y = labelled(rng, 20, 3)
    model = ms.MultiLabelModel(learner="exact_mle", tol=1e-8).fit(X, y)
    structure = model.structures(X)[0]
    for tau, scores in zip(model.predict_marginals(X), model.potentials(X), strict=True):
        np.testing.assert_allclose(tau, exact(structure, scores).tau[1:6:2], atol=1e-6)
    alone = ms.MultiLabelModel(pairs=False, tol=1e-8).fit(X, y)
    assert len(alone.coef_) == 9
    assert len(model.coef_) == 12


def test_one_label_is_a_table_too(rng):
    X, y = labelled(rng, 12, 3)
    one = ms.MultiLabelModel().fit(X, y[:, :1])
    assert one.predict(X)[0].shape == (1,)
    with pytest.raises(ValueError, match="of sets MultiLabelBinarizer"):
        ms.MultiLabelModel().fit(X, [{"a"}] * 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y * 2), "example 0: label . is 2; it is 0 or 1"),
        (lambda X, y: (X, y[:, :0]), "y has shape"),
        (lambda X, y: (X, [[0, 1], *y[1:].tolist()]), "y holds rows of 0 and 1"),
        (lambda X, y: (X[:, :0], y), "X has shape"),
        (
            lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y),
            "example 3: feature 1 of node 0 is nan",
        ),
    ],
)
def test_what_is_no_table_of_labels_is_refused(change, message, rng):
    X, y = labelled(rng, 6)
    y[0] = 1
    with pytest.raises(ValueError, match=message):
        ms.MultiLabelModel().fit(*change(X, y))


def gaps(rng, y):
    return np.where(rng.random(y.shape) < 0.3, np.nan, y)


FORMS = {
    "masked": np.ma.masked_invalid,
    "masked rows": lambda y: list(np.ma.masked_invalid(y)),
    "frame": lambda y: pytest.importorskip("pandas").DataFrame(y),
    "nullable frame": lambda y: pytest.importorskip("pandas").DataFrame(y).astype("Int64"),
    "lists": lambda y: [[None if np.isnan(v) else int(v) for v in row] for row in y],
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_that_are_not_known_are_summed_over_however_they_are_written(form, rng):
    X, y = labelled(rng)
    some = gaps(rng, y)
    model = ms.MultiLabelModel().fit(X, some)
    np.testing.assert_array_equal(ms.MultiLabelModel().fit(X, FORMS[form](some)).coef_, model.coef_)
    whole = ms.MultiLabelModel().fit(X, FORMS[form](y.astype(float)))
    np.testing.assert_array_equal(whole.coef_, ms.MultiLabelModel().fit(X, y).coef_)
    with pytest.raises(ValueError, match=r"intervals need every label.*of which every label is"):
        model.intervals(X, some)


@pytest.mark.parametrize("learner", ["exact_mle", "mle_struct"])
def test_without_pairs_gaps_are_rows_left_out(learner, rng):
    """Labels by themselves: a row without a label says nothing of it, as in separate fits."""
    X, y = labelled(rng, labels=3)
    some = gaps(rng, y)
    model = ms.MultiLabelModel(learner=learner, pairs=False, tol=1e-9).fit(X, some)
    for k in range(3):
        known = ~np.isnan(some[:, k])
        alone = ms.MultiLabelModel(learner=learner, tol=1e-9).fit(X[known], y[known][:, [k]])
        np.testing.assert_allclose(model.coef_[3 * k : 3 * k + 3], alone.coef_, atol=2e-4)


def test_scores_and_weights_are_of_known_labels(rng):
    X, y = labelled(rng, 40, 3)
    some = gaps(rng, y)
    some[0] = np.nan
    model = ms.MultiLabelModel().fit(X, some)
    known, right = ~np.isnan(some), np.array(model.predict(X)) == some
    shares = [right[m][known[m]].mean() for m in range(40) if known[m].any()]
    assert model.score(X, some) == pytest.approx(np.mean(shares))
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(X, np.full(y.shape, np.nan))
