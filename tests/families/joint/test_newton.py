"""Newton's end is certified by the oracle, never infeasible, never above its start."""

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.dual import Dual, certificate
from mlestruct.entropy import Entropy
from mlestruct.families.joint.newton import polish, response
from mlestruct.features import Dense, NoFeatures
from mlestruct.inference.exact import exact
from mlestruct.oracle import resolve
from mlestruct.regulariser import Regulariser
from mlestruct.structures import BipartiteMatching, chain, grid


def inference(structure, score, rho):
    batch = Batch.of(structure, bias=score)
    return Dual(batch, NoFeatures(batch.size, 1), Entropy.of(batch, rho), Regulariser.of(0))


CASES = [
    (chain(4, 3), 1.0, None),
    (grid(2, 3), 0.5, "linear_program"),
    (BipartiteMatching(4), 0.5, None),
    (BipartiteMatching(3, 4, "one_sided"), 0.5, None),
    (BipartiteMatching(3, 4, "partial"), 0.75, None),
]


@pytest.mark.parametrize(("structure", "rho", "oracle"), CASES)
def test_the_gap_falls_to_rounding(structure, rho, oracle, rng):
    dual = inference(structure, rng.normal(size=structure.size), rho)
    asked = resolve(oracle, dual.batch)
    tau = polish(dual, structure.interior())
    assert structure.contains(tau)
    assert abs(certificate(dual, asked, np.zeros(0), tau).gap) < 1e-12


def test_a_chain_is_exact(rng):
    structure = chain(5, 3)
    score = 3 * rng.normal(size=structure.size)
    dual = inference(structure, score, 1.0)
    found = exact(structure, score)
    tau = polish(dual, structure.interior())
    np.testing.assert_allclose(tau, found.tau, atol=1e-10)
    assert -dual.value(tau) == pytest.approx(found.log_z, abs=1e-11)


def test_learning(rng):
    batch = Batch.of(BipartiteMatching(4), [rng.permutation(4) for _ in range(6)])
    features = Dense.of(batch, rng.normal(size=(batch.size, 3)))
    dual = Dual(batch, features, Entropy.of(batch, 0.5), Regulariser.of(3, 0.3))
    start = np.full(batch.size, 0.25)
    tau = polish(dual, start)
    assert dual.value(tau) < dual.value(start)
    gap = certificate(dual, resolve(None, batch), dual.theta(tau), tau).gap
    assert abs(gap) < 1e-11


def test_an_optimum_on_an_unguarded_inequality_is_left_alone(rng):
    """At ρ = 0 nothing keeps Σ τ ≤ 1: the answer stays feasible, whatever Newton would like."""
    structure = BipartiteMatching(3, 3, "partial")
    dual = inference(structure, 5 + rng.normal(size=9), 0.0)
    tau = polish(dual, structure.interior())
    assert structure.contains(tau)


def test_response_is_the_derivative_of_the_marginals(rng):
    structure = grid(2, 2)
    score, direction = rng.normal(size=(2, structure.size))
    h = 1e-5

    def marginals(shift):
        dual = inference(structure, score + shift * direction, 0.5)
        return dual, polish(dual, structure.interior())

    dual, tau = marginals(0.0)
    slope = (marginals(h)[1] - marginals(-h)[1]) / (2 * h)
    other = rng.normal(size=structure.size)
    found = response(dual, tau, np.stack([other, direction]))
    assert found[0, 1] == pytest.approx(other @ slope, abs=1e-7)
