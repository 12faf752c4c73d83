"""The contrastive learner: from piecewise-like at k = 1 to maximum likelihood, by one trainer."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.contrastive.objectives import BetheSteps, Contrastive
from mlestruct.inference.exact import exact
from mlestruct.learners import contrastive, lbp
from mlestruct.learners.primal import only_seen
from mlestruct.learning.problem import Head, ObjectivePart
from papers.relaxations import GibbsSteps, small_batches
from tests.reference.descents import rounds

SOLVER = ms.FrankWolfe(tol=1e-6, rounds=200)


def grids(rng, count=12, side=3, hidden=False):
    """Noisy constant-ish grids with a constant and an input per pixel."""
    graph = ms.grid(side, side)
    y = [(rng.random(side * side) < rng.choice([0.2, 0.8])).astype(int) for _ in range(count)]
    X = [np.stack([np.ones(side**2), one + rng.standard_normal(side**2)], axis=1) for one in y]
    if hidden:
        y = [np.where(rng.random(side**2) < 0.3, -1, one) for one in y]
    batch = only_seen(ms.Batch.of(graph, list(map(ms.Partial, y))))
    return batch, ms.Tied.of(batch, X)


def test_weights_approach_belief_propagations_as_k_grows(rng):
    batch, features = grids(rng)
    want = lbp(solver=SOLVER).fit(batch, features).theta
    found = [contrastive(solver=SOLVER, k=k).fit(batch, features) for k in (1, 4, 300)]
    away = [np.linalg.norm(model.theta - want) for model in found]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-2 * np.linalg.norm(want)
    limit = contrastive(solver=SOLVER, k=None).fit(batch, features).theta
    np.testing.assert_allclose(limit, want, atol=1e-3)


@pytest.mark.parametrize("k", [1, 5])
def test_the_k_step_gradient_vanishes_at_the_end(k, rng):
    """Φᵀ(τ_k − data) + λθ = 0: what truncated learning solves, though no objective has it."""
    batch, features = grids(rng)
    model = contrastive(solver=ms.FrankWolfe(tol=1e-9, rounds=300), k=k).fit(batch, features)
    heads = {"score": Head(features)}
    part = ObjectivePart(batch=batch, objective=Contrastive(BetheSteps(k)), heads=heads)
    (value, slope, _), _ = part.evaluate(model.theta, 0.0, None)
    assert np.abs(slope + model.theta).max() < 1e-3
    reached = value + 0.5 * model.theta @ model.theta
    assert -model.certificate.objective == pytest.approx(reached, abs=1e-9)
    assert np.isinf(model.certificate.gap)
    assert "gradient of no objective" in str(model.certificate)


@pytest.mark.parametrize("free_energy", ["bethe", "mean_field"])
def test_learning_does_not_run_away(free_energy):
    train, _, _ = ms.data.grids((30, 0, 0), side=6)
    batch = ms.Batch.of(ms.grid(6, 6), train.y)
    X = [np.stack([np.ones(36), x.ravel()], axis=1) for x in train.X]
    solver = ms.FrankWolfe(tol=1e-3, rounds=60)
    learner = contrastive(regulariser=0.1, k=20, free_energy=free_energy, solver=solver)
    states = rounds(learner, batch, ms.Tied.of(batch, X))
    values = -np.array([state.certificate.objective for state in states])
    assert (values[1:] <= 1.1 * values[:-1] + 1).all()
    assert values[-1] < 0.5 * values[0]
    assert np.abs(states[-1].theta).max() < 10


def test_hidden_labels_end_at_a_stationary_likelihood(rng):
    """On chains many steps are exact: Φᵀ(E[v] − E[v | seen]) + λθ = 0 by enumeration."""
    graph, count = ms.chain(4, 2), 10
    y = [np.where(rng.random(4) < 0.3, -1, rng.integers(0, 2, 4)) for _ in range(count)]
    batch = only_seen(ms.Batch.of(graph, list(map(ms.Partial, y))))
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))
    sharp = ms.FrankWolfe(tol=1e-9, rounds=300)
    model = contrastive(solver=sharp, k=300, epsilon=1e-9).fit(batch, features)
    scores = features.potentials(model.theta)
    moments = np.zeros(batch.size)
    for m, outcome in enumerate(y):
        here = batch.coordinates(m)
        seen = graph.clamp(outcome)
        moments[here] = exact(graph, scores[here]).tau - exact(seen, scores[here]).tau
    np.testing.assert_allclose(features.moments(moments) + model.theta, 0.0, atol=2e-3)
    assert np.abs(model.theta).max() > 0.05


def test_small_batches_and_samples(rng):
    batch, features = grids(rng, side=2)

    def loss(theta):
        scores = features.potentials(theta)
        parts_ = [batch.coordinates(m) for m in range(len(batch))]
        log_z = [exact(batch.structure(m), scores[p]).log_z for m, p in enumerate(parts_)]
        return sum(log_z) - scores @ batch.target

    few = ms.FrankWolfe(tol=0.0, rounds=20)
    for settings in ({"k": 3}, {"free_energy": GibbsSteps(1)}):
        learner = contrastive(solver=few, steps=small_batches(size=4), **settings)
        model = learner.fit(batch, features)
        assert loss(model.theta) < 0.9 * loss(np.zeros(features.d))
        assert (learner.fit(batch, features).theta == model.theta).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"k": 0}, "k is 0"),
        ({"free_energy": "gibs"}, "no free energy 'gibs'"),
        ({"free_energy": "trees"}, "papers/relaxations"),
        ({"free_energy": "mean_field", "epsilon": 0.1}, "no use for epsilon=0.1"),
        ({"rho": 0.5}, "no use for rho=0.5"),
        ({"free_energy": BetheSteps(3), "epsilon": 0.1}, "no use for epsilon"),
        ({"route": "frank_wolfe"}, "direct route only"),
    ],
)
def test_settings_without_a_use_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        contrastive(**settings)
