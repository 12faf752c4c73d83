"""Doors beside fit and predict: what asks a model, scores, features of pixels, pictures, files."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import mlestruct as ms
from benchmarks._faults.refusal import bad, fault
from mlestruct import images, metrics, plot, scorers
from mlestruct.readers.feature_dicts import Attributes

RNG = np.random.default_rng(0)
WORDS = [RNG.normal(size=(n, 2)) for n in (3, 2, 4, 3, 5, 3)]
TAGS = [(x[:, 0] > 0).astype(int).tolist() for x in WORDS]
TABLES = [RNG.normal(size=(3, 3, 2)) for _ in range(6)]
ROWS = [RNG.permutation(3) for _ in TABLES]
IMAGE = RNG.random((5, 4))
HALF = np.full((2, 2), 0.5)


@pytest.fixture(scope="module")
def words():
    return ms.SequenceModel(tol=1e-2).fit(WORDS, TAGS)


@cache
def fitted():
    return ms.MatchingModel(tol=1e-2).fit(TABLES, ROWS)


@pytest.fixture
def tables():
    return fitted()


def scored(name, given, **settings):
    """A scorer of these costs, asked about the matchings."""
    return getattr(scorers, name)(given, **settings)(fitted(), TABLES, ROWS)


def no_image(name, says, *given, **named):
    return bad(f"images.{name}", says, getattr(images, name), *given, **named)


def no_picture(name, says, *given, **named):
    return bad(f"plot.{name}", says, getattr(plot, name), *given, **named)


FUNCTIONS = [
    *(no_image("windows", "radius", IMAGE, r) for r in (-1, 1.5, "1", None, [1, 2], True)),
    no_image("windows", r"radius 1000000 makes 8e\+13 numbers", IMAGE, 10**6),
    *(no_image("windows", "outside", IMAGE, 1, v) for v in (np.nan, np.inf, "a", [0.0])),
    no_image("windows", r"pixel \(0, 0\) is nan", np.full((2, 2), np.nan), 1),
    *(no_image("coin_noise", "share is in 0..1", IMAGE, s, 0) for s in (1.5, -0.1, np.nan)),
    no_image("coin_noise", "pixels must be numbers", [["a"]], 0.5, 0),
    bad("entities", "tag 0 is 'b-x'", metrics.entities, ["b-x", "i-x"]),
    bad("entity_f1", "tag 0 is 'B'", metrics.entity_f1, ["B-x", "O"], ["B-x", "O"]),
    *(bad("regret", "costs are the name", scorers.regret, c) for c in (None, 3, [TABLES[0]])),
    bad("regret", "sense is 'min' or 'max'", scorers.regret, "c", "up"),
    *(bad("cost_equal", "tol", scorers.cost_equal, "c", t) for t in (-1, np.nan, np.inf, "0")),
    bad("regret", "example 0: 1 costs for 9 parts", scored, "regret", lambda x: [1.0]),
    bad("regret", "example 0: costs must be numbers", scored, "regret", lambda x: None),
    bad("regret", "is nan", scored, "regret", lambda x: np.full((3, 3), np.nan)),
    no_picture("gap", "against is calls or seconds", [], "rounds"),
    no_picture("gap", "no round", []),
    *(no_picture("matrix", "probabilities are", t) for t in (np.zeros(3), np.zeros((0, 2)))),
    no_picture("matrix", "probabilities must be numbers", [["a"]]),
    no_picture("matrix", "names no column for each row", HALF, outcome=[0, 1, 1]),
    no_picture("matrix", "names no column for each row", HALF, outcome=[0, 7]),
    no_picture("matrix", "outcome's columns are integers", HALF, outcome=[0, 0.5]),
    no_picture("sequence", "1 classes for 2 labels", HALF, ["a"]),
    no_picture("sequence", "is no label for each of 2", HALF, outcome=[0]),
    no_picture("sequence", "is no label for each of 2", HALF, ["a", "b"], outcome=["a", "c"]),
    no_picture("sequence", "probabilities are", np.zeros(3)),
    no_picture("picture", "probabilities are", HALF),
    *(no_picture("picture", "state", np.full((2, 2, 2), 0.5), s) for s in (5, -1, "a", 0.5)),
    no_picture("dots", "2 values for 1 names", ["a"], [1, 2]),
    no_picture("dots", "2 spans for 1 names", ["a"], [1], [(0, 1), (1, 2)]),
]


@pytest.mark.parametrize("case", FUNCTIONS, ids=str)
def test_what_functions_cannot_use_is_refused_in_words(case):
    assert fault(case) is None


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None, np.nan, [3], np.inf, True, np.True_])
def test_a_number_of_answers_is_a_number(k, words):
    with pytest.raises(ValueError, match=r"^k (is|are|must be) "):
        words.k_best(WORDS[:1], k)


@pytest.mark.parametrize("count", [10**12, np.int64(10**12), 1e12])
def test_more_answers_than_memory_holds_are_refused_with_their_number(count, words, tables):
    for model, given in ((words, WORDS), (tables, TABLES), (words, [WORDS[0][:0]] * 2)):
        with pytest.raises(ValueError, match=r"^count=1000000000000 makes "):
            model.sample(given, count)
    with pytest.raises(ValueError, match=r"^k=1000000000000 makes"):
        words.k_best([RNG.normal(size=(64, 2))], count)
    with pytest.raises(ValueError, match=r"^bins=1000000000000 makes"):
        words.calibration(WORDS, TAGS, bins=int(count))


@pytest.mark.parametrize("count", [0, True, 1.5, "1", None])
def test_a_number_of_samples_is_one_even_of_nothing(count, words):
    with pytest.raises(ValueError, match=r"^count (is|are|must be) "):
        words.sample([], count)


@pytest.mark.parametrize("reference", [0, "a", "b"])
def test_a_reference_is_refused_where_there_are_no_labels(reference, tables):
    with pytest.raises(ValueError, match="a MatchingModel tells no label against another"):
        tables.intervals(TABLES, ROWS, reference=reference)


def nested(kind, deep=3_000):
    found = 1.0
    for _ in range(deep):
        found = kind(found)
    return found


NESTS = {"lists": lambda x: [x], "tuples": lambda x: (x,), "dicts": lambda x: {"a": x}}


@pytest.mark.parametrize("kind", NESTS.values(), ids=NESTS)
def test_what_is_nested_too_deep_is_refused_in_words(kind):
    deep = nested(kind)
    for position in (deep, {"b": deep}, [deep], {"b": [deep]}, {"b": {"c": [deep]}}):
        with pytest.raises(ValueError, match=r"^example 0, position 0: .{,200}$"):
            Attributes.of([[position]])
    with pytest.raises(ValueError, match=r"^bounds are \(lower, upper\), not .{,200}$"):
        ms.MatchingModel(bounds=(deep, 0, deep)).fit(TABLES, ROWS)
    with pytest.raises(ValueError, match=r"^lower must be numbers"):
        ms.MatchingModel(bounds=(deep, deep)).fit(TABLES, ROWS)
    if kind is NESTS["dicts"]:
        assert len(Attributes.of([[{"b": nested(kind, 50), "c": [(1, 2), "d"]}]])) == 3


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, "0.95", None, np.nan, [0.9], True])
def test_a_level_is_a_chance(level, words):
    with pytest.raises(ValueError, match="level"):
        words.intervals(WORDS, TAGS, level=level)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, pd.NaT])
def test_an_example_without_a_cohort_is_named(gone, words):
    with pytest.raises(ValueError, match="example 4 is of no cohort"):
        words.intervals(WORDS, TAGS, cohort=["a", "a", "b", "b", gone, "c"])


def test_a_summary_shows_no_other_models_intervals(words, tables):
    with pytest.raises(ValueError, match="no intervals of this model"):
        words.summary(tables.intervals(TABLES, ROWS))
    with pytest.raises(ValueError, match=r"no intervals of this model.*'x'"):
        words.summary("x")
    with pytest.raises(ValueError, match=r"no intervals of this model.*8"):
        words.summary(8)


def test_nor_those_of_other_names(words):
    letters = [["ab"[k] for k in tags] for tags in TAGS]
    other = ms.SequenceModel(tol=1e-2).fit(WORDS, letters)
    found = other.intervals(WORDS, letters)
    with pytest.raises(ValueError, match=r"no intervals of this model.*: 0.*: a"):
        words.summary(found)
    assert other.summary(found).sure is found


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_a_picture_names_the_level_of_its_intervals(level, tables):
    pytest.importorskip("matplotlib")
    found = tables.summary(tables.intervals(TABLES, ROWS, level=level))
    (text,) = (t.get_text() for t in plot.weights(found).get_legend().get_texts()[1:])
    assert text == f"{100 * level:g} % interval"
    with pytest.raises(ValueError, match="top is 0"):
        plot.weights(found, top=0)


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_what_names_no_file_is_said(path, words):
    with pytest.raises(ValueError, match="names no file"):
        words.save(path)


ODD = {
    "k in one byte": lambda m: len(m.k_best(WORDS[:1], np.int8(3))[0]) == 3,
    "k as a fraction that is whole": lambda m: len(m.k_best(WORDS[:1], 3.0)[0]) == 3,
    "k in an array of no axis": lambda m: len(m.k_best(WORDS[:1], np.array(3))[0]) == 3,
    "k far beyond all there are": lambda m: len(m.k_best(WORDS[:1], 10**15)[0]) == 2**3,
    "k of all, in order": lambda m: np.isclose(sum(p for _, p in m.k_best(WORDS[:1], 99)[0]), 1.0),
    "no examples to rank": lambda m: m.k_best([], 3) == [],
    "any tag for every token": lambda m: (
        repr(m.k_best(WORDS[:1], 3)) == repr(m.k_best(WORDS[:1], 3, allowed=[None]))
    ),
    "tags in a set": lambda m: (
        m.predict(WORDS[:1], allowed=[[{0}, {1}, {0, 1}]])[0][:2].tolist() == [0, 1]
    ),
    "cohorts of two types": lambda m: m.intervals(WORDS, TAGS, cohort=[1, "1"] * 3).units == 2,
    "cohorts in a shuffled Series": lambda m: (
        m.intervals(WORDS, TAGS, cohort=pd.Series(list("aabbcc"), index=[5, 3, 1, 0, 2, 4])).units
        == 3
    ),
    "cohorts of pairs": lambda m: (
        m.intervals(WORDS, TAGS, cohort=[(1, 2), (1, 2), (2, 1)] * 2).units == 2
    ),
    "cohorts that are dates": lambda m: (
        m.intervals(WORDS, TAGS, cohort=np.array(["2026-01", "2026-02"] * 3, "M8[M]")).units == 2
    ),
    "cohorts in yes and no": lambda m: (
        m.intervals(WORDS, TAGS, cohort=[True, False] * 3).units == 2
    ),
    "one bin": lambda m: len(m.calibration(WORDS, TAGS, 1).predicted) == 1,
    "more bins than parts": lambda m: m.calibration(WORDS, TAGS, 10**6).error >= 0.0,
    "a seed of 200 bits": lambda m: len(m.sample(WORDS[:1], 2, 2**200).outcomes[0]) == 2,
    "a generator for a seed": lambda m: (
        repr(m.sample(WORDS, 3, np.random.default_rng(1))) == repr(m.sample(WORDS, 3, 1))
    ),
    "weights of two": lambda m: np.isclose(m.score(WORDS, TAGS, [2] * 6), m.score(WORDS, TAGS)),
    "the same example twice": lambda m: np.isclose(
        m.log_likelihood(WORDS * 2, TAGS * 2)[0], 2 * m.log_likelihood(WORDS, TAGS)[0]
    ),
    "evidence is of the number, not its type": lambda m: (
        str(m.evidence(WORDS, [[float(v) for v in t] for t in TAGS]))
        == str(m.evidence(WORDS, TAGS))
    ),
    "recalibrated by one example": lambda m: (
        m.recalibrated(WORDS[:1], TAGS[:1]).predict(WORDS)[1].tolist()
        == m.predict(WORDS)[1].tolist()
    ),
}
PLAIN = {
    "a window of no radius": lambda: np.array_equal(images.windows(IMAGE, 0)[..., 0], IMAGE),
    "a radius larger than the image": lambda: images.windows(IMAGE, 9).shape == (5, 4, 361),
    "dark surroundings": lambda: images.windows(IMAGE, 1, -1)[0, 0, 0] == -1.0,
    "no coin at all": lambda: np.array_equal(images.coin_noise(IMAGE > 0.5, 0, 1), IMAGE > 0.5),
    "no noise at all": lambda: np.array_equal(images.coin_noise(IMAGE, 0, 1), IMAGE),
    "no tags": lambda: metrics.entities([]) == set(),
    "tags in an array": lambda: metrics.entities(np.array(["B-x", "I-x"])) == {(0, 2, "x")},
    "costs that are all alike": lambda: scored("regret", lambda x: np.ones((3, 3))) == 0.0,
    "costs of nothing": lambda: scored("cost_equal", lambda x: np.zeros((3, 3))) == 1.0,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_questions_to_a_model_are_answered(odd, words):
    assert odd(words)


@pytest.mark.parametrize("odd", PLAIN.values(), ids=PLAIN)
def test_odd_arguments_that_are_right_are_used(odd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert odd()


NIGHTS = [1, 2, 3, 1, 2, 3, 2, 1]
HALL = pd.DataFrame({"id": list("abcdefgh"), "night": NIGHTS})
SHARE = [("a", "d"), ("b", "e"), ("c", "f"), ("g", "h")]


@pytest.fixture(scope="module")
def hall():
    return ms.RoommateModel(ordinal=["night"]).fit(HALL, SHARE)


def test_rooms_are_asked_about_in_odd_ways(hall):
    assert set(hall.evaluate(HALL, SHARE, top=2).top) == {2}
    with pytest.raises(ValueError, match="a column is named by text, not 3"):
        ms.RoommateModel(ordinal=["night", 3]).fit(HALL, SHARE)


@pytest.mark.parametrize("depth", [40, 70, 3000])
@pytest.mark.parametrize("kind", [list, tuple])
def test_answers_nested_deeply_are_none(kind, depth):
    deep = kind()
    for _ in range(depth):
        deep = kind([deep])
    with pytest.raises(ValueError, match="example 0"):
        ms.SequenceModel().fit(WORDS, [deep] * 6)
    with pytest.raises(ValueError, match="example 0"):
        ms.MatchingModel().fit(TABLES, [deep] * 6)


def test_a_cohort_that_cannot_be_told_apart_is_named(words):
    with pytest.raises(ValueError, match=r"example 5 is of no cohort \(\['a'\]\)"):
        words.intervals(WORDS, TAGS, cohort=[*"abcde", ["a"]])
