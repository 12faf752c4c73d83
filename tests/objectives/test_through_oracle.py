"""Derivatives through Frank-Wolfe's vertices: those of the constraints, and of solving again."""

import numpy as np
import pytest
from scipy.linalg import null_space

import mlestruct as ms
from mlestruct.objectives.through_oracle import ThroughOracle, squared

TIGHT = ms.FrankWolfe(tol=1e-12, rounds=400)


def test_derivatives_are_those_of_the_null_space(rng):
    """Perfect matchings of K(3,3) at ρ = ½: −∇²H = diag(1/τ) where rows and columns add up."""
    structure = ms.BipartiteMatching(3)
    batch = ms.Batch.of(structure, [[1, 0, 2], [0, 1, 2]], weight=[1.0, 2.0])
    score = rng.standard_normal(batch.size)
    found = ThroughOracle(rho=0.5, solver=TIGHT)(batch, {"score": score}, None, 0.0)
    N = null_space(structure.constraints().A.toarray())
    for m in range(2):
        here = batch.coordinates(m)
        tau, slope = found.tau[here], squared(found.tau[here], batch.target[here])[1]
        expected = N @ np.linalg.solve(N.T @ np.diag(1 / tau) @ N, N.T @ slope)
        np.testing.assert_allclose(
            found.gradient["score"][here], batch.weight[m] * expected, atol=1e-5
        )


def test_a_plain_function_is_enough(rng):
    """Only a solver for 'the best two of five' is known; gradients are those of solving again."""

    def two_best(score):
        out = np.zeros(5)
        out[np.argsort(score)[-2:]] = 1.0
        return out

    batch = ms.Batch.of(ms.Custom(5), [[1, 1, 0, 0, 0]])
    objective = ThroughOracle(two_best, solver=TIGHT)
    score = rng.standard_normal(5)
    found = objective(batch, {"score": score}, None, 0.0)
    assert found.tau.sum() == pytest.approx(2.0)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-3
        up, down = (
            objective(batch, {"score": score + sign * step}, None, 0.0).value for sign in (1, -1)
        )
        assert found.gradient["score"][k] == pytest.approx((up - down) / 2e-3, abs=1e-3)
