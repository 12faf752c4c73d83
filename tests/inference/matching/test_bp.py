"""Messages of matchings leap where they creep, and ascent takes over where they fail."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.matching.scaling import Scaling, prepared
from mlestruct.native._door import MatchingAim, MatchingState, matching_propagate
from mlestruct.structures.entropy import Entropy


def propagated(graph, scores, rho, residual):
    """(τ, log(1 − τ), report) of messages from a cold start at x = 0 and τ = 0.1."""
    tau, off, report = np.full(graph.live, 0.1), np.empty(graph.live), np.zeros(5)
    x, sent, mode = np.zeros(graph.nodes), np.empty((2, graph.live)), np.zeros(1, np.uint8)
    state = MatchingState(1, graph.nodes, graph.live, x, sent, mode)
    aim, score = MatchingAim(1 - 2 * rho, rho, residual, 10_000), graph.gather(scores[None])[0]
    matching_propagate(graph.native, aim, state, score, tau, off, report)
    return tau, off, report


@pytest.mark.parametrize("ahead", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("nodes", [3, 5, 7])
def test_messages_that_creep_towards_a_vertex_leap(nodes, ahead):
    """Around a ring of two matchings, the even one better by ``ahead``, with an unlikely chord.

    Bethe's entropy at ρ = 1 is 0 along a ring: messages drift by so much a round, for ever.
    """
    ring = [(v, (v + 1) % (2 * nodes)) for v in range(2 * nodes)]
    structure = ms.Matching(2 * nodes, [*ring, (0, 2)])
    tail, head = structure.ends.T
    even = (tail % 2 == 0) & (head - tail == 1)
    scores = np.where(even, ahead / nodes, np.where(head - tail == 2, -20.0, 0.0))
    graph, _ = prepared(structure)
    tau, _, report = propagated(graph, scores, 1.0, 1e-10)
    assert report[1] <= 300
    np.testing.assert_allclose(graph.spread(tau[None])[0], even, atol=1e-6)


@pytest.mark.parametrize("rho", [0.6, 0.75, 0.9, 1.0])
def test_where_messages_fail_ascent_takes_over(rho):
    """Two components, one nearly bipartite: value and bound meet for every ρ."""
    pairs = [(u, v) for h in (0, 4) for u in range(h, h + 4) for v in range(u + 1, h + 4)]
    structure = ms.Matching(8, pairs)
    batch = ms.Batch.of(structure, count=1)
    entropy = Entropy.of(batch, rho)
    for seed in (16, 17, 25, 41, 43):
        scores = 10.0 * np.random.default_rng(seed).standard_normal(structure.size)
        found = Scaling(rho).many(batch, scores)
        value = entropy.each(found.tau) + scores @ found.tau
        assert 0 <= found.log_z[0] - value[0] + 1e-9 <= 1e-5
