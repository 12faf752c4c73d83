"""MLE-Struct on a chain is maximum likelihood: an independent solver finds the same weights."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from mlestruct.features import Dense
from mlestruct.learners import mle_struct, ssvm
from mlestruct.learning.dual import certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Validated, resolve
from mlestruct.structures import BipartiteMatching, chain
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

D = 5
SHARP = FrankWolfe(tol=1e-8, rounds=600)
STRUCTURES = [chain(3, 2), chain(2, 3), chain(3, 2)]
LABELS = [[0, 1, 1], [2, 0], [1, 1, 0]]


def problem(seed=0, **settings):
    batch = Batch.of(STRUCTURES, LABELS, **settings)
    matrix = np.random.default_rng(seed).standard_normal((batch.size, D))
    return batch, Dense.of(batch, matrix)


def exact(batch, features, theta):
    """Σ w_m [⟨score, v_m⟩ − log Z] and its gradient, by enumeration."""
    scores = features.potentials(theta) + batch.bias
    expected = np.empty(batch.size)
    value = 0.0
    for m in range(len(batch)):
        part, listed = batch.coordinates(m), vertices(batch.structure(m))
        energy = listed @ scores[part]
        log_z = logsumexp(energy)
        expected[part] = np.exp(energy - log_z) @ listed
        value += batch.weight[m] * (scores[part] @ batch.target[part] - log_z)
    weight = batch.weight[batch.owner]
    return value, features.moments(weight * (batch.target - expected))


def independent(batch, features, regulariser):
    """θ = p − q with p, q ≥ 0 inside the bounds, by L-BFGS-B on the enumerated likelihood."""
    lower, upper = regulariser.lower, regulariser.upper
    bounds = [
        *zip(np.maximum(lower, 0), np.maximum(upper, 0), strict=True),
        *zip(np.maximum(-upper, 0), np.maximum(-lower, 0), strict=True),
    ]

    def loss(x):
        theta = x[:D] - x[D:]
        value, slope = exact(batch, features, theta)
        away = theta - regulariser.prior
        smooth = regulariser.lam * away - slope
        total = regulariser.lam / 2 @ away**2 + regulariser.l1 @ (x[:D] + x[D:]) - value
        return total, np.concatenate([smooth + regulariser.l1, regulariser.l1 - smooth])

    start = np.clip(np.zeros(2 * D), [low for low, _ in bounds], [high for _, high in bounds])
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 50000}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x[:D] - found.x[D:], -found.fun


REGULARISERS = {
    "ridge": {"lam": 0.5},
    "prior": {"lam": 1.0, "prior": [1.0, -1.0, 0.5, 0.0, 2.0]},
    "bounds": {"lam": 0.3, "lower": [-0.2, 0, -np.inf, 0.1, 0], "upper": [0.1, 0.2, 0, 0.4, 0.05]},
    "fixed": {"lam": 0.5, "fixed": {0: 0.7, 3: -0.4}},
    "elastic net": {"lam": 0.5, "l1": 0.6},
    "lasso on some": {"lam": 0.2, "l1": [2.0, 0.0, 1.0, 0.3, 0.0]},
    "per group": {"lam": np.repeat([0.2, 5.0], [2, 3])},
    "all": {"lam": 0.4, "prior": 0.3, "l1": 0.2, "lower": -0.5, "upper": 0.4, "fixed": {1: 0.2}},
}


@pytest.mark.parametrize("route", ["direct", "frank_wolfe"])
@pytest.mark.parametrize("name", REGULARISERS)
def test_every_regulariser_agrees_with_an_independent_solver(name, route):
    """θ within √(2·gap/λ), the objective within the gap; a small example weight and bias too."""
    rng = np.random.default_rng(1)
    size = sum(s.size for s in STRUCTURES)
    batch, features = problem(weight=[1.0, 2.5, 0.5], bias=rng.standard_normal(size))
    regulariser = Regulariser.of(D, **REGULARISERS[name])
    learner = mle_struct(regulariser=regulariser, solver=SHARP, route=route)
    model = learner.fit(batch, features)
    assert model.route == route
    theta, value = independent(batch, features, regulariser)
    gap = model.certificate.gap
    assert gap < 1e-5
    assert -1e-8 <= model.certificate.objective - value <= gap + 1e-8
    assert regulariser.lam / 2 @ (model.theta - theta) ** 2 <= gap + 1e-8


def test_a_certificate_bounds_any_pair():
    """gap(θ, τ) ≥ dual(τ) − likelihood(θ) for every θ and every feasible τ, near or far."""
    batch, features = problem(weight=[1.0, 2.0, 0.7])
    rng = np.random.default_rng(2)
    for settings in REGULARISERS.values():
        regulariser = Regulariser.of(D, **settings)
        learner = mle_struct(regulariser=regulariser)
        dual, oracle = learner.dual(batch, features), Validated(resolve(None, batch))
        for scale in (0.1, 1.0, 20.0):
            tau = np.empty(batch.size)
            for m in range(len(batch)):
                listed = vertices(batch.structure(m))
                tau[batch.coordinates(m)] = rng.dirichlet(np.full(len(listed), 0.3)) @ listed
            theta = regulariser.weights(scale * rng.standard_normal(D))
            value = exact(batch, features, theta)[0] - regulariser.value(theta)
            proof = certificate(dual, oracle, theta, tau)
            assert proof.gap >= proof.objective - value - 1e-9
            assert proof.objective == pytest.approx(dual.value(tau), abs=1e-6)
    outside = Regulariser.of(D, upper=0.0)
    dual = mle_struct(regulariser=outside).dual(batch, features)
    assert certificate(dual, oracle, np.ones(D), tau).gap == np.inf


@pytest.mark.parametrize("step", ["pairwise", "block"])
@pytest.mark.parametrize("learner", [mle_struct, ssvm])
def test_the_objective_never_rises_whoever_answers(step, learner):
    """Stale answers, sequential exact steps: monotone, and the same bits for 1, 2 and 3 workers."""
    rng = np.random.default_rng(3)
    batch = Batch.of(BipartiteMatching(4), [rng.permutation(4) for _ in range(11)])
    features = Dense.of(batch, 2 * rng.standard_normal((batch.size, 6)))
    runs = []
    for workers in (1, 2, 3):
        solver = FrankWolfe(tol=1e-9, rounds=40, step=step, workers=workers, shards=4)
        model = learner(regulariser=0.1, solver=solver, route="frank_wolfe").fit(batch, features)
        values = np.array([objective for _, _, objective, _ in model.history])
        assert (np.diff(values) <= 1e-9 * (1 + np.abs(values[1:]))).all()
        runs.append((model.theta, values))
    for theta, values in runs[1:]:
        np.testing.assert_array_equal(theta, runs[0][0])
        np.testing.assert_array_equal(values, runs[0][1])


def test_surrogates_lie_on_either_side_of_the_likelihood():
    """ℓ_½(θ_½) ≤ ℓ(θ_MLE) ≤ ℓ_Bethe(θ_Bethe) on bipartite perfect matchings, certified."""
    rng = np.random.default_rng(7)
    batch = Batch.of(BipartiteMatching(3), [rng.permutation(3) for _ in range(4)])
    features = Dense.of(batch, rng.standard_normal((batch.size, D)))
    regulariser = Regulariser.of(D, 0.5)
    _, middle = independent(batch, features, regulariser)
    proofs = {
        rho: mle_struct(rho, regulariser=regulariser, solver=SHARP).fit(batch, features).certificate
        for rho in (0.5, 2 / 3, 1.0)
    }
    assert proofs[0.5].objective <= middle + proofs[0.5].gap
    assert proofs[0.5].objective <= proofs[2 / 3].objective + proofs[0.5].gap
    assert proofs[2 / 3].objective <= middle + proofs[2 / 3].gap
    assert proofs[1.0].objective - proofs[1.0].gap >= middle - proofs[1.0].gap - 1e-9
    assert "upper" in proofs[0.5].bound
    assert "lower" in proofs[1.0].bound
