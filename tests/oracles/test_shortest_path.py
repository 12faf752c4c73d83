"""ShortestPath equals brute force, with parallel arcs, dead ends, and scores of any sign."""

import numpy as np
import pytest
from mlestruct_oracles.shortest_path import ShortestPath

from mlestruct.errors import Infeasible
from mlestruct.structures import Paths
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices


def lattice(n):
    """Right and down moves of an n × n grid of nodes, numbered backwards."""
    node = n * n - 1 - np.arange(n * n).reshape(n, n)
    right = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    down = np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)
    return Paths(np.concatenate([right, down]), n * n - 1, 0)


PARALLEL = [(0, 1), (0, 1), (1, 2), (1, 2), (0, 2)]
DEAD_ENDS = [(0, 1), (1, 3), (0, 2), (2, 3), (2, 4), (5, 0), (5, 1), (3, 6), (4, 7)]
GRAPHS = [
    lattice(3),
    lattice(4),
    Paths(PARALLEL, 0, 2),
    Paths(DEAD_ENDS, 0, 3),
    Paths([(0, 1)], 0, 1),
]


def pinned(paths, rng):
    """Some arcs forbidden, one of a remaining path's required."""
    listed = vertices(paths)
    kept = listed[rng.integers(len(listed))]
    fixed = np.where((rng.random(paths.size) < 0.3) & (kept == 0), 0, -1).astype(np.int8)
    fixed[rng.choice(np.flatnonzero(kept))] = 1
    return Paths(paths.arcs, paths.source, paths.sink, fixed=fixed)


def test_ten_thousand_instances_equal_brute_force(instances):
    for paths in GRAPHS:
        instances.agree(ShortestPath(), paths, vertices(paths), 2000)


def test_forbidden_and_required_arcs_equal_brute_force(instances):
    """Whatever is fixed, the best path that obeys; at the scale of the scores, not of their sum."""
    for paths in GRAPHS[:4] * 10:
        fixed = pinned(paths, instances.rng)
        instances.agree(ShortestPath(), fixed, vertices(fixed), 250)


def test_random_dags_of_mixed_sizes():
    """Any acyclic graph, nodes numbered in any order, all in one batch."""
    rng = np.random.default_rng(0)
    structures = []
    while len(structures) < 60:
        order = rng.permutation(6)
        tails, heads = np.triu_indices(6, 1)
        kept = rng.random(len(tails)) < 0.6
        arcs = np.stack([order[tails[kept]], order[heads[kept]]], axis=1)
        if len(arcs) and len(vertices(Paths(arcs, order[0], order[5]))):
            structures.append(Paths(rng.permutation(arcs), order[0], order[5]))
    batch = Batch.of(structures)
    scores = rng.standard_normal(batch.size)
    answers, upper = ShortestPath().many(batch, scores)
    for m, paths in enumerate(structures):
        part = batch.coordinates(m)
        best = (vertices(paths) @ scores[part]).max()
        assert upper[m] == pytest.approx(best)
        assert scores[part] @ answers[part] == pytest.approx(best)


def test_a_cycle_is_refused_and_named():
    with pytest.raises(ValueError, match="cycle through node"):
        Paths([(0, 1), (1, 2), (2, 1), (2, 3)], 0, 3)


def test_no_way_through_names_source_and_sink():
    batch = Batch.of([Paths([(0, 1), (1, 2)], 0, 2), Paths([(0, 1), (2, 1)], 0, 2)])
    with pytest.raises(Infeasible, match="example 1: no allowed path leads from node 0 to node 2"):
        ShortestPath().many(batch, np.zeros(4))
