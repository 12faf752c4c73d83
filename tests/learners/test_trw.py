"""The tree-reweighted surrogate: closed form, penalty on both routes, and ρ between rounds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.features import Dense
from mlestruct.inference import marginals
from mlestruct.inference.exact import exact
from mlestruct.learners.tree_reweighted import match_moments, trw, trw_tightest
from mlestruct.storage.digest import digest
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import counting_numbers
from mlestruct.testing import vertices
from tests.reference.descents import rounds as said

RHOS = [0.5, "trees", 0.7]


@pytest.fixture(scope="module")
def grid():
    """2 × 3 binary grids with three features, outcomes drawn from known weights."""
    rng, graph = np.random.default_rng(1), ms.grid(2, 3)
    listed = vertices(graph)
    X = 1.5 * rng.standard_normal((6, graph.size, 3))
    noise = rng.gumbel(size=(6, len(listed)))
    y = [
        graph.decode(listed[(listed @ (x @ [2.0, -1.0, 1.0]) + n).argmax()])
        for x, n in zip(X, noise, strict=True)
    ]
    batch = Batch.of(graph, y)
    return graph, batch, Dense.of(batch, X.reshape(-1, 3))


@pytest.mark.parametrize("rho", [*RHOS, "cliques"])
def test_closed_form_weights_give_the_moments_back(rho, rng):
    """Inference at θ̂ returns the mean it was made from, and B(θ̂) = 0."""
    graph = ms.grid(2, 3)
    mean = exact(graph, rng.standard_normal(graph.size)).tau
    found = match_moments(graph, mean, rho)
    back = marginals(Batch.of(graph, count=1), found.theta, rho=rho)
    np.testing.assert_allclose(back.tau, mean, atol=1e-6)
    assert back.lower[0] == pytest.approx(0.0, abs=1e-9)
    numbers = counting_numbers(graph, rho)[graph.table_of]
    assert found.log_likelihood == pytest.approx(numbers @ (mean * np.log(mean)))


def test_smoothing_is_stated_and_needed():
    """One labelling has zero moments: refused by name, and with ε mixed with uniform tables."""
    graph = ms.grid(2, 2)
    vertex = graph.encode([0, 1, 1, 0])
    with pytest.raises(ValueError, match="coordinate 1 has moment 0: its score is −∞"):
        match_moments(graph, vertex)
    mixed = match_moments(graph, vertex, smoothing=0.1).mean
    np.testing.assert_allclose(mixed, 0.9 * vertex + 0.1 * graph.interior())


def test_the_limit_without_penalty_matches_moments(grid):
    _, batch, features = grid
    for rho in RHOS:
        solver = ms.FrankWolfe(tol=1e-9, rounds=500)
        model = trw(rho, regulariser=1e-6, solver=solver).fit(batch, features)
        tau = marginals(batch, features.potentials(model.theta), rho=rho).tau
        off = features.moments(tau - batch.target)
        np.testing.assert_allclose(off, 0.0, atol=1e-4)


def test_the_bound_only_falls_between_rounds(grid):
    """At every round's weights the next ρ bounds log Z lower, and never below the exact one."""
    graph, batch, features = grid
    learner = trw_tightest(rounds=4, regulariser=0.1, solver=ms.FrankWolfe(tol=1e-7, rounds=300))
    rounds = said(learner, batch, features)
    assert len(rounds) > 2

    def bound(theta, rho):
        scores = features.potentials(theta)
        return marginals(batch, scores, rho=lambda one: rho[digest(one)]).upper

    for one, after in pairwise(rounds):
        theta = one.theta
        before, fallen = bound(theta, one.learned), bound(theta, after.learned)
        assert fallen.sum() < before.sum()
        assert (fallen > exact(batch, features.potentials(theta)).log_z).all()
        assert after.certificate.objective > one.certificate.objective
        assert graph.bound(graph.counting(after.learned[digest(graph)])).kind == "upper"


def test_a_rounds_gap_covers_all_weights_and_all_trees(grid):
    """No later round gains more than an earlier round's gap said was left."""
    _, batch, features = grid
    learner = trw_tightest(rounds=6, regulariser=0.1, solver=ms.FrankWolfe(tol=1e-7, rounds=300))
    proofs = [one.certificate for one in said(learner, batch, features)]
    best = max(proof.objective for proof in proofs)
    for proof in proofs:
        assert best <= proof.objective + proof.gap + 1e-9
    assert proofs[-1].gap < 0.2 * proofs[0].gap
