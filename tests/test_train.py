"""The fast route: L-BFGS reaches minima, and both routes end at one optimum."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import rosen, rosen_der

import mlestruct as ms
from mlestruct.features import Shared, Tied
from mlestruct.inference import best
from mlestruct.inference.routine import routine
from mlestruct.learning.dual import Dual
from mlestruct.learning.problem import LikelihoodPart
from mlestruct.learning.regulariser import Regulariser
from mlestruct.learning.tied import TiedPart, tied
from papers.relaxations import small_batches
from tests.reference.descents import minimise, rounds


def last(objective, theta, tol=1e-8):
    for found in minimise(objective, theta):
        if np.linalg.norm(found[2]) < tol or not found[3]:
            return found
    raise AssertionError("no end")


def test_minimise_reaches_the_minimum_of_a_curved_valley():
    theta, _, gradient, *_ = last(lambda t: (rosen(t), rosen_der(t)), np.zeros(10))
    assert np.linalg.norm(gradient) < 1e-7
    np.testing.assert_allclose(theta, 1.0, atol=1e-6)


def chains(rng, count=40, states=4, p=6, seen=False):
    """Chains of several lengths with tied weights, two forbidden transitions and a start.

    From that start one of the transitions would go, so pairs do not show that it is forbidden.
    """
    lengths = [1, 2, 3, 5]
    closed = ((2, 1), (1, 0))
    made = {
        n: ms.chain(n, states).forbid([(0, 1)], [(t, p) for t in range(n - 1) for p in closed])
        for n in lengths
    }
    structures = [made[n] for n in rng.choice(lengths, count)]
    outcomes = []
    for s in structures:
        y = rng.integers(0, states, s.n_nodes)
        outcomes.append(np.where(y == 1, 0, y))
    batch = ms.Batch.of(structures, outcomes, weight=rng.uniform(0.5, 2.0, count))
    X = rng.standard_normal((sum(s.n_nodes for s in structures), p))
    X *= rng.random(X.shape) < 0.5
    tied = Tied.of(batch, sp.csr_array(X) if seen else X)
    return batch, Shared.seen(tied, batch) if seen else tied


@pytest.mark.parametrize("states", [3, 8, 9])  # rows are padded to whole eights
@pytest.mark.parametrize("seen", [False, True])
def test_tied_chains_are_the_general_objective(rng, seen, states):
    """One table of transitions or a table per edge: the same value and gradient of every part."""
    batch, features = chains(rng, states=states, seen=seen)
    dual = ms.mle_struct().dual(batch, features)
    whole = tied(
        LikelihoodPart(
            batch=dual.batch,
            bias=dual.batch.bias,
            features=features,
            routine=routine(dual.entropy),
            entropy=dual.entropy,
        )
    )
    parts = [whole.select(members) for members in batch.shards(3)]
    assert all(isinstance(part, TiedPart) for part in parts)
    # The last weights are beyond what the linear domain holds: the general part answers.
    for part, scale in itertools.product(parts, (0.0, 1.0, 20.0, 2000.0)):
        theta = scale * rng.standard_normal(features.d)
        found, _ = part.evaluate(theta, 0.0, None)
        expected, _ = LikelihoodPart.evaluate(part, theta, 0.0, None)
        assert found.value == pytest.approx(expected.value, rel=1e-10)
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-8)


@pytest.mark.parametrize("kind", ["chain", "matching"])
def test_a_bias_counts_in_the_likelihood(rng, kind):
    structure = ms.chain(3, 3) if kind == "chain" else ms.BipartiteMatching(3)
    outcomes = [rng.permutation(3) for _ in range(5)]
    batch = ms.Batch.of(structure, outcomes, bias=rng.standard_normal(5 * structure.size))
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 2)))
    *_, before, last = rounds(ms.mle_struct(solver=ms.FrankWolfe(tol=1e-12)), batch, features)
    dual: Dual = ms.mle_struct().dual(batch, features)
    assert last.certificate.objective == pytest.approx(dual.value(last.tau), abs=1e-9)
    assert before.certificate.objective == pytest.approx(dual.value(last.tau), abs=1e-6)


def test_small_batches_come_near_the_optimum_and_repeat(rng):
    batch, features = chains(rng)
    regulariser = Regulariser.of(features.d, 2.0, l1=0.5, upper=0.3)
    exact = ms.mle_struct(regulariser=regulariser, solver=ms.FrankWolfe(tol=1e-8))
    best = exact.fit(batch, features)
    thetas = []
    for _ in range(2):
        steps = small_batches(size=8, length=0.5, seed=1)
        solver = ms.FrankWolfe(tol=1e-3, rounds=150)
        found = replace(ms.learners.lbp(regulariser=regulariser, solver=solver), steps=steps)
        model = found.fit(batch, features)
        thetas.append(model.theta)
        near = best.certificate.objective
        assert model.certificate.objective == pytest.approx(near, rel=5e-3)
        assert np.linalg.norm(model.theta - best.theta) < 0.1 * np.linalg.norm(best.theta)
    assert (thetas[0] == thetas[1]).all()


@pytest.mark.parametrize("route", ["direct", "frank_wolfe"])
def test_a_path_is_the_single_fits(rng, route):
    batch = ms.Batch.of(ms.BipartiteMatching(4), [rng.permutation(4) for _ in range(6)])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))
    learner = ms.mle_struct(route=route, solver=ms.FrankWolfe(tol=1e-7, rounds=2000))
    alphas = [10.0, 3.0, 2.9]
    models = list(learner.path(batch, features, alphas))
    for alpha, model in zip(alphas, models, strict=True):
        settings = {"route": route, "solver": learner.solver, "regulariser": alpha}
        single = ms.mle_struct(**settings).fit(batch, features)
        gaps = model.certificate.gap + single.certificate.gap
        assert abs(model.certificate.objective - single.certificate.objective) <= gaps + 1e-12
    if route == "direct":  # where a warm start of τ helps depends on its active sets
        assert len(models[2].history) <= len(single.history)


def test_routes_are_named_and_refused(rng):
    batch = ms.Batch.of(ms.grid(3, 3, 2), [np.zeros(9, int)])
    batch = replace(batch, structures=(ms.grid(3, 3, 2),))
    features = ms.Dense.of(batch, np.ones((batch.size, 1)))
    with pytest.raises(ValueError, match="no routine computes marginals of this entropy on"):
        ms.ssvm(route="direct").fit(batch, features)
    with pytest.raises(ValueError, match="route is auto, direct or frank_wolfe, not 'fast'"):
        ms.mle_struct(route="fast").fit(batch, features)
    matching = ms.Batch.of(ms.BipartiteMatching(3), [[0, 1, 2]])
    features = ms.Dense.of(matching, rng.standard_normal((9, 2)))
    for oracle, route, expected in (
        (None, "auto", "direct"),
        ("assignment", "auto", "frank_wolfe"),
        ("assignment", "direct", "direct"),
    ):
        assert ms.mle_struct(oracle=oracle, route=route).fit(matching, features).route == expected


def people(n, rng, kind="perfect", examples=2):
    """Matchings of people with answers to six questions, pairs of like answers likelier."""
    asked = [ms.Question.ordinal(f"q{k}", range(4)) for k in range(6)]
    batch = ms.Batch.of(ms.Matching(n, kind=kind), count=examples)
    codes = [rng.integers(0, 4, (n, 6)) for _ in range(examples)]
    features = ms.Pairs.of(batch, codes, asked)
    scores = features.potentials(0.4 * rng.standard_normal(features.d))
    outcomes = best(batch, scores + rng.gumbel(size=batch.size))[0]
    return ms.Batch.of(batch.structures[0], outcomes), features


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_a_change_of_variables_saves_evaluations_and_changes_nothing_else(rho, rng):
    batch, features = people(40, rng)
    full = np.stack([features.potentials(unit) for unit in np.eye(features.d)], axis=1)
    learner = ms.mle_struct(rho, regulariser=0.1, solver=ms.FrankWolfe(tol=1e-9))
    quick, plain = (learner.fit(batch, f) for f in (features, ms.Dense.of(batch, full)))
    assert quick.route == plain.route == "direct"
    assert quick.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-7)
    np.testing.assert_allclose(quick.theta, plain.theta, atol=1e-3)
    assert 2 * len(quick.history) < len(plain.history)
