"""Probabilities by Frank-Wolfe are proven to a thousandth of a nat each, or it is said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import marginals
from mlestruct.structures.entropy import Entropy


def best_parts(scores):
    """The best of either half."""
    return np.eye(3)[scores.reshape(2, 3).argmax(axis=1)].ravel()


KINDS = {
    "matching": (ms.MatchingModel, (4, 4, 2), {"solver": "frank_wolfe"}),
    "own": (ms.StructuredModel, (6, 2), {"oracle": best_parts}),
}


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_large_value_is_no_excuse(kind, size, rng):
    """A share of 1e-4 of it is 30 nats where scores are in the thousands."""
    make, shape, own = KINDS[kind]
    X = [rng.normal(size=shape) for _ in range(6)]
    y = [rng.permutation(4) if kind == "matching" else best_parts(x[:, 0]) for x in X]
    model = make(tol=1e-2, **own).fit(X, y)
    model.coef_ = size * model.coef_
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tau = np.concatenate([np.ravel(one) for one in model.predict_marginals(X)])
    batch = ms.Batch.of(model.structures(X))
    score = np.concatenate(model.potentials(X))
    best = marginals(batch, score, own.get("oracle"), solver=ms.FrankWolfe(tol=1e-9))
    short = best.lower - Entropy.of(batch).each(tau) - batch.totals(score * tau)
    assert heard or (short <= 1e-3).all()
    assert len(heard) <= 1
