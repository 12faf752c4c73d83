"""A held θ changes how the optimum is reached, not which it is."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.frank_wolfe.centre import Centre
from mlestruct.oracle import resolve
from tests.frank_wolfe.test_core import REGULARISERS, D, learning


@pytest.mark.parametrize("regulariser", [*REGULARISERS, {"lam": [0.1, 1.0, 3.0, 0.5], "l1": 0.2}])
def test_the_moved_regulariser_is_that_with_the_distance_added(regulariser):
    """Its weights minimise R(θ) + ½ Σ κ (θ − c)² − ⟨r, θ⟩, within the same bounds."""
    own, rng = learning(**regulariser).regulariser, np.random.default_rng(0)
    centre = Centre(rng.standard_normal(D), 3.0 * rng.random(D), 0.7)
    r = 2.0 * rng.standard_normal(D)
    found = centre.moved(own).weights(r)
    kappa = centre.scale * centre.curvature
    for j in range(D):

        def value(x, j=j):
            penalty = own.lam[j] / 2 * (x - own.prior[j]) ** 2 + own.l1[j] * abs(x)
            return penalty + kappa[j] / 2 * (x - centre.at[j]) ** 2 - r[j] * x

        ends = max(own.lower[j], -20.0), min(own.upper[j], 20.0)
        best = minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 1e-10})
        assert value(found[j]) <= best.fun + 1e-12
        assert own.lower[j] <= found[j] <= own.upper[j]


@pytest.mark.parametrize("step", ["pairwise", "block"])
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_with_and_without_a_centre_the_optimum_is_one(step, regulariser, temperature):
    dual = learning(5, temperature=temperature, **regulariser)
    oracle = resolve(None, dual.batch)
    rounds, tol = (400, 1e-5) if step == "pairwise" else (1500, 1e-3)
    held, free = (
        FrankWolfe(tol=tol, rounds=rounds, step=step, centre=centre).solve(dual, oracle)
        for centre in (True, False)
    )
    apart = held.certificate.objective - free.certificate.objective
    assert -free.gap <= apart <= held.gap
    strong = dual.regulariser.lam.min()  # the primal is strongly convex: gap ≥ λ/2 ‖θ − θ*‖²
    reach = np.sqrt(2 * held.gap / strong) + np.sqrt(2 * free.gap / strong)
    assert np.linalg.norm(held.theta - free.theta) <= reach + 1e-9
