"""CAMEL: both solvers, both starts, every split, wide sepsets, hard and penalised moments."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import mlestruct as ms
from mlestruct.families.consistency.camel import Camel
from mlestruct.families.consistency.coupled import Coupled
from mlestruct.features import Dense
from mlestruct.learning.loop import Loop
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

SOLVER = ms.FrankWolfe(tol=1e-5, rounds=1500)
WIDE = ms.ClusterGraph([2] * 4, [(0, 1, 2), (1, 2, 3)], [(0, 1, (1, 2))])
RING = ms.ClusterGraph(
    [2] * 6,
    [(0, 1, 2), (1, 2, 3), (3, 4, 5), (4, 5, 0)],
    [(0, 1, (1, 2)), (1, 2, (3,)), (2, 3, (4, 5)), (3, 0, (0,))],
)
GRAPHS = {"grid": ms.grid(2, 3), "wide sepset": WIDE, "ring of clusters": RING}


def problem(graph, seed=0, count=3, d=3):
    rng = np.random.default_rng(seed)
    outcomes = list(rng.integers(2, size=(count, graph.n_nodes)))
    batch = Batch.of(graph, outcomes)
    matrix = 1.5 * rng.standard_normal((batch.size, d))
    if isinstance(graph, ms.ClusterGraph):  # a feature belongs to one cluster
        matrix[np.tile(graph.table_of, count) >= graph.n_clusters] = 0.0
    return batch, Dense.of(batch, matrix)


@pytest.mark.parametrize("start", ["zero", "empirical"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_rounds_problem_has_one_optimum_for_all_solvers(name, start):
    """Coupled regressions, messages and the oracle alone: values within both certificates."""
    batch, features = problem(GRAPHS[name])
    one = Camel(rounds=1, start=start, solver=SOLVER)
    routes = ("coupled", "direct", "frank_wolfe")
    rounds = [replace(one, route=route).each(batch, features)[0] for route in routes]
    proofs = [r.certificate for r in rounds]
    for proof in proofs:
        assert proof.relative <= 1e-5
        for other in proofs:
            assert abs(proof.objective - other.objective) <= proof.gap + other.gap
    for r in rounds[1:]:
        np.testing.assert_allclose(r.theta, rounds[0].theta, atol=0.02)


@pytest.mark.parametrize(
    ("name", "route"),
    [(name, "coupled") for name in GRAPHS] + [("grid", "direct"), ("grid", "frank_wolfe")],
)
@pytest.mark.parametrize("start", ["zero", "empirical"])
def test_the_objective_never_falls_between_rounds(name, route, start):
    """By no more than the inner certificate leaves open; and it rises above CAMEL(0)'s."""
    batch, features = problem(GRAPHS[name])
    solver = ms.FrankWolfe(tol=1e-4, rounds=500)
    camel = Camel(regulariser=0.3, start=start, route=route, solver=solver, rounds=4)
    rounds = camel.each(batch, features)
    for one, after in pairwise(rounds):
        assert after.objective >= one.objective - after.certificate.gap - 1e-9
    if start == "zero":
        assert rounds[-1].objective > rounds[0].objective + 1e-3


def test_wide_sepsets_make_a_junction_tree_exact():
    """Two clusters that share a joint table of two variables: the likelihood by enumeration."""
    batch, features = problem(WIDE)
    listed = vertices(WIDE)

    def loss(theta):
        total = 0.5 * theta @ theta
        for m in range(len(batch)):
            part = batch.coordinates(m)
            scores = features.matrix[part] @ theta
            total += logsumexp(listed @ scores) - batch.target[part] @ scores
        return total

    best = minimize(loss, np.zeros(3), options={"gtol": 1e-8})
    *_, last = Camel(route="coupled", tol=1e-9).each(batch, features)
    np.testing.assert_allclose(last.theta, best.x, atol=1e-4)
    assert last.objective == pytest.approx(best.fun, abs=1e-6)


def test_a_separator_without_consistency_is_its_sources_marginal():
    batch, features = problem(WIDE)
    source = Camel(consistent=False, route="direct", rounds=2).each(batch, features)[0].tau
    first, second = source[:8].reshape(2, 4).sum(0), source[8:16].reshape(4, 2).sum(1)
    assert np.abs(first - second).max() > 1e-2
    np.testing.assert_allclose(source[16:20], first)


@pytest.mark.parametrize("least", [0.0, -0.5, -1.0])
def test_other_concave_splits_have_one_fixed_point(least):
    """However much of a chain's negative counts is kept, the fixed point is exact likelihood."""
    batch, features = problem(ms.chain(4, 2))
    camel = Camel(concave=lambda numbers: np.maximum(numbers, least), tol=1e-8, rounds=300)
    rounds = replace(camel, solver=ms.FrankWolfe(tol=1e-10)).each(batch, features)
    exact = ms.mle_struct(solver=ms.FrankWolfe(tol=1e-10)).fit(batch, features)
    np.testing.assert_allclose(rounds[-1].theta, exact.theta, atol=1e-4)
    if least == -1.0:
        assert len(rounds) <= 2


def test_a_split_must_leave_a_convex_rest():
    batch, features = problem(ms.chain(3, 2))
    with pytest.raises(ValueError, match=r"counting number 0\.5 > 0 cannot be linearised"):
        Camel(concave=lambda numbers: 0.5 * numbers).dual(batch, features)


@pytest.mark.parametrize("name", GRAPHS)
def test_without_penalty_the_moments_are_met(name):
    """Hard moments: features of the tables equal the observed ones, in CAMEL(0) and after."""
    batch, features = problem(GRAPHS[name])
    for rounds in (1, 20):
        *_, last = Camel(regulariser=None, rounds=rounds).each(batch, features)
        off = features.moments(last.tau - batch.target)
        np.testing.assert_allclose(off, 0.0, atol=1e-5)
        assert batch.structures[0].contains(batch.rows(last.tau, np.arange(3)), 1e-5).all()


def scaled(weights, targets, free):
    """Iterative proportional scaling of a joint table to the given variables' marginals."""
    joint = np.exp(weights)
    for _ in range(2000):
        for i, target in targets.items():
            axes = tuple(k for k in range(joint.ndim) if k != i)
            shape = [-1 if k == i else 1 for k in range(joint.ndim)]
            joint = joint * (target / joint.sum(axes)).reshape(shape)
    assert set(range(joint.ndim)) == set(targets) | set(free)
    return joint


def constrained(graph, given, rng):
    """Fixed interactions, and indicator features of the given variables' states."""
    mean = {i: rng.dirichlet([2.0, 2.0]) for i in given}
    bias = np.zeros(graph.size)
    first = graph.node_start[-1]
    bias[first:] = rng.standard_normal(graph.size - first)
    target = graph.interior()
    for i in given:
        target[2 * i : 2 * i + 2] = mean[i]
    columns = np.concatenate([np.arange(2 * i, 2 * i + 2) for i in given])
    batch = replace(Batch.of(graph, count=1, bias=bias), target=target)
    return batch, Dense.of(batch, np.eye(graph.size)[:, columns]), mean


def test_unified_propagation_and_scaling_is_a_special_case(rng):
    """Given marginals as hard moments: on a tree with free variables, the scaled joint table."""
    tree = ms.chain(4, 2)
    batch, features, mean = constrained(tree, [0, 2], rng)
    *_, last = Camel(regulariser=None, tol=1e-10).each(batch, features)
    pairs = batch.bias[8:].reshape(3, 2, 2)
    weights = pairs[0][:, :, None, None] + pairs[1][None, :, :, None] + pairs[2][None, None, :, :]
    joint = scaled(weights, mean, [1, 3])
    for f, drop in enumerate([(2, 3), (0, 3), (0, 1)]):
        table = last.tau[8 + 4 * f : 12 + 4 * f].reshape(2, 2)
        np.testing.assert_allclose(table, joint.sum(drop), atol=1e-6)


def test_with_all_marginals_given_every_edge_is_scaled_alone(rng):
    """On a cycle too: propagation has nothing left to do, and scaling is Sinkhorn's per edge."""
    cycle = ms.grid(2, 2)
    batch, features, mean = constrained(cycle, [0, 1, 2, 3], rng)
    *_, last = Camel(regulariser=None, tol=1e-10).each(batch, features)
    for f, (i, j) in enumerate(cycle.scope.reshape(-1, 2)):
        part = slice(8 + 4 * f, 12 + 4 * f)
        joint = scaled(batch.bias[part].reshape(2, 2), {0: mean[i], 1: mean[j]}, [])
        np.testing.assert_allclose(last.tau[part].reshape(2, 2), joint, atol=1e-6)


def test_tables_without_multipliers_stop_at_a_gap_that_holds():
    """The slope in θ bounds what is left: the value there exceeds the least by no more."""
    dual = Camel(regulariser=0.1).dual(*problem(ms.grid(3, 3), count=5))
    apart = Coupled(dual, consistent=False)
    least, _ = apart(apart.solve())
    for tol in (1e-2, 1e-4):
        value, slope = apart(apart.solve(loop=Loop(tol=tol, rounds=2000)))
        assert 0 < value - least <= apart.gap(slope) <= tol * abs(value)
