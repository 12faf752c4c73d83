"""Skip chains: ties at a distance, with weights of their own and of their words."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.estimators import SkipChainModel, capitalised_pairs
from mlestruct.learners import lbp

TEXTS = [
    "Mr Green met Ms Brown and Green left",
    "the green door was Brown as Brown said",
    "Paris in May and Paris in June",
    "it is what it is",
]
LABELS = [[0, 1, 0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0, 1, 0], [0] * 7, [0] * 5]


def examples():
    X = [[{"word": w, "capital": w[0].isupper()} for w in text.split()] for text in TEXTS]
    return X, [np.array(labels) for labels in LABELS]


def skips(x):
    return capitalised_pairs([position["word"] for position in x])


def both(x, i, j):
    return {"left": x[i]["word"], "right": x[j]["word"]}


def test_pairs_are_equal_capitalised_words_apart():
    assert capitalised_pairs(["I", "saw", "Bo", "Bo", "and", "Bo", "I"]) == [(2, 5), (3, 5)]
    assert capitalised_pairs([]) == []


def test_structure_and_weights_of_both_clique_sizes():
    X, y = examples()
    two = SkipChainModel(skips, learner="lbp").fit(X, y)
    assert [s.n_factors for s in two.structures(X)] == [7 + 1, 7 + 1, 6 + 1, 4]
    assert two.ties_.names == ["chain", "skip"]
    assert len(two.coef_) == len(two.names()) == 2 * len(two.attributes_) + 2 * 4
    four = SkipChainModel(skips, both, learner="lbp").fit(X, y)
    assert "skip with:left:Green" in four.ties_.names
    assert len(four.coef_) == len(four.names())
    assert "chain: 0 → 1" in two.names()


def test_a_skip_carries_a_label_to_where_nothing_else_tells():
    texts = ["Mr {0} went home and {0} slept", "in {0} it rains and {0} waits"] * 8
    names = [chr(65 + n % 26) + chr(97 + n) * 2 for n in range(16)]
    words = [text.format(name).split() for text, name in zip(texts, names, strict=True)]
    # nothing about the word itself: only what stands before it
    X = [[{"before": b} for b in ["<s>", *w[:-1]]] for w in words]
    pairs = {id(x): capitalised_pairs(w) for x, w in zip(X, words, strict=True)}
    y = [
        np.array([int(word == name and m % 2 == 0) for word in line])
        for m, (line, name) in enumerate(zip(words, names, strict=True))
    ]
    tied = SkipChainModel(lambda x: pairs[id(x)], learner=lbp, alpha=0.1).fit(X, y)
    alone = SkipChainModel(lambda x: [], learner=lbp, alpha=0.1).fit(X, y)
    right = [np.mean(np.concatenate(m.predict(X)) == np.concatenate(y)) for m in (tied, alone)]
    assert right[0] == 1.0
    assert right[1] < 1.0


def test_ties_of_neighbours_twice_are_refused():
    X, y = examples()
    with pytest.raises(ValueError, match="repeats the variables"):
        SkipChainModel(lambda x: [(0, 1)], learner="lbp").fit(X, y)
