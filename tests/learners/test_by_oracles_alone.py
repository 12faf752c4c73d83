"""With nothing but MAP answers: the search for ρ, and sums that a structure declares."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.routine import routine
from mlestruct.learning.dual import certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import Validated, resolve

TOL = 1e-2
STRUCTURES = {
    "chain": ms.chain(4, 3),
    "grid": ms.grid(2, 3),
    "paths": ms.Paths([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2), (3, 4), (2, 4)], 0, 4),
    "perfect": ms.BipartiteMatching(4),
}


def problem(name, rng, count=5):
    structure = STRUCTURES[name]
    empty = ms.Batch.of(structure, count=count)
    features = ms.Dense.of(empty, rng.standard_normal((empty.size, 3)))
    scores = features.potentials(np.array([1.0, -0.5, 0.3])) + rng.gumbel(size=empty.size)
    found, _ = resolve(None, empty).many(empty, scores)
    outcomes = [structure.decode(found[empty.coordinates(m)]) for m in range(count)]
    return ms.Batch.of(structure, outcomes), features


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_search_for_rho_leaves_room_in_its_tolerance(seed):
    batch, features = problem("grid", np.random.default_rng(seed))
    solver = FrankWolfe(tol=TOL, rounds=1000)
    learner = ms.learners.trw_tightest(route="frank_wolfe", solver=solver, rounds=10)
    model = learner.fit(batch, features)
    assert model.certificate.relative <= TOL


@pytest.mark.parametrize("name", ["chain", "paths"])
@pytest.mark.parametrize("seed", range(3))
def test_declared_sums_bound_as_tangents_do(name, seed):
    """Law: with them the gap never rises, is found again from the state, and is no larger."""
    rng = np.random.default_rng(seed)
    batch, features = problem(name, rng)
    dual = ms.mle_struct().dual(batch, features)
    oracle, sums = Validated(resolve(None, batch)), routine(dual.entropy).many
    said = []
    FrankWolfe(tol=1e-4, rounds=150).solve(dual, oracle, sums=sums, told=said.append)
    gaps = [state.gap for state in said]
    for state in said:
        again = certificate(dual, oracle, state.theta, state.tau, at=state.at)
        assert state.gap == pytest.approx(again.gap, rel=1e-6, abs=1e-8)
    assert (np.diff(gaps) <= 0).all()
    assert state.certificate.relative <= 1e-4
    blind = FrankWolfe(tol=0, rounds=state.round).solve(dual, oracle)
    assert state.gap <= blind.gap
