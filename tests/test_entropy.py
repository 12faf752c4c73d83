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
    entropy, tau, delta = Entropy.of(batch), inner_point(MIXED), inner_point(MIXED, 1)
    delta = delta - tau
    slope = curvature = 0.0
    for m, structure in enumerate(MIXED):
        part = batch.coordinates(m)
        one = Entropy.of(Batch.of(structure, weight=[batch.weight[m]]))
        assert entropy.each(tau)[m] == pytest.approx(one.each(tau[part])[0])
        np.testing.assert_allclose(entropy.grad(tau)[part], one.grad(tau[part]))
        line = one.line(tau[part], delta[part])
        slope, curvature = slope + line.slope(0.3), curvature + line.curvature(0.3)
    whole = entropy.line(tau, delta)
    assert whole.slope(0.3) == pytest.approx(slope)
    assert whole.curvature(0.3) == pytest.approx(curvature)
    assert curvature < 0


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.7])
def test_the_line_search_derivative_is_the_finite_difference(gamma):
    """d/dγ Σ w H(τ + γ(s − τ)), and its derivative, along steps towards vertices."""
    batch = Batch.of(MIXED, weight=[1, 2, 0.5, 1, 3, 1])
    rng = np.random.default_rng(2)
    entropy, tau, h = Entropy.of(batch), inner_point(MIXED), 1e-6
    listed = [vertices(s) for s in MIXED]
    vertex = np.concatenate([v[rng.integers(len(v))] for v in listed])
    line = entropy.line(tau, vertex - tau)

    def value(at):
        return float(batch.weight @ entropy.each(tau + at * (vertex - tau)))

    difference = (value(gamma + h) - value(gamma - h)) / (2 * h)
    assert line.slope(gamma) == pytest.approx(difference, rel=1e-6, abs=1e-6)
    bend = (line.slope(gamma + h) - line.slope(gamma - h)) / (2 * h)
    assert line.curvature(gamma) == pytest.approx(bend, rel=1e-5)


def test_at_the_boundary_values_are_exact_and_slopes_finite():
    """0 log 0 = 0; logarithms, never probabilities, are clipped."""
    batch = Batch.of(MIXED)
    entropy = Entropy.of(batch)
    vertex = np.concatenate([vertices(s)[0] for s in MIXED])
    assert np.abs(entropy.each(vertex)).max() == 0.0
    assert np.isfinite(entropy.grad(vertex)).all()
    line = entropy.line(vertex, inner_point(MIXED) - vertex)
    assert np.isfinite([line.slope(0.0), line.curvature(0.0)]).all()
    assert line.slope(0.0) > 0


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
    assert Entropy.of(batch, rho).bound.kind == kind
    assert Entropy.of(batch, rho, temperature=0.5).bound.kind == "none"


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
