"""Newton's systems on two-sided graphs keep their digits however nearly free a direction is."""

from __future__ import annotations

import numpy as np
from mlestruct.native._door import MatchingAim, MatchingGraph, matching_scale, matching_solve

import mlestruct as ms
from mlestruct.inference.matching.scaling import PATIENCE, prepared

PTR, HEAD = np.array([0, 2, 4, 5, 5, 5, 5]), np.array([3, 4, 4, 5, 5], dtype=np.int32)
PATH = [(0, 3), (0, 4), (1, 4), (1, 5), (2, 5)]


def solved(weight, ground, right):
    p, strict, component = np.empty(6), np.ones(6, dtype=bool), np.zeros(6, dtype=np.int64)
    graph = MatchingGraph(6, 5, PTR, HEAD, strict, component, True, 0, 0)
    matching_solve(graph, weight, ground, right, 0.0, p)
    return p


def test_it_solves_the_signless_system(rng):
    weight, ground = rng.random(5), rng.random(6)
    matrix = np.diag(ground)
    for (u, v), w in zip(PATH, weight, strict=True):
        matrix[[u, u, v, v], [u, v, u, v]] += w
    right = rng.standard_normal(6)
    np.testing.assert_allclose(solved(weight, ground, right), np.linalg.solve(matrix, right))


def test_tiny_weights_keep_their_digits():
    """Along a path the sum of an edge's ends is what flows through it over its weight."""
    weight = 2.0 ** np.array([0, -44, -1, -42, -10])
    flow = 2.0 ** np.array([-1, -44, -2, -45, -10])  # whose sums at the nodes are exact
    right = np.bincount(np.array(PATH).ravel(), weights=np.repeat(flow, 2), minlength=6)
    p = solved(weight, np.zeros(6), right)
    sums = np.array([p[u] + p[v] for u, v in PATH])
    np.testing.assert_allclose(sums, flow / weight, rtol=1e-7)


def test_scaling_ends_where_rows_hardly_share_columns(rng):
    """Points matched to noisy copies: near-certain pairs in cycles of weak links. No creeping."""
    n = 30
    graph, _ = prepared(ms.BipartiteMatching(n))
    for _ in range(5):
        points = rng.random((n, 2))
        copies = points + 0.03 * rng.standard_normal((n, 2))
        score = -400.0 * ((points[:, None] - copies[None]) ** 2).sum(axis=2).ravel()
        x, tau, report = np.zeros(2 * n), np.empty(n * n), np.zeros(5)
        matching_scale(
            graph.native, MatchingAim(0.0, 0.5, 1e-11, 3000), score, True, x, tau, report
        )
        assert report[0] <= 1e-11
        assert report[1] <= PATIENCE
