"""The structured SVM is the same dual at temperature zero, exact to the last digits."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from mlestruct.features import Dense
from mlestruct.learners import ssvm
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.structures import BipartiteMatching, Paths, chain
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

D, LAM = 4, 0.3
PATHS = Paths([(0, 1), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 0, 3)
PROBLEMS = {
    "chains": ([chain(3, 2), chain(2, 3), chain(3, 2)], [[0, 1, 1], [2, 0], [1, 1, 0]]),
    "matchings": ([BipartiteMatching(3)] * 3, [[0, 1, 2], [2, 0, 1], [1, 0, 2]]),
    "partial": (
        [BipartiteMatching(2, 3, "partial"), BipartiteMatching(3, kind="partial")],
        [[2, -1], [0, -1, 1]],
    ),
    "paths": ([PATHS] * 2, [[0, 4], [1, 3, 5]]),
}


def problem(name, seed=0, **settings):
    batch = Batch.of(*PROBLEMS[name], **settings)
    matrix = np.random.default_rng(seed).standard_normal((batch.size, D))
    return batch, Dense.of(batch, matrix)


def pieces(batch, features):
    """Per example: loss of every outcome, and its features minus the observed ones."""
    for m in range(len(batch)):
        part, structure = batch.coordinates(m), batch.structure(m)
        listed, target = vertices(structure), batch.target[part]
        linear, constant = structure.loss(target)
        against = listed - target
        margin = listed @ linear + constant + against @ batch.bias[part]
        yield batch.weight[m], margin, against @ features.matrix[part]


def quadratic_program(batch, features):
    """min λ/2‖θ‖² + Σ w ξ with ξ ≥ loss + ⟨θ, φ(y) − φ_m⟩ for every y, by SLSQP."""
    parts = list(pieces(batch, features))
    count = len(parts)

    def loss(x):
        return LAM / 2 * x[:D] @ x[:D] + sum(w * x[D + m] for m, (w, _, _) in enumerate(parts))

    rules = [
        {"type": "ineq", "fun": lambda x, m=m, a=a, b=b: x[D + m] - a - b @ x[:D]}
        for m, (_, a, b) in enumerate(parts)
    ]
    start = np.concatenate([np.zeros(D), [a.max() for _, a, _ in parts]])
    options = {"ftol": 1e-14, "maxiter": 500}
    found = minimize(loss, start, method="SLSQP", constraints=rules, options=options)
    assert count == len(batch)
    return found.x[:D], found.fun


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_margin_problem_is_solved_exactly(name):
    structures = PROBLEMS[name][0]
    bias = np.random.default_rng(1).standard_normal(sum(s.size for s in structures))
    batch, features = problem(name, weight=np.linspace(0.5, 2, len(structures)), bias=bias)
    solver = FrankWolfe(tol=1e-9, rounds=2000)
    model = ssvm(regulariser=LAM, solver=solver).fit(batch, features)
    theta, value = quadratic_program(batch, features)
    assert -model.certificate.objective == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(model.theta, theta, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_it_reaches_a_tiny_gap_and_does_not_freeze(seed):
    """A step that must end exactly at its vertex does: no weight of 5e-324 stays behind."""
    rng = np.random.default_rng(seed)
    batch = Batch.of(BipartiteMatching(5), [rng.permutation(5) for _ in range(8)])
    features = Dense.of(batch, rng.standard_normal((batch.size, 6)))
    solver = FrankWolfe(tol=1e-9, rounds=400)
    model = ssvm(regulariser=1.0, solver=solver).fit(batch, features)
    assert model.certificate.relative <= 1e-9
    assert len(model.history) < 400


def test_temperature_softens_the_maximum():
    """T·log Σ exp(·/T) in place of max: its optimum by BFGS, and the limit T → 0 from above."""
    batch, features = problem("chains")
    parts = list(pieces(batch, features))
    values = []
    for temperature in (1.0, 0.1, 0.01):

        def loss(theta, temperature=temperature):
            soft = [w * temperature * logsumexp((a + b @ theta) / temperature) for w, a, b in parts]
            return LAM / 2 * theta @ theta + sum(soft)

        found = minimize(loss, np.zeros(D), method="BFGS", options={"gtol": 1e-8})
        solver = FrankWolfe(tol=1e-7, rounds=1500)
        model = ssvm(temperature=temperature, regulariser=LAM, solver=solver).fit(batch, features)
        assert -model.certificate.objective == pytest.approx(found.fun, abs=1e-5)
        np.testing.assert_allclose(model.theta, found.x, atol=5e-3)
        values.append(-model.certificate.objective)
    hard = ssvm(regulariser=LAM, solver=FrankWolfe(tol=1e-9, rounds=2000)).fit(batch, features)
    assert values[0] > values[1] > values[2] > -hard.certificate.objective - 1e-9


def test_a_loss_of_ones_own():
    """Twice the loss with half of λ's scale: θ doubles."""
    batch, features = problem("chains")

    def double(structure, vertex):
        linear, constant = structure.loss(vertex)
        return 2 * linear, 2 * constant

    solver = FrankWolfe(tol=1e-9, rounds=2000)
    once = ssvm(regulariser=LAM, solver=solver).fit(batch, features)
    twice = ssvm(double, regulariser=LAM / 2, solver=solver).fit(batch, features)
    np.testing.assert_allclose(twice.theta, 2 * once.theta, atol=1e-3)
    doubled = -2 * once.certificate.objective
    assert -twice.certificate.objective == pytest.approx(doubled, abs=1e-6)


def test_bounds_hold_at_temperature_zero():
    batch, features = problem("matchings")
    regulariser = Regulariser.of(D, LAM, lower=0.0, upper=0.4)
    model = ssvm(regulariser=regulariser, solver=FrankWolfe(tol=1e-6, rounds=800)).fit(
        batch, features
    )
    assert ((model.theta >= 0) & (model.theta <= 0.4)).all()
    assert model.certificate.relative <= 1e-6


def test_a_bound_that_never_binds_changes_no_optimum():
    """It takes general steps where settled blocks would serve."""
    batch, features = problem("chains")
    solver = FrankWolfe(tol=1e-7, rounds=400)
    one = ssvm(regulariser=LAM, solver=solver).fit(batch, features)
    two = ssvm(regulariser=Regulariser.of(D, LAM, upper=1e6), solver=solver).fit(batch, features)
    assert max(one.certificate.relative, two.certificate.relative) <= 1e-7
    gaps = np.array([one.certificate.gap, two.certificate.gap])
    assert abs(one.certificate.objective - two.certificate.objective) <= gaps.sum()
    away = np.sqrt(2 * gaps / LAM).sum()  # from the optimum, one and the other
    np.testing.assert_allclose(one.theta, two.theta, atol=away + 1e-6)
