"""A held θ changes how the optimum is reached, not which it is."""

import numpy as np
import pytest

from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import resolve
from tests.frank_wolfe.test_core import REGULARISERS, learning


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
