"""Piecewise, CAMEL, TRW, pseudo-likelihood and the perceptron against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import mlestruct as ms
from mlestruct.learners import LEARNERS
from mlestruct.learning.frank_wolfe import FrankWolfe

TIGHT = FrankWolfe(tol=1e-9, rounds=2000)


@pytest.fixture
def square(rng):
    """Four labelled 2 × 2 grids with three shared features."""
    graph = ms.grid(2, 2)
    outcomes = rng.integers(2, size=(4, 4))
    batch = ms.Batch.of(graph, list(outcomes))
    X = rng.standard_normal((4, graph.size, 3))
    return graph, outcomes, batch, X, ms.Dense.of(batch, X.reshape(-1, 3))


def piece_loss(theta, graph, outcomes, X):
    """Minus Σ over edges of the edge's own log-likelihood, node scores shared among its edges."""
    degree = np.bincount(graph.scope, minlength=graph.n_nodes)
    total = 0.5 * theta @ theta
    for y, x in zip(outcomes, X, strict=True):
        scores = x @ theta
        for f, (i, j) in enumerate(graph.scope.reshape(-1, 2)):
            table = scores[graph.table_start[f] : graph.table_start[f + 1]].reshape(2, 2).copy()
            table += scores[2 * i : 2 * i + 2][:, None] / degree[i]
            table += scores[2 * j : 2 * j + 2][None] / degree[j]
            total -= table[y[i], y[j]] - np.logaddexp.reduce(table.ravel())
    return total


@pytest.mark.parametrize("route", ["direct", "frank_wolfe"])
def test_piecewise_is_a_sum_of_edges_likelihoods(square, route):
    graph, outcomes, batch, X, features = square
    learner = LEARNERS["piecewise"](regulariser=1.0, solver=FrankWolfe(tol=1e-8), route=route)
    expected = minimize(piece_loss, np.zeros(3), args=(graph, outcomes, X), options={"gtol": 1e-7})
    model = learner.fit(batch, features)
    assert model.certificate.objective == pytest.approx(-expected.fun, abs=1e-5)
    np.testing.assert_allclose(model.theta, expected.x, atol=2e-3)


def test_camel_on_one_cycle_is_bethe(square):
    _, _, batch, _, features = square
    camel = LEARNERS["camel"](regulariser=1.0, solver=TIGHT).fit(batch, features)
    bethe = ms.mle_struct(rho=1.0, regulariser=1.0, solver=TIGHT).fit(batch, features)
    np.testing.assert_allclose(camel.theta, bethe.theta, atol=2e-3)


def test_perceptron_separates_what_is_separable(rng):
    graph = ms.chain(3, 2)
    X = rng.standard_normal((10, graph.size, 4))
    weights = np.array([2.0, -1.0, 0.5, 1.5])
    listed = np.array([graph.encode(y) for y in np.ndindex(2, 2, 2)])
    outcomes = [graph.decode(listed[(listed @ (x @ weights)).argmax()]) for x in X]
    batch = ms.Batch.of(graph, outcomes)
    features = ms.Dense.of(batch, X.reshape(-1, 4))
    model = LEARNERS["perceptron"](epochs=200).fit(batch, features)
    predicted = [listed[(listed @ (x @ model.theta)).argmax()] for x in X]
    right = [
        graph.decode(p).tolist() == y.tolist() for p, y in zip(predicted, outcomes, strict=True)
    ]
    assert np.mean(right) >= 0.9
    assert model.certificate.withheld is not None
