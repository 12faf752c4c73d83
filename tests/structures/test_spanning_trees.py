"""Edge appearance against all spanning trees and the dense pseudo-inverse."""

import itertools

import numpy as np
import pytest

from mlestruct.structures import grid
from mlestruct.structures.spanning_trees import (
    components,
    edge_appearance,
    heaviest_tree,
    rooted_appearance,
)
from tests.reference.spanning_trees import count_spanning_trees


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
def test_appearance_is_the_share_of_trees(n, rng):
    for _ in range(5):
        edges = graph(rng, n)
        trees = forests(n, edges)
        expected = trees.mean(axis=0)
        np.testing.assert_allclose(edge_appearance(n, edges), expected, atol=1e-12)
        if len(set(components(n, edges).tolist())) == 1:
            assert count_spanning_trees(n, edges) == len(trees)


def oriented(n, edges, tree, root):
    """For both ends of every edge, whether it is in the tree with this end nearer the root."""
    ends, seen, queue = np.zeros((len(edges), 2)), {root}, [root]
    for node in queue:
        for e in np.flatnonzero(tree):
            side = list(edges[e]).index(node) if node in edges[e] else None
            if side is not None and edges[e][1 - side] not in seen:
                ends[e, side] = 1.0
                seen.add(edges[e][1 - side])
                queue.append(edges[e][1 - side])
    return ends


def test_appearance_by_the_end_nearer_the_root(rng):
    """By all trees: the first node is the root, on grids every node as likely as another."""
    for _ in range(5):
        edges = [(0, k) for k in range(1, 5)] + [pair for pair in graph(rng, 5) if 0 not in pair]
        trees = forests(5, edges)
        expected = sum(oriented(5, edges, tree, 0) for tree in trees) / len(trees)
        np.testing.assert_allclose(rooted_appearance(5, edges), expected, atol=1e-12)
    for rows, columns in ((2, 2), (2, 4), (3, 3)):
        edges = grid(rows, columns, 2).scope.reshape(-1, 2)
        edges = rng.permuted(edges[rng.permutation(len(edges))], axis=1)
        n, trees = rows * columns, forests(rows * columns, edges.tolist())
        expected = sum(oriented(n, edges, t, r) for t in trees for r in range(n)) / n / len(trees)
        np.testing.assert_allclose(rooted_appearance(n, edges), expected, atol=1e-12)


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


@pytest.mark.parametrize(
    ("n", "edges", "message"),
    [
        (2, [(0, 2)], "there are 2 nodes"),
        (2, [(1, 1)], "to itself"),
        (3, [(0, 1), (1, 0)], "twice"),
    ],
)
def test_misuse(n, edges, message):
    with pytest.raises(ValueError, match=message):
        edge_appearance(n, edges)
