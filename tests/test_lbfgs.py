"""L-BFGS with kinks ends where no feasible step goes down."""

from __future__ import annotations

import copy
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from mlestruct.learning.minimise import LBFGS
from mlestruct.learning.regulariser import Regulariser
from tests.reference.descents import minimise


def quadratic(rng, d=30):
    A, b = rng.standard_normal((40, d)), 3 * rng.standard_normal(40)
    return lambda t: (0.5 * ((A @ t - b) ** 2).sum() + 0.5 * t @ t, A.T @ (A @ t - b) + t)


def kinked(d, l1, lower, upper):
    """l1 and bounds, with hardly a ridge."""
    return Regulariser.of(d, 1e-100, l1=l1, lower=lower, upper=upper)


@pytest.mark.parametrize(
    ("l1", "lower", "upper"), [(0.0, -0.2, 0.1), (8.0, -np.inf, np.inf), (8.0, -0.15, 0.3)]
)
def test_kinks_agree_with_split_variables(rng, l1, lower, upper):
    """θ = θ⁺ − θ⁻ with both bounded, by an independent solver."""
    smooth, d = quadratic(rng), 30
    steps = minimise(smooth, np.zeros(d), ridge=kinked(d, l1, lower, upper))
    *_, (theta, value, *_) = islice(steps, 300)

    def split(z):
        inner, slope = smooth(z[:d] - z[d:])
        return inner + l1 * z.sum(), np.concatenate([slope + l1, l1 - slope])

    bounds = [(0, upper)] * d + [(0, -lower)] * d
    options = {"ftol": 1e-15, "gtol": 1e-10}
    found = scipy_minimize(
        split, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    assert value == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(theta, found.x[:d] - found.x[d:], atol=1e-5)


def test_products_of_rows_are_the_two_loop_recursion(rng):
    """The direction equals the textbook recursion's, before and after the memory wraps around."""
    d, memory = 8, 3
    H = np.diag(rng.uniform(0.5, 3.0, d))
    descent, kept = (
        LBFGS(lambda z: (0.5 * z @ H @ z, H @ z), rng.standard_normal(d), memory=memory),
        [],
    )
    descent.step()
    for _ in range(7):
        before = descent.theta
        descent.step()
        kept = [*kept, (descent.theta - before, H @ descent.theta - H @ before)][-memory:]
        g = rng.standard_normal(d)
        q, alphas = g.copy(), []
        for s, y in reversed(kept):
            alphas.append(s @ q / (s @ y))
            q -= alphas[-1] * y
        q *= kept[-1][0] @ kept[-1][1] / (kept[-1][1] @ kept[-1][1])
        for (s, y), alpha in zip(kept, reversed(alphas), strict=True):
            q += (alpha - y @ q / (s @ y)) * s
        np.testing.assert_allclose(descent.direction(g), -q, atol=1e-12)


@pytest.mark.parametrize(
    ("kinks", "metric"),
    [(None, None), (None, np.eye(30)), ((0.0, -0.2, 0.1), None), ((8.0, -0.15, 0.3), np.ones(30))],
)
def test_a_descent_goes_on_from_where_another_stands(rng, kinks, metric):
    """The same bits to the end, from every step, whatever became of the one that stood there."""
    smooth, d = quadratic(rng), 30
    ridge = None if kinks is None else kinked(d, *kinks)
    whole, stands = [], []
    for step in islice(minimise(smooth, np.zeros(d), 4, ridge, metric), 25):
        whole.append(bits(step))
        stands.append(copy.deepcopy(step.state))
    assert len(whole) > 8
    for taken, stand in enumerate(stands[:-1], start=1):
        rest = minimise(smooth, np.zeros(d), 4, ridge, metric, stand)
        assert [bits(step) for step in islice(rest, 25 - taken)] == whole[taken:]


def bits(step):
    return step.theta.tobytes(), step.value, step.gradient.tobytes(), step.moved
