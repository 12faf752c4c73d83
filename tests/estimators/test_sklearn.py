"""scikit-learn's own checks and tools, with a reason for each check that does not apply."""

from __future__ import annotations

import copy
import inspect
import warnings

import numpy as np
import pytest

import mlestruct as ms

pytest.importorskip("sklearn", minversion="1.8")
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_val_predict, cross_validate
from sklearn.utils import InputTags
from sklearn.utils import estimator_checks as checks
from sklearn.utils.validation import check_is_fitted


class Rows(ms.SequenceModel):
    """What the checks can hand over, a row and a label each, as sequences of one position."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(_each(X), _each(y), sample_weight)

    def predict(self, X, decision="map"):
        return np.concatenate(super().predict(_each(X), decision))

    def score(self, X, y, sample_weight=None):
        return super().score(_each(X), _each(y), sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags()
        return tags


def _each(values):
    return None if values is None else [np.asarray(v)[None] for v in np.asarray(values)]


POSITIVE = "a weight of 0 is refused: leave the example out"
PLACE = "a ValueError, but one that names the example and the place, in words of its own"
SPARSE = "a sparse matrix is one example's features, not a list of examples"
EXCEPTIONS = {
    "check_all_zero_sample_weights_error": POSITIVE,
    "check_sample_weight_equivalence_on_dense_data": POSITIVE,
    "check_complex_data": PLACE,
    "check_dtype_object": PLACE,
    "check_estimators_empty_data_messages": PLACE,
    "check_estimators_nan_inf": PLACE,
    "check_fit2d_predict1d": PLACE,
    "check_n_features_in_after_fitting": PLACE,
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
    "check_estimator_sparse_tag": SPARSE,
}

with warnings.catch_warnings():  # scikit-learn is optional, so its BaseEstimator is no base of ours
    warnings.filterwarnings("ignore", message="Estimator .* does not inherit from")
    every = checks.parametrize_with_checks(
        [Rows(tol=1e-4)], expected_failed_checks=lambda _: EXCEPTIONS, xfail_strict=True
    )


@every
def test_scikit_learn_checks(estimator, check):
    check(estimator)


PEOPLE = [{"id": i, "tidy": i % 3} for i in range(6)]
PAIRS = [(0, 3), (1, 4), (2, 5)]


def everyone():
    """Every estimator of the front door, and examples it learns from."""
    rng = np.random.default_rng(0)
    matrices = [rng.standard_normal((n, n, 2)) for n in (2, 3, 2, 4)]
    rows = [rng.standard_normal((n, 2)) for n in (2, 3, 1, 4)]
    tags = [(row[:, 0] > 0).astype(int) for row in rows]
    pixels = [rng.standard_normal((2, n, 1)) for n in (2, 3, 2, 4)]
    dicts = [[{"x": float(v)} for v in row[:, 0]] for row in rows]
    bits = [rng.integers(0, 2, 3) for _ in range(4)]
    return {
        "matching": (ms.MatchingModel(), matrices, [np.arange(len(x)) for x in matrices]),
        "sequence": (ms.SequenceModel(), rows, tags),
        "skips": (ms.SkipChainModel(lambda x: [], learner="lbp"), dicts, tags),
        "graph": (ms.GraphModel(), [(x, [(0, len(x) - 1)][: len(x) - 1]) for x in rows], tags),
        "several": (ms.MultiLabelModel(), [x[0] for x in rows], [[1, 0], [0, 1], [1, 1], [0, 0]]),
        "grid": (ms.GridModel(), pixels, [(x[..., 0] > 0).astype(int) for x in pixels]),
        "structured": (ms.StructuredModel(ms.Custom(3), oracle=lambda s: s > 0), [
            rng.standard_normal((3, 2)) for _ in range(4)
        ], bits),
    }  # fmt: skip


NAMES = ["matching", "sequence", "skips", "graph", "several", "grid", "structured"]
ASKED = ["predict", "predict_marginals", "potentials", "sample"]


@pytest.mark.parametrize("name", NAMES)
def test_no_setting_hides(name):
    model = everyone()[name][0]
    parameters = inspect.signature(type(model)).parameters
    assert {"alpha", "tol", "learner", "oracle"} <= set(parameters)
    assert all(p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())
    assert set(model.get_params()) == set(parameters)


@pytest.mark.parametrize("name", NAMES)
def test_unfitted_models_say_so_as_scikit_learn_does(name):
    model, X, _ = everyone()[name]
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    for question in ASKED:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model, question)(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("name", NAMES)
def test_fitted_models_count_and_name_their_features(name):
    model, X, y = everyone()[name]
    model = sklearn.clone(model).fit(X, y)
    check_is_fitted(model)
    assert model.n_features_in_ >= 1
    assert len(model.names()) == len(model.coef_)
    assert not model.__sklearn_tags__().input_tags.two_d_array


@pytest.mark.parametrize("name", NAMES)
def test_cross_val_predict_takes_ragged_lists(name):
    model, X, y = everyone()[name]
    found = cross_val_predict(model, X, y, cv=2)
    halves = ([2, 3], [0, 1])
    for train, held in (halves, halves[::-1]):
        twin = copy.copy(model).fit([X[m] for m in train], [y[m] for m in train])
        for m, expected in zip(held, twin.predict([X[m] for m in held]), strict=True):
            np.testing.assert_array_equal(found[m], expected)


@pytest.mark.parametrize("kind", ["sequence", "graph", "grid", "several"])
def test_weights_of_labels_go_with_their_examples(kind):
    (model, X, y), rng = everyone()[kind], np.random.default_rng(0)
    X, y = list(X) * 3, list(y) * 3
    sizes = [2 if kind == "several" else np.shape(labels) for labels in y]
    weight = [rng.uniform(0.5, 2.0, size) for size in sizes]
    by_hand = []
    for kept, held in KFold(3).split(X):
        twin = sklearn.clone(model).fit(
            [X[m] for m in kept], [y[m] for m in kept], node_weight=[weight[m] for m in kept]
        )
        by_hand.append(twin.score([X[m] for m in held], [y[m] for m in held]))
    np.testing.assert_array_equal(
        cross_validate(model, X, y, cv=3, params={"node_weight": weight})["test_score"], by_hand
    )


def test_scores_are_weighted():
    model, X, y = everyone()["sequence"]
    model.fit(X, [1 - labels for labels in y[:2]] + y[2:])
    often = np.array([1, 2, 3, 1])
    again = np.repeat(np.arange(4), often)
    repeated = model.score([X[m] for m in again], [y[m] for m in again])
    assert model.score(X, y, often) == pytest.approx(repeated)


def test_room_mates_have_a_score():
    model = ms.RoommateModel(ordinal="tidy")
    with pytest.raises(NotFittedError):
        model.score(PEOPLE, PAIRS)
    model.fit(PEOPLE, PAIRS)
    assert model.score(PEOPLE, PAIRS) == 1.0
    swapped = [(0, 1), (3, 4), (2, 5)]
    plan = {frozenset(pair[:2]) for pair in model.assign(PEOPLE).pairs}
    right = sum(frozenset(pair) in plan for pair in swapped) / 3
    assert model.score(PEOPLE, swapped) == pytest.approx(right)


def test_frames_name_features_and_weights(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def frame(n, columns=("height", "age")):
        return pandas.DataFrame(rng.standard_normal((n, len(columns))), columns=list(columns))

    tables = [frame(n) for n in (3, 4, 2, 5)]
    tags = [(t["age"] > 0).astype(int).to_numpy() for t in tables]
    graphs = [(t, [(0, 1)]) for t in tables]
    yes = [t["age"].to_numpy() > 0 for t in tables]
    rows, several = frame(40), pandas.DataFrame(rng.integers(0, 2, (40, 3)), columns=list("xyz"))
    models = {
        "sequence": (ms.SequenceModel(), tables, tags, "height: 0"),
        "graph": (ms.GraphModel(), graphs, tags, "height: 0"),
        "structured": (ms.StructuredModel(oracle=_positive), tables, yes, "height"),
        "several": (ms.MultiLabelModel(), rows, several, "x: height"),
    }
    for name, (model, X, y, first) in models.items():
        model.fit(X, y)
        assert model.n_features_in_ == 2
        assert model.names()[0] == first
        code = {"oracle": _positive} if name == "structured" else {}
        model.save(tmp_path / name)
        again = type(model).load(tmp_path / name, **code)
        assert again.names() == model.names()
        assert len(again.predict(X)) == len(X)
        turned = frame(4, ("age", "height"))
        given = {"graph": [(turned, [(0, 1)])], "several": turned}.get(name, [turned])
        with pytest.raises(ValueError, match="'age', 'height'"):
            again.predict(given)
    model, X, y, _ = models["several"]
    plain = ms.MultiLabelModel().fit(X.to_numpy(), y.to_numpy())
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.names()[-1] == "y with z"
    assert model.score(X, y) == plain.score(X.to_numpy(), y.to_numpy())
    assert len(model.predict_marginals(X)) == len(model.sample(X).outcomes) == 40


def _positive(score):
    return (np.asarray(score) > 0).astype(float)
