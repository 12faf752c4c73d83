"""Exact likelihood against enumeration; belief propagation; pseudo-likelihood without labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import mlestruct as ms
from mlestruct.features import Dense, Tied
from mlestruct.inference.elimination import sample_states
from mlestruct.inference.exact import exact
from mlestruct.learners import LEARNERS
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

TIGHT = ms.FrankWolfe(tol=1e-8, rounds=500)
STRUCTURES = {
    "grid": ms.grid(2, 3),
    "matching": ms.BipartiteMatching(3),
    "partial": ms.Matching(4, kind="partial"),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_exact_likelihood_is_the_enumerated_one(name, rng):
    structure = STRUCTURES[name]
    listed = vertices(structure)
    bias = rng.standard_normal(4 * structure.size)
    outcomes = [structure.decode(listed[k]) for k in rng.integers(len(listed), size=4)]
    batch = Batch.of(structure, outcomes, weight=[1.0, 2.0, 0.5, 1.0], bias=bias)
    X = rng.standard_normal((4, structure.size, 3))

    def loss(theta):
        total = 0.25 * theta @ theta
        for m, x in enumerate(X):
            part = batch.coordinates(m)
            reached = (listed - batch.target[part]) @ (x @ theta + bias[part])
            total += batch.weight[m] * logsumexp(reached)
        return total

    best = minimize(loss, np.zeros(3), options={"gtol": 1e-8})
    learner = LEARNERS["exact_mle"](regulariser=0.5, solver=TIGHT)
    model = learner.fit(batch, Dense.of(batch, X.reshape(-1, 3)))
    np.testing.assert_allclose(model.theta, best.x, atol=1e-4)
    assert -model.certificate.objective == pytest.approx(best.fun, abs=1e-7)
    assert model.certificate.relative <= 1e-8
    assert model.certificate.bound.startswith("exact")


def test_exact_likelihood_refuses_what_is_too_wide(rng):
    for graph, words in (
        (ms.grid(40, 40), "width 40.*GiB"),
        (ms.FactorGraph([2] * 45, [(i, j) for i in range(45) for j in range(i)]), "width 44.*GiB"),
    ):
        batch = Batch.of(graph, [np.zeros(graph.n_nodes, int)])
        features = Dense.of(batch, rng.standard_normal((graph.size, 1)))
        with pytest.raises(ValueError, match=words):
            LEARNERS["exact_mle"]().fit(batch, features)


@pytest.fixture(scope="module")
def frustrated():
    """Ten labellings of a strongly coupled 4 × 4 grid with mixed signs."""
    rng, graph = np.random.default_rng(0), ms.grid(4, 4)
    J, h = rng.normal(0, 2.5, graph.n_factors), rng.normal(0, 0.3, 16)
    nodes = np.stack([-h, h], axis=1).ravel()
    score = np.concatenate([nodes, np.outer(J, [1.0, -1.0, -1.0, 1.0]).ravel()])
    batch = Batch.of(graph, list(sample_states(graph, score[None], 10, rng)[0]))
    eyes = np.tile(np.eye(16), (10, 1)), np.tile(np.eye(graph.n_factors), (10, 1))
    return batch, Tied.of(batch, *eyes)


def test_belief_propagation_is_exact_on_trees_and_certifies_nothing(rng):
    tree = ms.tree([(0, 1), (0, 2), (1, 3), (1, 4)], [2] * 5)
    batch = Batch.of(tree, list(rng.integers(2, size=(5, tree.n_nodes))))
    features = Dense.of(batch, rng.standard_normal((batch.size, 3)))
    found = LEARNERS["lbp"](solver=TIGHT).fit(batch, features)
    exact = LEARNERS["exact_mle"](solver=TIGHT).fit(batch, features)
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-6)
    assert "bound nothing (0 examples had none)" in str(found.certificate)


def test_belief_propagation_overstates_the_likelihood_of_strong_grids(frustrated):
    batch, features = frustrated
    exact = LEARNERS["exact_mle"](regulariser=0.1, solver=TIGHT).fit(batch, features)
    found = LEARNERS["lbp"](regulariser=0.1, restarts=3).fit(batch, features)
    assert found.certificate.objective > exact.certificate.objective + 1.0
    assert np.isinf(found.certificate.gap)


def test_sweeps_too_few_are_counted(frustrated, rng):
    """At strong weights two sweeps leave every example's messages moving, and the words say so."""
    batch, features = frustrated
    learner = LEARNERS["lbp"](sweeps=2, solver=ms.FrankWolfe(rounds=0))
    J = 3.0 * rng.standard_normal(24)
    strong = np.concatenate([rng.standard_normal(32), np.outer(J, [1, -1, -1, 1]).ravel()])
    state = learner.fit(batch, features, start=strong)
    assert "(10 examples had none)" in str(state.certificate)


def test_restarts_are_needed_where_messages_jump_between_fixed_points(frustrated):
    """The exact penalised likelihood of what was learned, far off without and nearer with them."""
    batch, features = frustrated

    def reached(restarts):
        theta = LEARNERS["lbp"](regulariser=0.1, restarts=restarts).fit(batch, features).theta
        scores = features.potentials(theta)
        return batch.target @ scores - exact(batch, scores).log_z.sum() - 0.05 * theta @ theta

    assert reached(0) + 10 < min(reached(1), reached(10))


def test_missing_labels_leave_out_every_term_that_needs_them(rng):
    """The value and weights of conditionals that see no hidden variable, one flip at a time."""
    graph = ms.grid(2, 3)
    outcomes = rng.integers(2, size=(5, 6))
    outcomes[rng.random((5, 6)) < 0.15] = -1
    assert (outcomes == -1).any()
    X = rng.standard_normal((5, graph.size, 3))
    batch = ms.Batch.of(graph, list(map(ms.Partial, outcomes)))
    around = [set() for _ in range(6)]
    for i, j in graph.scope.reshape(-1, 2):
        around[i].add(j)
        around[j].add(i)

    def loss(theta):
        total = 0.5 * theta @ theta
        for y, x in zip(outcomes, X, strict=True):
            for i in range(6):
                if min(y[i], *(y[j] for j in around[i])) < 0:
                    continue
                reached = []
                for state in range(2):
                    other = np.maximum(y, 0)
                    other[i] = state
                    reached.append(graph.encode(other) @ (x @ theta))
                total -= reached[y[i]] - np.logaddexp.reduce(reached)
        return total

    best = minimize(loss, np.zeros(3), options={"gtol": 1e-8})
    learner = LEARNERS["pseudo_likelihood"](solver=TIGHT)
    model = learner.fit(batch, Dense.of(batch, X.reshape(-1, 3)))
    np.testing.assert_allclose(model.theta, best.x, atol=1e-5)
    assert -model.certificate.objective == pytest.approx(best.fun, abs=1e-8)
