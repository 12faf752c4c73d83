"""Entropies in batches: what the laws of one structure do not see."""

import numpy as np
import pytest

from mlestruct.structures import BipartiteMatching, Custom, FactorGraph, Paths, chain, grid
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.testing import vertices

MIXED = [
    BipartiteMatching(3, kind="partial"),
    chain(3, 2),
    Paths([(0, 1), (0, 1), (1, 2), (0, 2)], 0, 2),
    BipartiteMatching(2, 3, "one_sided"),
    Custom(4, exactly_one=[[0, 1], [1, 2]]),
    BipartiteMatching(3, kind="partial"),
]


def inner_point(structures, seed=0):
    rng = np.random.default_rng(seed)
    listed = [vertices(s) for s in structures]
    return np.concatenate([rng.dirichlet(np.ones(len(v))) @ v for v in listed])


def test_a_mixed_batch_is_its_examples_one_by_one():
    batch = Batch.of(MIXED, weight=[1, 2, 3, 4, 5, 6])
    entropy, tau = Entropy.of(batch), inner_point(MIXED)
    for m, structure in enumerate(MIXED):
        part = batch.coordinates(m)
        one = Entropy.of(Batch.of(structure, weight=[batch.weight[m]]))
        assert entropy.each(tau)[m] == pytest.approx(one.each(tau[part])[0])
        np.testing.assert_allclose(entropy.grad(tau)[part], one.grad(tau[part]))


def test_the_gradient_is_the_finite_difference():
    batch = Batch.of(MIXED)
    rng = np.random.default_rng(2)
    entropy, tau, h = Entropy.of(batch), inner_point(MIXED), 1e-6
    vertex = np.concatenate([v[rng.integers(len(v))] for v in map(vertices, MIXED)])
    step = vertex - tau
    difference = (entropy.each(tau + h * step) - entropy.each(tau - h * step)) / (2 * h)
    np.testing.assert_allclose(batch.totals(entropy.grad(tau) * step), difference, rtol=1e-6)


def test_at_the_boundary_values_are_exact_and_slopes_finite():
    """0 log 0 = 0; logarithms, never probabilities, are clipped."""
    batch = Batch.of(MIXED)
    entropy = Entropy.of(batch)
    vertex = np.concatenate([vertices(s)[0] for s in MIXED])
    assert np.abs(entropy.each(vertex)).max() == 0.0
    assert np.isfinite(entropy.grad(vertex)).all()
    assert entropy.grad(vertex) @ (inner_point(MIXED) - vertex) > 0


def test_the_matching_entropy_is_the_formula_of_the_paper():
    """Σ −τ log τ − c(1−τ) log(1−τ) − Σ ρ (1−s) log(1−s), c = 1 − ρ_u − ρ_v."""
    structure = BipartiteMatching(2, 3, "partial")
    rho = np.array([0.1, 0.9, 0.3, 0.5, 0.7])
    tau = inner_point([structure])
    table = tau.reshape(2, 3)
    c = 1 - rho[:2, None] - rho[2:]
    slack = np.concatenate([1 - table.sum(axis=1), 1 - table.sum(axis=0)])
    expected = -(table * np.log(table) + c * (1 - table) * np.log(1 - table)).sum()
    expected -= (rho * slack * np.log(slack)).sum()
    entropy = Entropy.of(Batch.of(structure), rho)
    assert entropy.each(tau)[0] == pytest.approx(expected)


STATUS = [
    (chain(3, 2), None, "exact"),
    (chain(3, 2), 0.5, "upper"),
    (grid(2, 2), None, "upper"),
    (grid(2, 2), 1.0, "none"),
    (FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)]), 0.9, "none"),
    (FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)]), 2 / 3, "upper"),
    (BipartiteMatching(3), None, "upper"),
    (BipartiteMatching(3), 2 / 3, "upper"),
    (BipartiteMatching(3), 0.7, "none"),
    (BipartiteMatching(3), 1.0, "lower"),
    (BipartiteMatching(3, kind="partial"), 1.0, "lower"),
    (BipartiteMatching(2, 3, "one_sided"), 1.0, "none"),
    (BipartiteMatching(2, 3, "one_sided"), None, "upper"),
    (Paths([(0, 1), (0, 1)], 0, 1), None, "exact"),
    (Paths([(0, 1), (1, 2), (0, 2)], 0, 2), 0.5, "upper"),
    (Custom(3), None, "upper"),
    (Custom(3, exactly_one=[[0, 1], [1, 2]]), 1.0, "none"),
]


@pytest.mark.parametrize(("structure", "rho", "kind"), STATUS)
def test_every_value_carries_its_bound_status(structure, rho, kind):
    """A theorem's side of log Z, or none."""
    batch = Batch.of(structure)
    plain, half = Entropy.of(batch, rho), Entropy.of(batch, rho, temperature=0.5)
    assert plain.bound.kind == kind
    assert half.bound.kind == "none"
    tau = vertices(structure).mean(axis=0)
    np.testing.assert_allclose(half.each(tau), 0.5 * plain.each(tau))


def test_a_batch_is_only_as_bounded_as_its_weakest_example():
    square, line = BipartiteMatching(3), chain(2, 2)
    path = Paths([(0, 1), (0, 1)], 0, 1)
    assert Entropy.of(Batch.of([line, path])).bound.kind == "exact"
    assert Entropy.of(Batch.of([line, square])).bound.kind == "upper"
    assert Entropy.of(Batch.of([line, square]), 1.0).bound.kind == "lower"
    rhos = {square: 1.0, grid(2, 2): 0.5}
    assert Entropy.of(Batch.of(list(rhos)), lambda s: rhos[s]).bound.kind == "none"


def test_misuse_is_named():
    batch = Batch.of(grid(2, 3))
    with pytest.raises(ValueError, match="not provably concave"):
        Entropy.of(batch, 1.0)
    assert not Entropy.of(batch, 1.0, allow_nonconvex=True).concave
    assert Entropy.of(batch, 1.0, temperature=0.0).flat
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="temperature"):
            Entropy.of(batch, temperature=wrong)
    with pytest.raises(ValueError, match="not provably concave"):
        Entropy.of(Batch.of(BipartiteMatching(3)), 1.2)
    with pytest.raises(ValueError, match=r"BipartiteMatching: 2 numbers do not fit.*node"):
        Entropy.of(Batch.of(BipartiteMatching(3)), [0.5, 0.5])
    with pytest.raises(ValueError, match="not finite"):
        Entropy.of(Batch.of(chain(3, 2)), np.nan)
