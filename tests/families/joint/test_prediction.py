"""Joint estimation and prediction: estimates against quadrature, hidden sites."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

import mlestruct as ms
from mlestruct.families.joint.prediction import Mixture, predict
from mlestruct.inference import marginals
from mlestruct.testing import vertices

MIXTURE = Mixture(0.6, [-1.0, 1.5], [0.5, 2.0])


@pytest.fixture
def grid(rng):
    graph = ms.grid(2, 3)
    return graph, rng.standard_normal(graph.size)


def posterior(y, j):
    """(p(y | j), E[z | y, j]) on a fine grid of z, from the model's own two densities."""
    z = np.linspace(-30, 30, 60001)
    weight = norm.pdf(z, MIXTURE.nu[j], np.sqrt(MIXTURE.sigma2[j]))
    weight = weight * norm.pdf(y, MIXTURE.alpha * z, np.sqrt(1 - MIXTURE.alpha**2))
    mass = trapezoid(weight, z)
    return mass, trapezoid(weight * z, z) / mass


def test_exact_prediction_is_the_posterior_mean(grid, rng):
    """Every labelling listed, every density integrated: ẑ = E[z | y], one site unseen."""
    graph, theta = grid
    y = rng.standard_normal(6)
    y[4] = np.nan
    found = predict(graph, theta, MIXTURE, y, rho=None)
    seen = [[posterior(v, j) for j in range(2)] if v == v else None for v in y]
    weights, means = [], []
    for vertex in vertices(graph):
        states = graph.decode(vertex)
        pairs = [
            (1.0, MIXTURE.nu[j]) if p is None else p[j] for p, j in zip(seen, states, strict=True)
        ]
        weights.append(np.exp(theta @ vertex) * np.prod([p for p, _ in pairs]))
        means.append([mean for _, mean in pairs])
    expected = np.array(weights) @ np.array(means) / np.sum(weights)
    np.testing.assert_allclose(found.z, expected, atol=1e-6)


@pytest.mark.parametrize("rho", [0.5, "trees"])
def test_prediction_uses_the_surrogate_it_was_asked_for(rho, grid, rng):
    """Its labels are the surrogate's marginals at θ plus the observations' log-likelihoods."""
    graph, theta = grid
    y = rng.standard_normal(6)
    score = theta.copy()
    score[:12] += MIXTURE.log_likelihood(y).ravel()
    tau = marginals(ms.Batch.of(graph, count=1), score, rho=rho).tau
    found = predict(graph, theta, MIXTURE, y, rho)
    np.testing.assert_allclose(found.labels, tau[:12].reshape(6, 2), atol=1e-6)
    np.testing.assert_allclose(found.z, (found.labels * MIXTURE.estimates(y)).sum(axis=1))


def test_independent_sites_know_only_themselves(grid, rng):
    """ρ = 0 is Bayes' rule at every site alone."""
    graph, theta = grid
    y = rng.standard_normal(6)
    prior = np.exp(theta[:12].reshape(6, 2))
    joint = prior * [[posterior(v, j)[0] for j in range(2)] for v in y]
    found = predict(graph, theta, MIXTURE, y, rho=0.0)
    np.testing.assert_allclose(found.labels, joint / joint.sum(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mixture(1.2, [0.0, 1.0], [1.0, 1.0]), "alpha is 1.2"),
        (lambda: Mixture(0.5, [0.0, 1.0], [1.0, 0.0]), "label 1 has nu 1.0 and variance 0.0"),
        (
            lambda: predict(ms.grid(2, 2), np.zeros(24), MIXTURE, np.zeros(3)),
            "expected one of each of 4 sites",
        ),
    ],
)
def test_misuse_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
