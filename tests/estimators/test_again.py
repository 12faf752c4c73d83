"""An estimator that was fitted before learns as a new one does, whatever it knew."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms

LINE = [(k, k + 1) for k in range(3)]


def grids(rng, width):
    return [rng.random((3, 4, width)) for _ in range(4)], rng.integers(0, width + 1, (4, 3, 4))


def graphs(rng, width):
    labels = [rng.permutation(4) % (width + 1) for _ in range(4)]
    return [(rng.random((4, width)), LINE, rng.random((3, width))) for _ in range(4)], labels


def chains(rng, width):
    return [rng.random((5, width)) for _ in range(4)], list(rng.integers(0, width + 1, (4, 5)))


def words(rng, width):
    X = [[{"w": str(k), "v": float(width)} for k in rng.integers(0, 3, 4)] for _ in range(4)]
    return X, [rng.permutation(["a", "b", "c", "d"][: width + 1] * 4)[:4] for _ in X]


def bags(rng, width):
    return rng.random((12, width)), rng.integers(0, 2, (12, width + 1))


def pairs(rng, width):
    return [rng.random((3, 3, width)) for _ in range(4)], [rng.permutation(3) for _ in range(4)]


def parts(rng, width):
    return [rng.random((3, width)) for _ in range(4)], [np.eye(3)[k] for k in (0, 1, 2, 1)]


def best(scores):
    return np.arange(3) == np.argmax(scores)


KINDS = {
    "grids": (ms.GridModel, grids, {"contrast": True}),
    "graphs": (ms.GraphModel, graphs, {}),
    "chains": (ms.SequenceModel, chains, {}),
    "words": (ms.SequenceModel, words, {}),
    "bags": (ms.MultiLabelModel, bags, {}),
    "pairs": (ms.MatchingModel, pairs, {}),
    "parts": (ms.StructuredModel, parts, {"oracle": best}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
def test_a_second_fit_knows_nothing_of_the_first(kind, before, after, rng):
    make, draw, settings = KINDS[kind]
    first, (X, y) = draw(rng, before), draw(rng, after)
    again = make(**settings).fit(*first).fit(X, y)
    fresh = make(**settings).fit(X, y)
    assert again.names() == fresh.names()
    assert np.array_equal(again.coef_, fresh.coef_)
    for a, b in zip(again.predict_marginals(X), fresh.predict_marginals(X), strict=True):
        assert np.array_equal(a, b)
