"""Labels straight from the weights: the oracle's, for whatever a position may hold."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.estimators.base import Estimator

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
        slow = Estimator.predict(model, new)
        fast = model._labels(new)
        assert fast is not None
        alone = [model.predict([x])[0] for x in new]
        for one, other, single in zip(fast, slow, alone, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, single)
