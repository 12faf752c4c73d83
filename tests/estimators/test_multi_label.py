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
    """argmax over 2^K sets in every row, with scores summed by the weights' names."""
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
    """Marginals of exact_mle are sums over all sets, and the fit's slope is the ridge's."""
    X, y = labelled(rng, 20, 3)
    model = ms.MultiLabelModel(learner="exact_mle", tol=1e-8).fit(X, y)
    structure = model.structures(X)[0]
    for tau, scores in zip(model.predict_marginals(X), model.potentials(X), strict=True):
        np.testing.assert_allclose(tau, exact(structure, scores).tau[1:6:2], atol=1e-6)
    alone = ms.MultiLabelModel(pairs=False, tol=1e-8).fit(X, y)
    assert len(alone.coef_) == 9
    assert len(model.coef_) == 12


def test_sets_and_rows_are_the_same(rng, tmp_path):
    """Sets of names learn what rows of 0 and 1 do, and come back as sets, from files too."""
    X, y = labelled(rng, 12, 3)
    names = np.array(["a", "b", "c"])
    sets = [set(names[row == 1].tolist()) for row in y]
    rows, named = ms.MultiLabelModel().fit(X, y), ms.MultiLabelModel().fit(X, sets)
    np.testing.assert_array_equal(rows.coef_, named.coef_)
    assert named.predict(X) == [set(names[row == 1].tolist()) for row in rows.predict(X)]
    assert named.score(X, sets) == rows.score(X, y)
    named.save(tmp_path / "model.npz")
    assert ms.MultiLabelModel.load(tmp_path / "model.npz").predict(X) == named.predict(X)
    one = ms.MultiLabelModel().fit(X, y[:, :1])
    assert one.predict(X)[0].shape == (1,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y * 2), "example 0: label . is 2; it is 0 or 1"),
        (lambda X, y: (X, y[:, :0]), "y has shape"),
        (lambda X, y: (X, [[0, 1], *y[1:].tolist()]), "y holds rows of 0 and 1"),
        (lambda X, y: (X[:, :0], y), "X has shape"),
        (lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y), "example 3: feature 1 is nan"),
    ],
)
def test_what_is_no_table_of_labels_is_refused(change, message, rng):
    """By example and place."""
    X, y = labelled(rng, 6)
    y[0] = 1
    with pytest.raises(ValueError, match=message):
        ms.MultiLabelModel().fit(*change(X, y))
