"""Strange labels, answers, functions and tables: read right, or refused with place and advice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.families.joint.prediction import Mixture

RNG = np.random.default_rng(0)
WORDS = [RNG.normal(size=(n, 2)) for n in (3, 2, 4, 3, 5)]


def tags(low, high):
    """Labels that follow the first feature, as objects."""
    found = [np.empty(len(x), dtype=object) for x in WORDS]
    for labels, x in zip(found, WORDS, strict=True):
        labels[:] = [high if value else low for value in x[:, 0] > 0]
    return found


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (np.int8(-1), np.uint64(2**64 - 1)),
        (np.int64(-(2**62) - 1), np.uint64(2**63 + 1)),
        (-1, 2**64 - 1),
        (np.timedelta64(1, "s"), np.timedelta64(90, "s")),
        (np.datetime64("2026-01-01"), np.datetime64("2026-01-02")),
    ],
)
def test_labels_come_back_as_they_were_given(low, high):
    model = ms.SequenceModel(alpha=1e-3).fit(WORDS, tags(low, high))
    told = [label for one in model.predict(WORDS) for label in one.tolist()]
    given = [label for one in tags(low, high) for label in one.tolist()]
    plain = np.array(given).tolist() if isinstance(low, (np.datetime64, np.timedelta64)) else given
    assert told == [int(v) if isinstance(v, np.integer) else v for v in plain]
    assert all(type(label) is not float for label in told)


@pytest.mark.parametrize("gone", [pd.NaT, np.datetime64("NaT", "s")])
def test_no_time_is_no_label(gone):
    y = tags(np.datetime64("2026-01-01"), np.datetime64("2026-01-02"))
    model = ms.SequenceModel().fit(WORDS, [[gone, *one[1:]] for one in y])
    assert len(model.classes_) == 2


@pytest.mark.parametrize("labels", [(b"a", b"b"), (2**70, 2**71), (np.datetime64("2026"),) * 2])
def test_labels_that_files_cannot_hold_are_named(labels, tmp_path):
    model = ms.SequenceModel().fit(WORDS, tags(*labels))
    with pytest.raises(ValueError, match=r"classes_ are of .*such as .*learn from labels of these"):
        model.save(tmp_path / "kept")


@pytest.mark.parametrize("learner", ["ssvm", "perceptron"])
def test_a_solver_with_one_answer_is_no_minimiser(learner):
    model = ms.StructuredModel(oracle=lambda scores: np.array([1, 0, 1]), learner=learner)
    assert model.fit([np.ones((3, 2))] * 2, [[1, 0, 1]] * 2).coef_.tolist() == [0.0, 0.0]


PARTS = [RNG.normal(size=(4, 2)) for _ in range(4)]
KEPT = [np.eye(4)[k] for k in range(4)]


def one_part(scores):
    return np.eye(4)[scores.argmax()]


@pytest.mark.parametrize(
    "outcome",
    [
        np.ma.masked_equal([1.0, 0.0, 0.0, 0.0], 0.0),
        np.array([1, 0, 0, 0]) + 1j,
        ["1", "0", "0", "0"],
    ],
)
def test_outcomes_that_are_no_numbers_are_refused(outcome):
    with pytest.raises(ValueError, match=r"example 0"):
        ms.StructuredModel(oracle=one_part).fit(PARTS, [outcome, *KEPT[1:]])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"structure": lambda x: 4}, "example 0: structure= made 4, no Structure"),
    ],
)
def test_settings_that_are_none(setting, says):
    with pytest.raises(ValueError, match=says):
        ms.StructuredModel(oracle=one_part, **setting).fit(PARTS, KEPT)


def test_names_of_features():
    model = ms.StructuredModel(oracle=one_part, feature_names=["a", "a"]).fit(PARTS, KEPT)
    assert model.summary().names == ["a", "a"]
    model.feature_names = "ab"
    with pytest.raises(ValueError, match=r"a list of names"):
        model.summary()


DICTS = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}, {"a": 1.0}]] * 2
KINDS = [["x", "y"], ["y", "x"]] * 2


def test_positions_in_an_array_are_positions():
    model = ms.SequenceModel().fit(DICTS, KINDS)
    plain = model.predict_marginals(DICTS[:1])[0]
    for form in (lambda x: np.array(x, dtype=object), lambda x: pd.Series(x, index=[7, 3])):
        given = [form(x) for x in DICTS]
        assert model.predict_marginals(given[:1])[0].tobytes() == plain.tobytes()
        assert model.predict(given[:1])[0].tolist() == model.predict(DICTS[:1])[0].tolist()
        assert ms.SequenceModel().fit(given, KINDS).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("method", ["predict", "predict_marginals", "decode"])
def test_a_value_beyond_all_sizes_is_refused_by_every_method(method):
    model = ms.SequenceModel().fit(DICTS, KINDS)
    with pytest.raises(ValueError, match=r"is 1e[+]300; beyond 1e[+]50"):
        getattr(model, method)([[{"a": 1e300}, {"b": 1.0}]])


def test_weights_of_labels_have_the_range_of_those_of_examples():
    with pytest.raises(ValueError, match=r"example 0: labels count .* lie between 1e-30 and 1e30"):
        ms.SequenceModel().fit(DICTS, KINDS, node_weight=[[1e-99, 1]] * 4)


def test_a_graph_says_which_number_is_none():
    nodes, edges = np.arange(6.0).reshape(3, 2), [(0, 1), (1, 2)]
    nodes[2, 1] = np.nan
    for form, name in (
        (np.asarray, "1"), (sp.csr_array, "1"),
        (lambda x: pd.DataFrame(x, columns=["age", "size"]), "'size'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"example 0: .* hold nan in row 2, column {name}"):
            ms.GraphModel().fit([(form(nodes), edges)], [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"example 0: node features must be numbers: .*complex"):
        ms.GraphModel().fit([(sp.csr_array(np.ones((3, 2)) * 1j), edges)], [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"A must be numbers: .*complex"):
        ms.Custom(2, A=sp.csr_array(np.ones((1, 2)) * 1j), upper=[1])


def people(tidy, major="a"):
    return {"id": list(range(12)), "tidy": tidy, "major": [major, *"abcabcabcab"]}


PAIRS = [(i, i + 6) for i in range(6)]


@pytest.mark.parametrize("gone", [pd.NA, pd.NaT, np.datetime64("NaT", "s"), None, np.nan])
def test_no_answer_in_a_list_is_no_answer(gone):
    model = ms.RoommateModel(ordinal="tidy", categorical="major", missing="neutral")
    told = model.fit(people([0, 1, 2] * 4, gone), PAIRS)
    plain = ms.RoommateModel(ordinal="tidy", categorical="major", missing="neutral")
    assert told.coef_.tobytes() == plain.fit(people([0, 1, 2] * 4, None), PAIRS).coef_.tobytes()


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (1e300, "'tidy': person .* answers 1e[+]300, which is no level"),
        (2**62, "'tidy': person .* answers 4.*e[+]18, which is no level"),
        (np.timedelta64(1, "s"), "'tidy' holds text such as '0:00:01'"),
    ],
)
def test_answers_that_are_none_are_refused(odd, says):
    with pytest.raises(ValueError, match=says):
        ms.RoommateModel(ordinal="tidy").fit(people([0, 1, 2, odd, *[1, 2] * 4]), PAIRS)


LAW = Mixture(0.6, [-1.0, 1.0], [0.5, 0.5])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Mixture("a", [0.0, 1.0], [1.0, 1.0]), "alpha must be numbers"),
        (lambda: Mixture(1.0, [0.0, 1.0], [1e-320, 1.0]), "has no spread"),
        (lambda: ms.JointModel(ms.grid(2, 2), 3).fit([[0] * 4]), "mixture is a Mixture"),
        (lambda: ms.JointModel(ms.grid(2, 2, 3), LAW).fit([[0] * 4]), "3 labels, the mixture 2"),
        (
            lambda: ms.JointModel(ms.grid(2, 2), LAW, smoothing="a").fit([[0] * 4]),
            "smoothing must be numbers",
        ),
    ],
)
def test_joint_settings_that_are_none(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("size", [1e154, -1e300])
def test_an_observation_that_no_label_explains(size):
    model = ms.JointModel(ms.grid(2, 2), LAW, smoothing=0.1).fit([[0, 1, 0, 1]])
    with pytest.raises(ValueError, match=r"example 0: the observation of site 2 is"):
        model.predict([[0.0, 1.0, size, 0.0]])
