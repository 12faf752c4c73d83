"""Inference with the oracle alone: intervals that hold what they promise."""

import itertools

import numpy as np
import pytest

from mlestruct.inference import best, marginals
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import resolve
from mlestruct.structures import BipartiteMatching, Custom, Paths, chain, tree
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

EXACT = [
    chain(4, 3),
    tree([(0, 1), (0, 2), (2, 3)], [2, 3, 2, 2]),
    chain(3, 3).forbid([(1, 0)], [(0, (0, 1))]),
    Paths([(0, 1), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4)], 0, 3),
]


def enumerated(structure, scores):
    """log Z and marginals of every row of scores."""
    listed = vertices(structure)
    energy = scores @ listed.T
    top = energy.max(axis=1, keepdims=True)
    weight = np.exp(energy - top)
    total = weight.sum(axis=1, keepdims=True)
    return (top + np.log(total)).ravel(), weight / total @ listed


@pytest.mark.parametrize("structure", EXACT)
def test_marginals_are_exact_where_the_entropy_is(structure):
    scores = 2 * np.random.default_rng(0).standard_normal((5, structure.size))
    log_z, expected = enumerated(structure, scores)
    batch = Batch.of(structure, count=5)
    assert marginals(batch, scores.ravel()).bound.kind == "exact"
    result = marginals(batch, scores.ravel(), solver=FrankWolfe(tol=1e-8))
    assert result.bound.kind == "upper"
    assert "±" in result.bound.why
    assert (result.lower <= log_z + 1e-9).all()
    assert (result.upper >= log_z - 1e-9).all()
    assert (result.upper - result.lower).max() <= 1e-5
    np.testing.assert_allclose(result.tau.reshape(5, -1), expected, atol=2e-3)


@pytest.mark.parametrize("step", ["pairwise", "block"])
@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("structure", EXACT)
def test_uniform_start_with_huge_scores(structure, scale, step):
    """The gap never lies on the way from the uniform point to what is almost a vertex."""
    scores = scale * np.random.default_rng(1).standard_normal((3, structure.size))
    log_z, _ = enumerated(structure, scores)
    batch = Batch.of(structure, count=3)
    tol = 1e-9 * (1 + np.abs(log_z))
    for rounds in (1, 3, 30):
        solver = FrankWolfe(tol=0, rounds=rounds, step=step)
        result = marginals(batch, scores.ravel(), resolve(None, batch), solver=solver)
        assert (result.lower <= log_z + tol).all()
        assert (result.upper >= log_z - tol).all()
        assert result.certificate.gap >= log_z.sum() - result.lower.sum() - 3 * tol.max()


def spectral_radius(weights):
    """MATH: the Bethe optimum is the best permutation iff this is at most 1; and its score."""
    n = len(weights)
    listed = vertices(BipartiteMatching(n))
    chosen = listed[(listed @ weights.ravel()).argmax()].reshape(n, n)
    column = chosen.argmax(axis=1)
    ratio = np.exp(weights[:, column] - weights[np.arange(n), column][:, None])
    np.fill_diagonal(ratio, 0.0)
    return np.abs(np.linalg.eigvals(ratio)).max(), (chosen * weights).sum()


DOMINANT = np.log([[1.0, 0.2, 0.5], [0.3, 1.5, 0.4], [0.7, 0.6, 2.0]])


@pytest.mark.parametrize("step", ["pairwise", "block"])
def test_a_bethe_optimum_exactly_on_a_vertex_gets_no_wrong_gap(step):
    """Where the spectral rule proves the permutation optimal, its score lies in the interval."""
    rng = np.random.default_rng(2)
    tables = [DOMINANT]
    while len(tables) < 12:
        table = rng.choice([2.0, 4.0, 8.0]) * rng.standard_normal((3, 3))
        if spectral_radius(table)[0] <= 1:
            tables.append(table)
    radius, score = np.array([spectral_radius(table) for table in tables]).T
    assert radius[0] <= 1
    assert score[0] == pytest.approx(np.log(3))
    batch = Batch.of(BipartiteMatching(3), count=len(tables))
    flat = np.concatenate([table.ravel() for table in tables])
    for rounds in (2, 12, 120):
        solver = FrankWolfe(tol=0, rounds=rounds, step=step)
        result = marginals(batch, flat, rho=1.0, solver=solver)
        assert (result.lower <= score + 1e-9 * (1 + np.abs(score))).all()
        assert (result.upper >= score - 1e-9 * (1 + np.abs(score))).all()
    if step == "pairwise":
        assert (result.upper - result.lower).max() <= 1e-3


def test_a_bethe_optimum_inside_is_left_inside():
    """Spectral radius above 1: the value exceeds every permutation's score."""
    table = 0.3 * np.random.default_rng(3).standard_normal((3, 3))
    radius, score = spectral_radius(table)
    assert radius > 1
    result = marginals(
        Batch.of(BipartiteMatching(3)), table.ravel(), rho=1.0, solver=FrankWolfe(tol=1e-7)
    )
    assert result.lower[0] > score + 0.01
    assert result.lower[0] <= enumerated(BipartiteMatching(3), table.reshape(1, -1))[0][0]


def test_closed_forms_of_equal_weights():
    """n log n + n(n−1) log(1 − 1/n) for Bethe, n log n at ρ = ½, log n! between them."""
    for n in (2, 3, 6):
        batch, zero = Batch.of(BipartiteMatching(n)), np.zeros(n * n)
        bethe = marginals(batch, zero, rho=1.0, solver=FrankWolfe(tol=1e-9))
        half = marginals(batch, zero, rho=0.5, solver=FrankWolfe(tol=1e-9))
        assert bethe.lower[0] == pytest.approx(n * np.log(n) + n * (n - 1) * np.log(1 - 1 / n))
        assert half.upper[0] == pytest.approx(n * np.log(n))


def test_relabelling_relabels_the_marginals():
    rng = np.random.default_rng(4)
    table = 2 * rng.standard_normal((4, 4))
    rows, columns = rng.permutation(4), rng.permutation(4)
    moved = table[rows][:, columns]
    batch = Batch.of(BipartiteMatching(4), count=2)
    flat = np.concatenate([table.ravel(), moved.ravel()])
    result = marginals(batch, flat, solver=FrankWolfe(tol=1e-8))
    first, second = result.tau.reshape(2, 4, 4)
    np.testing.assert_allclose(first[rows][:, columns], second, atol=1e-3)
    assert result.lower[0] == pytest.approx(result.lower[1], abs=1e-5)


def test_a_temperature_is_a_scale():
    """max ⟨η, τ⟩ + T·H = T · (the same at η/T and T = 1)."""
    structure, temperature = chain(3, 2), 0.25
    score = np.random.default_rng(5).standard_normal(structure.size)
    batch, solver = Batch.of(structure), FrankWolfe(tol=1e-9)
    cold = marginals(batch, score, temperature=temperature, solver=solver)
    plain = marginals(batch, score / temperature, solver=solver)
    assert cold.lower[0] == pytest.approx(temperature * plain.lower[0], abs=1e-6)
    np.testing.assert_allclose(cold.tau, plain.tau, atol=1e-3)
    frozen = marginals(batch, score, temperature=0.0, solver=solver)
    assert frozen.lower[0] == pytest.approx((vertices(structure) @ score).max(), abs=1e-6)


def test_scores_come_flat_or_in_rows_and_in_the_right_number():
    batch = Batch.of(chain(2, 2), count=2)
    rows = np.random.default_rng(7).standard_normal((2, 8))
    solver = FrankWolfe(rounds=3)
    flat = marginals(batch, rows.ravel(), solver=solver)
    np.testing.assert_array_equal(marginals(batch, rows, solver=solver).tau, flat.tau)
    for ask in (marginals, best):
        with pytest.raises(ValueError, match="15 scores for 16 coordinates"):
            ask(batch, np.zeros(15))


def test_a_larger_rho_gives_a_smaller_value():
    """log Z_ρ decreases in ρ, from Shearer's bound to Bethe's."""
    table = np.random.default_rng(8).standard_normal(16)
    solver, batch = FrankWolfe(tol=1e-7), Batch.of(BipartiteMatching(4))
    found = [marginals(batch, table, rho=rho, solver=solver) for rho in (0, 0.25, 0.5, 0.75, 1)]
    for more, less in itertools.pairwise(found):
        assert more.lower[0] > less.upper[0]


def test_predictions_look_for_the_interior_once(rng):
    asked = []

    def best(score):
        asked.append(score.tobytes())
        return np.eye(4)[score.argmax()]

    batch = Batch.of([Custom(4, exactly_one=[range(4)]).carrying(k, k) for k in range(5)])
    marginals(batch, rng.standard_normal(20), best)
    first = asked[0]
    assert asked.count(first) == 5
