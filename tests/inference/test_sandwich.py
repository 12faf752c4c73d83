"""Hessians against finite differences, sandwiches against their formulas, and what is unknown."""

from dataclasses import replace

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import Serial
from mlestruct.inference.odd import binding
from mlestruct.inference.routine import routine
from mlestruct.inference.sandwich import Sandwich, respond
from mlestruct.learning.dual import Dual
from mlestruct.learning.loop import Loop
from mlestruct.learning.minimise import likelihood, minimise
from mlestruct.learning.regulariser import Regulariser
from mlestruct.structures.entropy import Entropy
from mlestruct.testing import vertices

ASKED = [ms.Question.ordinal("noise", range(3)), ms.Question.categorical("diet", ["any", "none"])]
PRISM = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3), (1, 4), (2, 5)]
STRUCTURES = {
    "perfect": ms.Matching(8),
    "partial": ms.Matching(5, kind="partial"),
    "prism": ms.Matching(6, PRISM),
    "clamped": ms.Matching(8, forbidden=[(0, 1)], required=[(2, 3)]),
    "bipartite": ms.BipartiteMatching(4),
    "one sided": ms.BipartiteMatching(3, 4, "one_sided"),
}


def problem(structure, d, rng, rho=None, scale=1.0, target=None):
    batch = ms.Batch.of([structure, structure], target, weight=[1.0, 2.0])
    features = ms.Dense.of(batch, scale * rng.standard_normal((batch.size, d)))
    return Dual(batch, features, Entropy.of(batch, rho), Regulariser.of(d, 0.5))


def moments(dual, theta):
    """Σ w Φᵀτ(θ), by inference in earnest."""
    tau = routine(dual.entropy).many(dual.batch, dual.scores(theta)).tau
    return dual.features.moments(dual.weigh(tau)), tau


def slopes(dual, theta, step=1e-5):
    """∂ moments / ∂θ by central differences."""
    ends = [
        [moments(dual, theta + sign * step * unit)[0] for sign in (1, -1)]
        for unit in np.eye(len(theta))
    ]
    return np.array([(up - down) / (2 * step) for up, down in ends])


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_hessian_is_that_of_finite_differences(name, rho, rng):
    """On every kind of structure, weights of examples included."""
    dual = problem(STRUCTURES[name], 3, rng, rho, 0.25)
    theta = rng.standard_normal(3)
    _, tau = moments(dual, theta)
    sets = binding(dual.entropy, dual.scores(theta))
    H = sum(w * respond(dual, m, tau, sets[m]).hessian for m, w in enumerate(dual.batch.weight))
    np.testing.assert_allclose(H, slopes(dual, theta), atol=2e-6 * np.abs(H).max())


def asked(n, rng):
    """People with answers, one observed matching, and the same features expanded."""
    pairs = rng.permutation(n).reshape(-1, 2)
    batch = ms.Batch.of(ms.Matching(n), [pairs])
    codes = np.stack([rng.integers(-1, len(q.levels), n) for q in ASKED], axis=1)
    features = ms.Pairs.of(batch, [codes], ASKED)
    full = np.stack([features.potentials(unit) for unit in np.eye(features.d)], axis=1)
    return batch, features, ms.Dense.of(batch, full)


def solved(batch, features, rho, lam=0.3):
    dual = Dual(batch, features, Entropy.of(batch, rho), Regulariser.of(features.d, lam))
    oracle = ms.oracle.resolve(None, batch)
    last = minimise(likelihood(dual, routine(dual.entropy), Serial(), oracle), Loop(tol=1e-12))
    return dual, last.theta, last.tau


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_pairs_are_what_their_expansion_is(rho, rng):
    """Never expanded and expanded features give one sandwich."""
    batch, pairs, dense = asked(14, rng)
    dual, theta, tau = solved(batch, pairs, rho)
    compact = Sandwich.of(dual, theta, tau)
    full = Sandwich.of(solved(batch, dense, rho)[0], theta, tau)
    scale = np.abs(full.spread).max()
    np.testing.assert_allclose(compact.spread, full.spread, atol=1e-9 * scale)
    np.testing.assert_allclose(compact.debiased, full.debiased, atol=1e-7)
    assert compact.rank == full.rank


def test_the_sandwich_is_its_formula(rng):
    """H⁻¹JH⁻¹ and θ̂ + H⁻¹Λθ̂ where H is invertible, J the outer products of pairs' rows."""
    structure = ms.BipartiteMatching(6)
    dual = problem(structure, 3, rng, target=[rng.permutation(6) for _ in range(2)])
    oracle = ms.oracle.resolve(None, dual.batch)
    last = minimise(likelihood(dual, routine(dual.entropy), Serial(), oracle), Loop(tol=1e-12))
    theta, tau, weight = last.theta, last.tau, dual.batch.weight
    each = [respond(dual, m, tau, ()) for m in range(2)]
    inverse = np.linalg.inv(sum(w * one.hessian for w, one in zip(weight, each, strict=True)))
    J = sum(w**2 * one.rows.T @ one.rows for w, one in zip(weight, each, strict=True))
    found = Sandwich.of(dual, theta, tau)
    np.testing.assert_allclose(found.spread, inverse @ J @ inverse, rtol=1e-7)
    ridge = dual.regulariser.lam * theta
    np.testing.assert_allclose(found.debiased, theta + inverse @ ridge, atol=1e-6)


def test_what_is_not_identified_changes_no_probability(rng):
    """Combinations of one question each; contrasts that touch them are refused."""
    batch, pairs, _ = asked(16, rng)
    dual, theta, tau = solved(batch, pairs, 0.5)
    found = Sandwich.of(dual, theta, tau)
    for direction in found.null.T:
        moved = moments(dual, theta + 3.0 * direction)[1]
        np.testing.assert_allclose(moved, tau, atol=1e-8)
    identified = np.linalg.matrix_rank(pairs.gram(np.ones(1), np.zeros(1)), tol=1e-9)
    assert found.rank == identified < pairs.d
    unknown = found.contrast(np.eye(pairs.d)[0])
    assert not unknown.identified
    assert unknown.error == np.inf
    seen = found.contrast(np.eye(pairs.d)[0] - found.null @ found.null[0])
    assert seen.identified


@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("structure", [ms.Matching, ms.BipartiteMatching])
def test_households_add_up_to_the_observed_moments(kind, structure, rng):
    """Σ rows = observed less expected moments, at any τ of a routine: pairs and singles."""
    one = structure(6, kind=kind) if structure is ms.Matching else structure(5, 5, kind)
    dual = problem(one, 3, rng, 0.5, 0.5)
    theta = rng.standard_normal(3)
    _, tau = moments(dual, theta)
    batch = dual.batch
    oracle = ms.oracle.resolve(None, batch)
    vertex = oracle.many(batch, rng.standard_normal(batch.size))[0]
    again = oracle.many(batch, rng.standard_normal(batch.size))[0]
    seen = [replace(dual, batch=replace(batch, target=y)) for y in (vertex, again)]
    sums = [respond(each, 0, tau, ()).rows.sum(axis=0) for each in seen]
    own = dual.features.select(np.array([0]))
    part = batch.coordinates(0)
    moved = own.moments(vertex[part]) - own.moments(again[part])
    np.testing.assert_allclose(sums[0] - sums[1], moved, atol=1e-8)


@pytest.mark.parametrize("kind", ["perfect", "partial"])
@pytest.mark.parametrize("structure", [ms.Matching, ms.BipartiteMatching])
def test_what_the_model_is_sure_of_counts_for_nothing(kind, structure, rng):
    """Undecided units: the mean over nodes of 1 - Σ p² by what each may do, times all units."""
    one = structure(8, kind=kind) if structure is ms.Matching else structure(6, 6, kind)
    y = [one.decode(vertices(one)[3])]
    batch = ms.Batch.of(one, y)
    dual = Dual(batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 2))),
                Entropy.of(batch, 0.5), Regulariser.of(2, 0.5))  # fmt: skip
    low, high = one.nodes_of(np.arange(one.size))
    counted = []
    for factor in (0.0, 1.0, 3.0, 30.0):
        theta = factor * np.array([1.0, -0.5])
        _, tau = moments(dual, theta)
        each = np.zeros((one.n_nodes, one.n_nodes))
        each[low, high] = each[high, low] = tau
        alone = np.maximum(1.0 - each.sum(axis=1), 0.0)
        doubt = 1.0 - (each**2).sum(axis=1) - alone**2
        found = Sandwich.of(dual, theta, tau)
        assert found.undecided == pytest.approx(found.units * doubt.mean(), abs=1e-6)
        counted.append(found.undecided)
    assert counted[0] > 0.5 * found.units
    assert sorted(counted, reverse=True) == counted
    assert counted[-1] < 0.5 * counted[0]


def test_misuse_is_refused(rng):
    batch, pairs, _ = asked(8, rng)
    dual, theta, tau = solved(batch, pairs, 0.5)
    with pytest.raises(ValueError, match="a contrast has 11 finite entries"):
        Sandwich.of(dual, theta, tau).contrast([1.0])
    boxed = Dual(batch, pairs, dual.entropy, Regulariser.of(pairs.d, lower=0.0))
    with pytest.raises(ValueError, match="need a ridge"):
        Sandwich.of(boxed, theta, tau)
    chain = problem(ms.chain(3, 2), 3, rng, target=[[0, 1, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match="for observed matchings, not for a FactorGraph"):
        Sandwich.of(chain, np.zeros(3), moments(chain, np.zeros(3))[1])
