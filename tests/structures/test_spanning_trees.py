"""Edge appearance against all spanning trees and the dense pseudo-inverse."""

import itertools

import numpy as np
import pytest

from mlestruct.structures.spanning_trees import (
    components,
    count_spanning_trees,
    edge_appearance,
    heaviest_tree,
    tightest_appearance,
)


def graph(rng, n, density=0.6):
    return [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]


def forests(n, edges):
    """All spanning forests with as many components as the graph, as 0/1 rows."""
    size = n - len(set(components(n, edges).tolist()))
    rows = []
    for chosen in itertools.combinations(range(len(edges)), size):
        part = [edges[e] for e in chosen]
        if n - len(set(components(n, part).tolist())) == size:
            rows.append(np.isin(np.arange(len(edges)), chosen).astype(float))
    return np.array(rows)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_appearance_is_the_share_of_weighted_trees(n, rng):
    for _ in range(5):
        edges = graph(rng, n)
        kappa = rng.uniform(0.2, 3.0, size=len(edges))
        trees = forests(n, edges)
        weight = np.prod(np.where(trees > 0, kappa, 1.0), axis=1)
        expected = weight @ trees / weight.sum()
        np.testing.assert_allclose(edge_appearance(n, edges, kappa), expected, atol=1e-12)
        if len(set(components(n, edges).tolist())) == 1:
            assert count_spanning_trees(n, edges) == len(trees)


def test_appearance_is_kappa_times_the_effective_resistance(rng):
    n = 40
    edges = np.array(graph(rng, n, 0.1))
    kappa = rng.uniform(0.2, 3.0, size=len(edges))
    B = np.zeros((len(edges), n))
    B[np.arange(len(edges)), edges[:, 0]], B[np.arange(len(edges)), edges[:, 1]] = 1.0, -1.0
    L = np.linalg.pinv(B.T @ np.diag(kappa) @ B)
    expected = kappa * np.einsum("ei,ij,ej->e", B, L, B)
    found = edge_appearance(n, edges, kappa)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert found.sum() == pytest.approx(n - len(set(components(n, edges).tolist())))


def test_disconnected_graphs_have_no_tree_but_forests():
    edges = [(0, 1), (2, 3)]
    assert count_spanning_trees(5, edges) == 0
    np.testing.assert_allclose(edge_appearance(5, edges), 1.0)


def test_the_heaviest_tree_is_heaviest(rng):
    for _ in range(20):
        edges = graph(rng, 5)
        weights = rng.normal(size=len(edges))
        best = (forests(5, edges) @ weights).max(initial=-np.inf) if edges else 0.0
        assert heaviest_tree(5, edges, weights) @ weights == pytest.approx(best)


def test_the_tightest_weights_minimise_over_all_trees(rng):
    """A convex function with known minimum: ½‖ρ − target‖² for a target inside the polytope."""
    edges = list(itertools.combinations(range(5), 2))
    trees = forests(5, edges)
    target = rng.dirichlet(np.ones(len(trees))) @ trees
    found = tightest_appearance(
        5,
        edges,
        lambda rho: (0.5 * ((rho - target) ** 2).sum(), target - rho, np.eye(len(edges))),
        tol=1e-12,
    )
    assert found.log_z <= 1e-12
    np.testing.assert_allclose(found.rho, target, atol=2e-6)


@pytest.mark.parametrize(
    ("n", "edges", "weights", "message"),
    [
        (2, [(0, 2)], None, "there are 2 nodes"),
        (2, [(1, 1)], None, "to itself"),
        (3, [(0, 1), (1, 0)], None, "twice"),
        (2, [(0, 1)], [0.0], "must be positive"),
    ],
)
def test_misuse(n, edges, weights, message):
    with pytest.raises(ValueError, match=message):
        edge_appearance(n, edges, weights)
