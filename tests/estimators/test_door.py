"""Errors at the door: every ValueError names the example, and a failed fit changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms

RNG = np.random.default_rng(0)
CHAINS = [RNG.standard_normal((n, 2)) for n in (3, 1, 4)]
LABELS = [["a", "b", "a"], ["b"], ["a", "a", "b", "b"]]
PAIRS = [RNG.standard_normal((3, 3, 2)) for _ in range(3)]
PARTNERS = [np.array([0, 1, 2]), np.array([2, 0, 1]), np.array([1, 0, 2])]
STREETS = [RNG.standard_normal((4, 2)) for _ in range(3)]
ONE_OF = ms.Custom(4, exactly_one=[range(4)])
CHOSEN = list(np.eye(4)[[0, 1, 3]])


def swap(items, m, value):
    return [*items[:m], value, *items[m + 1 :]]


SEQUENCES = (lambda: ms.SequenceModel(tol=0.1), CHAINS, LABELS)
MATCHINGS = (lambda: ms.MatchingModel(tol=0.1), PAIRS, PARTNERS)
CHOICES = (lambda: ms.StructuredModel(ONE_OF, oracle="simplices", tol=0.1), STREETS, CHOSEN)
NAN = np.full((3, 2), np.nan)
CASES = [
    (SEQUENCES, swap(CHAINS, 1, CHAINS[0][0]), LABELS, r"example 1: X has shape \(2,\)"),
    (SEQUENCES, swap(CHAINS, 1, CHAINS[0][:, :1]), LABELS, "example 1 has 1 features; expected 2"),
    (SEQUENCES, swap(CHAINS, 1, CHAINS[0][:0]), LABELS, r"example 1: X has shape \(0, 2\)"),
    (SEQUENCES, swap(CHAINS, 0, NAN), LABELS, "example 0: feature 0 of node 0 is nan"),
    (SEQUENCES, swap(CHAINS, 0, np.full((3, 2), -np.inf)), LABELS, "feature 0 of node 0 is -inf"),
    (SEQUENCES, CHAINS, swap(LABELS, 2, [1, 0, 1, 0]), "would be .0. in one array"),
    (MATCHINGS, PAIRS, swap(PARTNERS, 1, [0, 1, -1]), "example 1: row 2 is not matched"),
    (CHOICES, swap(STREETS, 1, STREETS[0][:3]), CHOSEN, "example 1: 3 feature rows for 4 coord"),
    (CHOICES, swap(STREETS, 1, STREETS[0].ravel()), CHOSEN, r"example 1: features have shape \(8,"),
    (CHOICES, STREETS, swap(CHOSEN, 0, [1, 1, 0, 0]), "example 0: group 0 has 2 ones"),
    (CHOICES, STREETS, swap(CHOSEN, 0, [1, 0]), "example 0: an outcome has 4 coordinates, got 2"),
]


def state(model):
    return {name: np.copy(value) for name, value in vars(model).items() if name != "structure"}


@pytest.mark.parametrize(("good", "X", "y", "message"), CASES, ids=[case[3] for case in CASES])
def test_bad_examples_are_named_and_change_nothing(good, X, y, message):
    make, fine, outcomes = good
    for model in (make(), make().fit(fine, outcomes)):
        before = state(model)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        after = state(model)
        assert before.keys() == after.keys()
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_a_repeated_example_weighs_as_two():
    once = ms.MatchingModel(tol=1e-8).fit(PAIRS, PARTNERS, [1, 2, 1])
    twice = ms.MatchingModel(tol=1e-8).fit([*PAIRS, PAIRS[1]], [*PARTNERS, PARTNERS[1]])
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-4)


def test_predictions_ask_for_what_was_learned():
    model = ms.SequenceModel(tol=0.1).fit(CHAINS, LABELS)
    with pytest.raises(ValueError, match="example 0 has 5 features; expected 2"):
        model.predict([np.ones((3, 5))])
    with pytest.raises(
        ValueError, match="X holds feature dicts, but the model was fitted to arrays"
    ):
        model.predict([[{"word": "x"}]])
    named = ms.SequenceModel(tol=0.1).fit([[{"word": "x"}, {"word": "y"}]], [["a", "b"]])
    for sentence in ([["x", "y"]], ["x y"]):
        with pytest.raises(ValueError, match=r"words, .* feature dicts, one for each"):
            named.predict(sentence)
    with pytest.raises(ValueError, match="example 0: label 'c' was not seen in training"):
        model.score([np.ones((1, 2))], [["c"]])
    with pytest.raises(ValueError, match="decision is 'map' or 'expected', not 'best'"):
        model.predict(CHAINS, decision="best")
    with pytest.raises(ValueError, match="StructuredModel needs structure="):
        ms.StructuredModel().fit(STREETS, CHOSEN)
    assert model.predict(CHAINS[1:2])[0].shape == (1,)  # no transition in the whole batch


ALONE = {
    "matching": (lambda: ms.MatchingModel(), PAIRS, PARTNERS, lambda X: X[0]),
    "sequence": (lambda: ms.SequenceModel(), CHAINS, LABELS, lambda X: X[0]),
    "parts": (
        lambda: ms.StructuredModel(ONE_OF, oracle="simplices"),
        STREETS,
        CHOSEN,
        lambda X: X[0],
    ),
    "words": (
        lambda: ms.SequenceModel(),
        [[{"w": "x"}, {"w": "y"}]] * 2,
        [["a", "b"]] * 2,
        lambda X: X[0],
    ),
    "picture": (
        lambda: ms.GridModel(),
        np.arange(96.0).reshape(4, 3, 4, 2) % 5,
        np.arange(48).reshape(4, 3, 4) % 3,
        lambda X: X[0],
    ),
    "grey picture": (
        lambda: ms.GridModel(),
        np.arange(48.0).reshape(4, 3, 4) % 5,
        np.arange(48).reshape(4, 3, 4) % 3,
        lambda X: X[0],
    ),
}


@pytest.mark.parametrize("kind", ALONE)
def test_one_example_alone_is_told_to_be_listed(kind):
    make, X, y, one = ALONE[kind]
    model = make().fit(X, y)
    for ask in (model.predict, model.predict_marginals, model.potentials):
        with pytest.raises(ValueError, match=r"X is a list of examples, not one \w+: pass \[X\]"):
            ask(one(X))
        assert len(ask([one(X)])) == 1


def test_a_stack_of_grey_pictures_is_no_picture():
    stack = np.arange(48.0).reshape(4, 3, 4) % 5
    model = ms.GridModel().fit(np.stack([stack] * 4, axis=-1), stack)
    assert ms.GridModel().fit(stack, stack).predict(stack)[0].shape == (3, 4)
    assert model.fit(stack, stack).predict(stack)[0].shape == (3, 4)
