"""Messages prove a fit without an oracle where they converged; where not, their gap says so."""

import pytest

import mlestruct as ms
from mlestruct.inference.proof import own_proof
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learning.dual import certificate
from mlestruct.oracle import Counted, resolve
from mlestruct.structures import grid


@pytest.fixture
def problem(rng):
    graph = grid(3, 3, 3)
    batch = ms.Batch.of([graph] * 4, [rng.integers(0, 3, 9) for _ in range(4)])
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 5)))


def test_a_converged_fit_asks_no_oracle(problem):
    batch, features = problem
    oracle = Counted(resolve(None, batch))
    learner = ms.mle_struct(oracle=oracle, route="direct", solver=ms.FrankWolfe(tol=1e-7))
    model = learner.fit(batch, features)
    assert oracle.calls == 0
    proof = model.certificate
    assert 0 <= proof.relative <= 1e-7
    assert proof.polytope == "local polytope"


@pytest.mark.parametrize("sweeps", [1, 3, 1000])
def test_its_gap_covers_the_error_of_any_messages(problem, rng, sweeps):
    """The error is measured by the optimum that other, converged inference found."""
    batch, features = problem
    dual = ms.mle_struct(regulariser=0.5).dual(batch, features)
    best = ms.mle_struct(regulariser=0.5, solver=ms.FrankWolfe(tol=1e-10)).fit(batch, features)
    messages = SumProduct.of(dual.entropy, takeover=False, sweeps=sweeps)
    theta = best.theta + 0.3 * rng.standard_normal(5)
    found = messages.many(batch, dual.scores(theta))
    scores = dual.scores(theta)
    proof = own_proof(batch, dual.entropy, resolve(None, batch), messages, scores, found)
    gap = (proof.upper - proof.lower).sum() + dual.regulariser.bracket(
        theta, dual.residual(found.tau)
    )
    error = dual.value(found.tau) - best.certificate.objective
    assert gap >= error - 1e-9
    if sweeps == 1000:  # then both proofs see the same converged point
        asked = certificate(dual, resolve(None, batch), theta, found.tau)
        assert gap == pytest.approx(asked.gap, abs=1e-6)
