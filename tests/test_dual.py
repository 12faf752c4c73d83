"""The certificate bounds the true error, or says why there is none."""

import numpy as np
import pytest

from mlestruct.features import Dense
from mlestruct.inference import marginals
from mlestruct.learners import mle_struct
from mlestruct.learning.dual import Dual, certificate, interior, tangent_gaps
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Answer, Solver, Validated, resolve
from mlestruct.structures import BipartiteMatching, Custom, Paths, chain
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.testing import vertices
from tests.listing import BruteForce

DEAD_ENDS = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (5, 3)]  # 4 leads nowhere, 5 is never reached


def inference_dual(structure, score, rho=None):
    batch = Batch.of(structure, count=len(score) // structure.size, bias=score)
    return Dual(
        batch,
        Dense(np.zeros((batch.size, 0)), batch.offsets),
        Entropy.of(batch, rho),
        Regulariser.of(0),
    )


def log_z(structure, score):
    energy = vertices(structure) @ score
    return energy.max() + np.log(np.exp(energy - energy.max()).sum())


def test_a_point_that_breaks_an_inequality_row_gets_no_certificate():
    structure = Custom(4, A=[[1, 1, 1, 1]], upper=[2])
    listed = vertices(structure)
    score = np.array([1.0, 0.8, 0.5, 0.2])
    dual = inference_dual(structure, score)
    oracle = Validated(BruteForce(lambda _: listed))
    loose = Custom(4)
    unaware = inference_dual(loose, score)
    outside = marginals(unaware.batch, score, BruteForce(vertices)).tau
    assert outside.sum() > 2.1
    with pytest.raises(ValueError, match="example 0: tau is not feasible"):
        certificate(dual, oracle, np.zeros(0), outside)
    with pytest.raises(ValueError, match="example 0: tau is not feasible"):
        tangent_gaps(dual.batch, dual.entropy, oracle, score, outside)
    result = marginals(dual.batch, score, oracle)
    assert result.tau.sum() <= 2 + 1e-9
    assert result.upper[0] >= log_z(structure, score)  # Shearer


@pytest.mark.parametrize(
    ("structure", "dead"),
    [
        (BipartiteMatching(3, forbidden=[(0, 1), (0, 2)]), [1, 2, 3, 6]),
        (Paths(DEAD_ENDS, 0, 3), [4, 5]),
        (Custom(5, exactly_one=[[0, 1, 2, 3], [0, 1]]), [2, 3]),
    ],
)
def test_a_coordinate_no_answer_uses_is_fixed_and_reported(structure, dead):
    """Pairs in no perfect matching and dead arcs stay at 0; the certificate stays right."""
    batch = Batch.of(structure)
    oracle = Validated(resolve(structure.default_oracle or BruteForce(vertices), batch))
    entropy = Entropy.of(batch)
    inner = interior(batch, oracle, entropy)
    assert inner.withheld is None
    assert 0 < inner.unused <= len(dead)
    assert (inner.tau[dead] == 0).all()
    live = vertices(structure).max(axis=0) > 0
    assert (inner.tau[live] > 0).all()
    score = np.random.default_rng(0).standard_normal(structure.size)
    score[dead] = 50.0
    result = marginals(batch, score, oracle, solver=FrankWolfe(tol=1e-7))
    assert (result.tau[dead] == 0).all()
    assert result.upper[0] - result.lower[0] <= 1e-5
    assert result.upper[0] >= log_z(structure, score) - 1e-9
    if result.bound.kind == "exact":
        assert result.lower[0] <= log_z(structure, score) + 1e-9


def test_a_dead_coordinate_harms_no_learning():
    paths = Paths(DEAD_ENDS, 0, 3)
    batch = Batch.of(paths, [[0, 2], [1, 3], [0, 2]])
    rows = np.random.default_rng(1).standard_normal((batch.size, 3))
    wild = rows.copy().reshape(3, 6, 3)
    wild[:, 4:] = 1e3
    models = [
        mle_struct(regulariser=1.0, solver=FrankWolfe(tol=1e-9), route="frank_wolfe").fit(
            batch, Dense.of(batch, matrix)
        )
        for matrix in (rows, wild.reshape(-1, 3))
    ]
    np.testing.assert_allclose(models[0].theta, models[1].theta, atol=1e-4)
    assert max(model.certificate.relative for model in models) <= 1e-9


def heuristic(bound):
    """Only ever three of the six matchings, which leave pairs 2, 3 and 7 unused."""
    listed = vertices(BipartiteMatching(3))
    known = listed[(listed[:, [2, 3, 7]] == 0).all(axis=1)]
    full = listed

    def solve(score):
        flat = score.ravel()
        chosen = known[(known @ flat).argmax()]
        return Answer(chosen.reshape(3, 3), float((full @ flat).max()) + bound)

    return Solver(solve, polytope="convex hull")


def test_a_heuristic_that_never_uses_a_coordinate_gets_no_certificate():
    """Its bounds are valid and its answers miss pairs: what it never saw may be possible.

    From a known interior point its gap is honest; without one there is no gap at all.
    """
    batch = Batch.of(BipartiteMatching(3), [[0, 1, 2], [1, 0, 2]])
    features = Dense.of(batch, np.random.default_rng(2).standard_normal((18, 2)))
    solver = FrankWolfe(rounds=60, tol=1e-9)
    exact = mle_struct(solver=solver).fit(batch, features).certificate
    model = mle_struct(oracle=heuristic(0.0), solver=solver).fit(batch, features).certificate
    assert model.gap >= model.objective - exact.objective
    assert model.slack > 0
    forbidden = BipartiteMatching(3, forbidden=[(0, 0), (1, 1), (2, 2)])
    batch = Batch.of(forbidden)
    listed = vertices(forbidden)
    stuck = Solver(lambda s: Answer(listed[0].reshape(3, 3), float(np.abs(s).sum())))
    inner = interior(batch, stuck, Entropy.of(batch))
    assert "never used the parts" in inner.withheld
    result = marginals(batch, np.zeros(9), stuck, solver=FrankWolfe(rounds=5))
    assert np.isinf(result.upper).all()
    assert np.isinf(result.certificate.gap)
    assert "no certificate" in str(result.certificate)


@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_an_oracles_own_bound_widens_the_certificate_by_its_slack(slack):
    structure = BipartiteMatching(3)
    listed = vertices(structure)

    def solve(score):
        energy = listed @ score.ravel()
        return Answer(listed[energy.argmax()].reshape(3, 3), float(energy.max()) + slack)

    batch = Batch.of(structure, [[0, 1, 2], [1, 0, 2]], weight=[1.0, 3.0])
    features = Dense.of(batch, np.random.default_rng(3).standard_normal((18, 2)))
    dual = mle_struct(regulariser=1.0).dual(batch, features)
    theta, tau = np.array([0.3, -0.2]), np.full(18, 1 / 3)
    sharp = certificate(dual, resolve(None, batch), theta, tau)
    wide = certificate(dual, Validated(Solver(solve)), theta, tau)
    assert wide.gap - sharp.gap == pytest.approx(4 * slack)
    assert wide.slack == pytest.approx(4 * slack)


def test_an_optimum_on_a_vertex_is_certified():
    """T > 0 with huge scores: the optimum rounds to a vertex, and the interval closes on it."""
    structure = chain(4, 3)
    rng = np.random.default_rng(4)
    score = 1e6 * rng.standard_normal(structure.size)
    dual = inference_dual(structure, score)
    oracle = Validated(resolve(None, dual.batch))
    vertex, upper = oracle.many(dual.batch, score)
    proof = certificate(dual, oracle, np.zeros(0), vertex)
    assert proof.objective + proof.gap >= -upper[0] - 1e-6
    assert proof.gap <= 1e-8 * upper[0]


def test_the_dual_counts_examples_weights_bias_and_constant():
    """value = R*(Σ w (φ − Φᵀτ)) − Σ w (H + ⟨bias, τ⟩), by hand."""
    rng = np.random.default_rng(5)
    batch = Batch.of(chain(2, 2), [[0, 1], [1, 1]], weight=[2.0, 0.5], bias=rng.random(16))
    matrix = rng.standard_normal((16, 3))
    dual = Dual(batch, Dense.of(batch, matrix), Entropy.of(batch), Regulariser.of(3, 2.0))
    tau = np.concatenate([s.interior() for s in (chain(2, 2),) * 2])
    weight = np.repeat([2.0, 0.5], 8)
    r = (weight * (batch.target - tau)) @ matrix
    entropy = np.array([2.0, 0.5]).sum() * 2 * np.log(2)
    expected = r @ r / 4 - entropy - (weight * batch.bias) @ tau
    assert dual.value(tau) == pytest.approx(expected)
    np.testing.assert_allclose(dual.theta(tau), r / 2)
