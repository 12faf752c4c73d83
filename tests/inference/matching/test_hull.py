"""General matchings by messages and by Frank-Wolfe: one optimum, over the hull of matchings."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.features import Dense
from mlestruct.inference import best
from mlestruct.inference.matching import Scaling
from mlestruct.inference.proof import own_proof
from mlestruct.learning.dual import Dual, tangent_gaps
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Counted, resolve
from mlestruct.structures.entropy import Entropy

PROVEN = "convex hull of matchings, odd sets proven"
TRIANGLES = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]  # half of each fits the degrees
GRAPHS = {
    "complete": ms.Matching(8),
    "partial": ms.Matching(7, kind="partial"),
    "triangle": ms.Matching(3, kind="partial"),
    "two triangles": ms.Matching(6, [*TRIANGLES, (0, 3)]),
    "prism": ms.Matching(6, [*TRIANGLES, (0, 3), (1, 4), (2, 5)]),
    "partial prism": ms.Matching(6, [*TRIANGLES, (0, 3), (1, 4)], kind="partial"),
    "clamped": ms.Matching(8, forbidden=[(0, 1)], required=[(2, 3)]),
}


def infer(structure, scores, rho):
    batch = ms.Batch.of(structure, count=1)
    entropy = Entropy.of(batch, rho)
    routine = Scaling.serve(entropy)
    return batch, routine, entropy, routine.many(batch, scores)


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_prices_need_no_oracle_and_agree_with_one(rho, rng):
    """Their gap is valid at any feasible τ, tiny at the solution; it names the polytope."""
    structure = ms.Matching(10)
    scores = 0.5 * rng.standard_normal(structure.size)
    batch, routine, entropy, found = infer(structure, scores, rho)
    oracle = Counted(resolve(None, batch))
    proof = own_proof(batch, entropy, oracle, routine, scores, found)
    assert proof.polytope == PROVEN
    assert oracle.calls == 0
    assert 0 <= (proof.upper - proof.lower)[0] <= 1e-6
    asked = ms.marginals(batch, scores, rho=rho, solver=ms.FrankWolfe(tol=1e-6))
    assert proof.lower[0] == pytest.approx(asked.lower[0], abs=1e-4)
    uniform = found._replace(tau=np.full(structure.size, 1 / 9))
    rough = own_proof(batch, entropy, oracle, routine, scores, uniform)
    assert (rough.upper - rough.lower)[0] >= proof.lower[0] - rough.lower[0] - 1e-9


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.filterwarnings("ignore:marginals:mlestruct.ConvergenceWarning")
def test_marginals_agree_with_frank_wolfe_within_the_certificates(name, rho, rng):
    """Flat and peaked scores; τ is in the hull, and where nothing binds no oracle was needed."""
    structure = GRAPHS[name]
    for scale in (0.1, 3.0, 12.0):
        scores = scale * rng.standard_normal(2 * structure.size)
        batch = ms.Batch.of(structure, count=2)
        fast = ms.marginals(batch, scores, rho=rho)
        slow = ms.marginals(batch, scores, rho=rho, solver=ms.FrankWolfe(tol=1e-4))
        assert (fast.lower <= slow.upper + 1e-9).all()
        assert (slow.lower <= fast.upper + 1e-9).all()
        assert structure.in_hull(fast.tau.reshape(2, -1)).all()
        assert fast.certificate.relative <= 2e-4 or rho == 1.0
        if name == "complete" and scale == 0.1:
            assert fast.certificate.polytope == PROVEN
            assert fast.certificate.gap <= 1e-7


def test_a_point_outside_the_hull_gets_no_certificate():
    """Two half triangles keep every degree, and once read a gap of 1e-10 far from any matching."""
    structure = ms.Matching(6)
    inside = np.array([(u < 3) == (v < 3) for u, v in structure.ends.tolist()])
    scores, outside = 5.0 * inside, np.full(15, 0.5) * inside
    batch = ms.Batch.of(structure, count=1, bias=scores)
    dual = Dual(
        batch, Dense(np.zeros((15, 0)), batch.offsets), Entropy.of(batch), Regulariser.of(0)
    )
    for oracle in (resolve(None, batch), resolve("networkx_matching", batch)):
        with pytest.raises(ValueError, match="example 0: tau keeps the stated constraints but"):
            ms.certificate(dual, oracle, np.zeros(0), outside)
        with pytest.raises(ValueError, match="mixture=True"):
            tangent_gaps(batch, dual.entropy, oracle, scores, outside)
    assert ms.certificate(dual, resolve("linear_program", batch), np.zeros(0), outside).gap >= 0
    assert ms.certificate(dual, resolve(None, batch), np.zeros(0), np.full(15, 0.2)).gap > 1


def learned(structures, scale, lam, rho, route, rng, tol=1e-7):
    """A model of three weights, its outcomes drawn by perturbed scores; and the dual it solves."""
    size = sum(s.size for s in structures)
    X = scale * rng.standard_normal((size, 3))
    scores = X @ np.array([1.0, -0.5, 0.3]) + rng.gumbel(size=size)
    batch = ms.Batch.of(structures, best(ms.Batch.of(structures), scores)[0])
    learner = ms.mle_struct(
        rho, regulariser=lam, route=route, solver=ms.FrankWolfe(tol=tol, rounds=600)
    )
    return learner.fit(batch, ms.Dense.of(batch, X))


MIXED = [GRAPHS["prism"], GRAPHS["complete"], ms.BipartiteMatching(4), GRAPHS["partial"]]
CASES = {
    "complete": ([ms.Matching(6)] * 8, 0.5, 1.0),
    "mixed": (MIXED, 1.0, 0.3),
    "odd sets bind": ([GRAPHS["prism"], GRAPHS["two triangles"]] * 3, 3.0, 0.3),
    "partial": ([GRAPHS["triangle"], GRAPHS["partial"], GRAPHS["partial prism"]], 1.0, 0.5),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_learning_agrees_with_frank_wolfe_within_the_certificates(name, rho):
    """Both routes end at one optimum, and the model says how it got there."""
    fast, slow = (
        learned(*CASES[name], rho, route, np.random.default_rng(3), tol)
        for route, tol in (("auto", 1e-7), ("frank_wolfe", 1e-3))
    )
    assert fast.route.startswith("direct")
    assert slow.route == "frank_wolfe"
    assert fast.certificate.relative <= 1e-4
    low, high = (m.certificate.objective - m.certificate.gap for m in (fast, slow))
    assert low <= slow.certificate.objective + 1e-9
    assert high <= fast.certificate.objective + 1e-9
    if name == "complete":
        assert fast.route == "direct"
        assert fast.certificate.polytope == PROVEN
    if name == "odd sets bind" and rho == 0.5:  # at ρ = 1 all examples end at vertices
        assert fast.route == "direct"
        assert fast.certificate.polytope == PROVEN
        assert fast.certificate.relative <= 1e-7
