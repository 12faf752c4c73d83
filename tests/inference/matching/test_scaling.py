"""Scaling finds what Frank-Wolfe finds over the degrees, at any ρ, score and graph."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.inference.matching import Scaling
from mlestruct.structures.entropy import Entropy
from tests.reference.bethe_vertex import is_bethe_vertex

HALVES = [(u, v) for half in (range(4), range(4, 8)) for u, v in combinations(half, 2)]
GRAPHS = {
    "perfect": ms.BipartiteMatching(4),
    "one sided": ms.BipartiteMatching(3, 5, "one_sided"),
    "square one sided": ms.BipartiteMatching(3, 3, "one_sided"),
    "partial": ms.BipartiteMatching(3, 4, "partial"),
    "dead pairs": ms.BipartiteMatching(4, forbidden=[(0, 0), (1, 0), (2, 0), (3, 1)]),
    "required": ms.BipartiteMatching(4, 5, "one_sided", required=[(1, 2)], forbidden=[(0, 1)]),
    "complete": ms.Matching(6),
    "complete partial": ms.Matching(5, kind="partial"),
    "ladder": ms.Matching(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3)]),
    "two components": ms.Matching(8, HALVES),
    "clamped": ms.Matching(6, forbidden=[(0, 1)], required=[(2, 3)]),
    "sparse partial": ms.Matching(5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)], kind="partial"),
}
CASES = json.loads((Path(__file__).parents[3] / "datasets" / "cases.json").read_text())["cases"]


def solve(structure, scores, rho, **settings):
    """Beliefs over the degrees, and the surrogate's value at their τ."""
    batch = ms.Batch.of(structure, count=len(scores) // structure.size)
    entropy = Entropy.of(batch, rho)
    assert Scaling.serve(entropy) == Scaling(rho)
    found = Scaling(rho, **settings).many(batch, scores)
    return found, entropy.each(found.tau) + batch.totals(scores * found.tau)


@pytest.mark.parametrize("pay", [0.0, 1e3, 1e4])
@pytest.mark.parametrize("kind", ["one_sided", "partial"])
def test_a_side_with_room_is_found_whatever_all_pairs_pay(kind, pay, rng):
    """Duals began at half the score each, and those of the larger side crept: 17,000 sweeps."""
    score = rng.normal(size=(3, 4, 7))
    wide, every = ms.BipartiteMatching(4, 7, kind), ms.BipartiteMatching(4, 7, "one_sided")
    plain = Scaling().many(ms.Batch.of(every, count=3), score.ravel())
    paid = Scaling(sweeps=50).many(ms.Batch.of(wide, count=3), (score + pay).ravel())
    if kind == "one_sided" or pay:
        np.testing.assert_allclose(paid.log_z - 4 * pay, plain.log_z, atol=1e-9 * (1 + pay))
        np.testing.assert_allclose(paid.tau, plain.tau, atol=1e-9 * (1 + pay))
    if kind == "partial":  # the larger side may be the rows
        tall = ms.Batch.of(ms.BipartiteMatching(7, 4, kind), count=3)
        turned = Scaling(sweeps=50).many(tall, (score + pay).transpose(0, 2, 1).ravel())
        np.testing.assert_allclose(turned.log_z, paid.log_z, rtol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.75, 1.0])
def test_it_agrees_with_frank_wolfe_over_the_degrees(name, rho, rng):
    """τ is feasible, as good as Frank-Wolfe's, and worth log Z, within the certificates."""
    structure = GRAPHS[name]
    scores = 2.0 * rng.standard_normal(2 * structure.size)
    found, value = solve(structure, scores, rho)
    assert structure.contains(found.tau.reshape(2, -1), 1e-12).all()
    assert (found.tau >= 0).all()
    np.testing.assert_allclose(found.log_z, value, atol=1e-8)
    batch = ms.Batch.of(structure, count=2)
    solver = ms.FrankWolfe(tol=1e-6, rounds=500)
    slow = ms.marginals(batch, scores, "linear_program", rho=rho, solver=solver)
    assert (found.log_z >= slow.lower - 1e-9).all()
    assert (found.log_z <= slow.upper + 1e-9).all()
    again = Scaling(rho).many(batch, scores, found.warm)
    np.testing.assert_allclose(again.log_z, found.log_z, atol=1e-8)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("rho", [0.25, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("scale", [30.0, 1000.0])
def test_extreme_scores_stay_finite_feasible_and_bounded(name, rho, scale, rng):
    """Nothing overflows, and log Z never falls below what a feasible τ is worth."""
    structure = GRAPHS[name]
    scores = rng.uniform(-scale, scale, structure.size)
    found, value = solve(structure, scores, rho)
    assert np.isfinite(found.log_z).all()
    assert structure.contains(found.tau, 1e-9)
    assert found.log_z[0] >= value[0] - 1e-9 * scale


@pytest.mark.parametrize("rho", [0.55, 0.8])
def test_groups_that_hardly_mix_do_not_make_inference_creep(rho):
    """Learned scores are like that; messages alone are off by up to 5e-5 after as many sweeps."""
    group, structure = np.arange(30) // 5, ms.BipartiteMatching(30)
    for noise in (1.0, 3.0):
        rng = np.random.default_rng(0)
        apart = 20.0 * (group[:, None] - group) ** 2
        scores = noise * rng.standard_normal((30, 30)) - apart
        found, value = solve(structure, scores.ravel(), rho, sweeps=1000)
        np.testing.assert_allclose(found.log_z, value, atol=1e-7)


@pytest.mark.parametrize("name", [n for n in GRAPHS if "two" not in n])
def test_half_bounds_enumeration_from_above(name, rng):
    """Shearer: at ρ = ½ log Z is above the exact one on every graph."""
    structure = GRAPHS[name]
    for scale in (0.3, 3.0):
        scores = scale * rng.standard_normal(structure.size)
        found, _ = solve(structure, scores, 0.5)
        assert found.log_z[0] >= exact(structure, scores).log_z - 1e-9


@pytest.mark.parametrize("rho", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("sweeps", [1, 2, 20])
@pytest.mark.parametrize("name", ["perfect", "dead pairs", "complete", "one sided"])
def test_unfinished_inference_never_looks_better(name, rho, sweeps, rng):
    """Truncated: τ is still feasible, log Z still above the optimum, the gap holds the error."""
    structure = GRAPHS[name]
    scores = 15.0 * rng.standard_normal(structure.size)
    truth, _ = solve(structure, scores, rho)
    rough, value = solve(structure, scores, rho, sweeps=sweeps)
    assert structure.contains(rough.tau, 1e-9)
    assert rough.log_z[0] >= value[0] - 1e-8
    assert rough.log_z[0] >= truth.log_z[0] - 1e-6


def test_bethe_on_a_vertex_is_proven_by_the_spectral_rule(rng):
    """permanent_3x3_dominant: log Z is the permutation's score; at zero scores it is not."""
    case = CASES["permanent_3x3_dominant"]
    scores = np.log(case["inputs"]["weights"]).ravel()
    assert is_bethe_vertex(ms.BipartiteMatching(3), scores, np.eye(3).ravel())
    found, _ = solve(ms.BipartiteMatching(3), scores, 1.0)
    assert found.log_z[0] == pytest.approx(case["expected"]["bethe_logZ"], abs=1e-6)
    np.testing.assert_allclose(found.tau.reshape(3, 3), np.eye(3), atol=1e-6)
    assert not is_bethe_vertex(ms.BipartiteMatching(3), np.zeros(9), np.eye(3).ravel())
    for _ in range(30):
        scores = 3.0 * rng.standard_normal(16)
        partner = linear_sum_assignment(-scores.reshape(4, 4))[1]
        found, _ = solve(ms.BipartiteMatching(4), scores, 1.0)
        inside = found.tau[(found.tau > 1e-4)].min() < 1 - 1e-4
        if is_bethe_vertex(ms.BipartiteMatching(4), scores, np.eye(4)[partner].ravel()):
            reached = scores.reshape(4, 4)[np.arange(4), partner].sum()
            assert found.log_z[0] == pytest.approx(reached, abs=1e-5)
        else:
            assert inside


@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_complete_graphs_take_few_sweeps(n, rho, rng):
    structure = ms.Matching(n)
    scores = rng.standard_normal(structure.size)
    found, value = solve(structure, scores, rho, residual=1e-8, sweeps=41)
    np.testing.assert_allclose(found.log_z, value, atol=1e-6)
    assert structure.contains(found.tau, 1e-12)
