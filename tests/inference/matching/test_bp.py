"""Matchings above ρ = ½ end where messages creep or fail."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.matching import Scaling
from mlestruct.structures.entropy import Entropy


@pytest.mark.parametrize("ahead", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("nodes", [3, 5, 7])
def test_marginals_that_creep_towards_a_vertex_reach_it(nodes, ahead):
    """Around a ring of two matchings, the even one better by ``ahead``, with an unlikely chord.

    Bethe's entropy at ρ = 1 is 0 along a ring: messages drift by so much a round, for ever.
    """
    ring = [(v, (v + 1) % (2 * nodes)) for v in range(2 * nodes)]
    structure = ms.Matching(2 * nodes, [*ring, (0, 2)])
    tail, head = structure.ends.T
    even = (tail % 2 == 0) & (head - tail == 1)
    scores = np.where(even, ahead / nodes, np.where(head - tail == 2, -20.0, 0.0))
    batch = ms.Batch.of(structure, count=1)
    found = Scaling(1.0).many(batch, scores)
    np.testing.assert_allclose(found.tau, even, atol=1e-6)
    value = Entropy.of(batch, 1.0).each(found.tau) + scores @ found.tau
    assert -1e-9 <= Scaling(1.0).above(batch, scores, found.warm, value) - value <= 1e-6


@pytest.mark.parametrize("rho", [0.6, 0.75, 0.9, 1.0])
def test_where_messages_fail_value_and_bound_meet(rho):
    """Two components, one nearly bipartite."""
    pairs = [(u, v) for h in (0, 4) for u in range(h, h + 4) for v in range(u + 1, h + 4)]
    structure = ms.Matching(8, pairs)
    batch = ms.Batch.of(structure, count=1)
    entropy = Entropy.of(batch, rho)
    for seed in (16, 17, 25, 41, 43):
        scores = 10.0 * np.random.default_rng(seed).standard_normal(structure.size)
        found = Scaling(rho).many(batch, scores)
        value = entropy.each(found.tau) + scores @ found.tau
        assert 0 <= found.log_z[0] - value[0] + 1e-9 <= 1e-5
