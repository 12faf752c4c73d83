"""Labels straight from the weights: the oracle's, for whatever a position may hold."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.estimators.predictor import Predictor

WORDS = [f"w{k}" for k in range(12)]


def position(rng):
    """Attributes of every kind: text, numbers, flags, sets, nested, repeated by another way."""
    word = str(rng.choice(WORDS))
    kinds = [
        {"word": word, "upper": bool(rng.integers(2)), "length": int(rng.integers(4))},
        {"word": word, "score": float(rng.normal()), "flag": np.bool_(True), "parts": ["a", "b"]},
        {"next": {"word": word, "size": 2.5}, "one": 1, "whole": 1.0, "word:w1": True},
        {"word": "w1", "word:w1": 3.0},
    ]
    return kinds[int(rng.integers(len(kinds)))]


def sentences(rng, count, tags):
    X = [[position(rng) for _ in range(rng.integers(1, 9))] for _ in range(count)]
    y = []
    for x in X:
        row, open_type = [], None
        for _ in x:
            choices = [t for t in tags if not t.startswith("I-") or t[2:] == open_type]
            row.append(str(rng.choice(choices)))
            open_type = None if row[-1] == "O" else row[-1][2:]
        y.append(row)
    return X, y


@pytest.mark.parametrize("constraints", [None, "bio"])
@pytest.mark.parametrize("weights", [None, "seen", "all"])
def test_labels_are_those_of_the_oracle(constraints, weights, rng):
    X, y = sentences(rng, 25, ["O", "B-x", "I-x", "B-y", "I-y"])
    model = ms.SequenceModel(constraints=constraints, weights=weights, tol=1e-2).fit(X, y)
    new, _ = sentences(rng, 40, ["O"])
    new += [[{"unseen": "only"}], [{}], [["w:1", "w:2"], {"word": "w3"}]]
    for coef in (model.coef_, rng.normal(scale=3.0, size=model.coef_.shape), 0 * model.coef_):
        model.coef_ = coef
        slow = Predictor.predict(model, new)
        fast = model._labels(new)
        assert fast is not None
        alone = [model.predict([x])[0] for x in new]
        for one, other, single in zip(fast, slow, alone, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, single)


def test_what_labels_alone_cannot_say_is_asked_of_the_oracle(rng):
    X, y = sentences(rng, 10, ["O", "B-x", "I-x"])
    model = ms.SequenceModel(tol=1e-2).fit(X, y)
    asked = []

    def oracle(score):
        asked.append(score)
        raise RuntimeError("asked")

    model.oracle = oracle
    with pytest.raises(RuntimeError, match="asked"):
        model.predict(X[:1])
    assert asked
    model.oracle = None
    for bad in ([{"word": "w1"}, {"score": np.nan}], [{"word": "w1"}, {3: "w"}], [{"word": None}]):
        with pytest.raises(ValueError, match=f"example 1, position {len(bad) - 1}"):
            model.predict([X[0], bad])
    model.coef_ = np.full_like(model.coef_, np.nan)
    with pytest.raises(ValueError, match="is nan"):
        model.predict(X)


def test_other_structures_predict_as_before(rng):
    """A subclass with ties of its own, and arrays, have no labels straight from weights."""
    X, y = sentences(rng, 10, ["O", "B-x", "I-x"])
    skip = ms.SkipChainModel(lambda x: [(0, 2)] if len(x) > 2 else [])
    skip.prepare(X, y)
    skip.coef_ = np.zeros(1)
    assert skip._labels(X) is None
    arrays = [np.ones((len(x), 2)) for x in X]
    plain = ms.SequenceModel(tol=0.1).fit(arrays, y)
    assert plain._labels(arrays) is None
    assert plain.coef_.size == 2 * 3 + 9
