"""Interior points of labelled graphs under clamps."""

import numpy as np
import pytest

from mlestruct.structures import FactorGraph, grid


@pytest.mark.parametrize("seed", range(20))
def test_a_clamped_graph_knows_its_middle(seed):
    """Inside, and positive exactly on what an answer may use; unknown under forbids."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([2, 3, 2, 1], [(0, 1, 2), (1, 3)]) if seed % 2 else grid(2, 3, 3)
    clamped = graph.clamp(
        np.where(rng.random(graph.n_nodes) < 0.4, rng.integers(0, graph.cards), -1)
    )
    for one in (graph, clamped, graph.forbid([(0, 1)]), clamped.clamp([-1] * graph.n_nodes)):
        point = one.interior()
        assert one.contains(point)
        np.testing.assert_array_equal(point > 0, ~one.closed())
    less = graph.forbid([], [(0, [0] * (3 if seed % 2 else 2))])
    assert less.interior() is None
