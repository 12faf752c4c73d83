"""Forests against the recursions of chains, whatever the scale."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.forests import ForwardBackward


def by_numpy(graph, score):
    """The chain recursions in the log domain, one position after the other."""
    start, table = graph.node_start, graph.table_start
    nodes = [score[start[v] : start[v + 1]] for v in range(graph.n_nodes)]
    pairs = [
        score[table[t] : table[t + 1]].reshape(len(nodes[t]), -1) for t in range(graph.n_factors)
    ]
    ahead, behind = [nodes[0]], [np.zeros_like(nodes[-1])]
    for node, pair in zip(nodes[1:], pairs, strict=True):
        ahead.append(np.logaddexp.reduce(ahead[-1][:, None] + pair, axis=0) + node)
    for node, pair in zip(nodes[:0:-1], pairs[::-1], strict=True):
        behind.insert(0, np.logaddexp.reduce(pair + (node + behind[0])[None, :], axis=1))
    log_z = np.logaddexp.reduce(ahead[-1])
    tau = [a + b for a, b in zip(ahead, behind, strict=True)] + [
        (ahead[t][:, None] + pairs[t] + (nodes[t + 1] + behind[t + 1])[None, :]).ravel()
        for t in range(graph.n_factors)
    ]
    return log_z, np.exp(np.concatenate(tau) - log_z)


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0, 3000.0])
def test_chains_agree_with_their_recursions(scale, rng):
    graphs = [
        ms.chain(5, 4),
        ms.FactorGraph([2, 4, 2, 2], [(0, 1), (1, 2), (2, 3)]),
        ms.chain(1, 3),
    ]
    batch = ms.Batch.of([graphs[i] for i in (0, 1, 0, 2, 0, 1)])
    scores = scale * rng.standard_normal(batch.size)
    for m in (0, 2):  # tied tables, within an example and across two
        first = graphs[0].node_start[-1]
        tied = scale * np.random.default_rng(5).standard_normal(16)
        scores[batch.coordinates(m)][first:] = np.tile(tied, 4)
    scores[batch.coordinates(1)][10:] = scale * np.tile(np.arange(8.0), 3)[:20]
    log_z, tau, _ = ForwardBackward().many(batch, scores)
    for m in range(len(batch)):
        part = batch.coordinates(m)
        expected = by_numpy(batch.structure(m), scores[part])
        assert log_z[m] == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(tau[part], expected[1], atol=1e-9)


def test_a_forbidden_transition_by_score_is_exact(rng):
    """−inf on a pair is a probability of zero."""
    graph = ms.chain(4, 3)
    batch = ms.Batch.of(graph, count=1)
    score = rng.standard_normal(graph.size)
    score[graph.entry(1, (0, 2))] = -np.inf
    log_z, tau, _ = ForwardBackward().many(batch, score)
    expected = by_numpy(graph, score)
    assert log_z[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(tau, expected[1], atol=1e-12)
    assert tau[graph.entry(1, (0, 2))] == 0.0


@pytest.mark.parametrize("scale", [0.3, 3.0, 300.0])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_forbidden_or_clamped_is_never_used(seed, scale):
    """As if it scored −∞: states and transitions."""
    rng = np.random.default_rng(seed)
    n, states = int(rng.integers(2, 7)), int(rng.integers(3, 6))
    graph = ms.chain(n, states)
    truth = rng.integers(states, size=n)  # one labelling stays
    nodes = [(v, k) for v in range(n) for k in range(states) if k != truth[v]]
    pairs = [(t, (i, j)) for t in range(n - 1) for i in range(states) for j in range(states)]
    pairs = [(t, p) for t, p in pairs if p != (truth[t], truth[t + 1])]
    shut = (
        [one for one in nodes if rng.random() < 0.2],
        [one for one in pairs if rng.random() < 0.4],
    )
    closed = graph.forbid(*shut)
    closed = closed.clamp({0: int(truth[0])}) if seed % 2 else closed
    batch = ms.Batch.of([closed, graph, closed])
    scores = scale * rng.standard_normal(batch.size)
    asked = scores.copy()
    log_z, tau, _ = ForwardBackward().many(batch, scores)
    np.testing.assert_array_equal(scores, asked)
    for m in range(3):
        part = batch.coordinates(m)
        score = np.where(batch.structure(m).closed(), -np.inf, scores[part])
        expected = by_numpy(graph, score)
        assert log_z[m] == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(tau[part], expected[1], atol=1e-9)
        assert (tau[part][score == -np.inf] == 0).all()
