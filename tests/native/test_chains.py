"""Kernels of chains, trees and tied weights against NumPy, at sizes around whole eights."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.errors import Infeasible
from mlestruct.inference.exact import solve
from mlestruct.inference.forests import ForwardBackward
from mlestruct.learning.tied import EIGHT
from mlestruct.native._door import (
    Sequences,
    forest_marginals,
    label_sequences,
    tied_marginals,
)
from mlestruct.structures.forests import forest_shape
from tests.inference.graph.test_forward_backward import by_numpy

SIZES = [1, 2, 3, 7, 8, 9, 16, 17, 25]
LENGTHS = [1, 2, 3, 8, 17]


@pytest.mark.parametrize("seed", range(20))
def test_chains_write_their_own_coordinates_and_no_others(seed):
    """Rows of eights end behind their tables: what is beside a chain stays as it is."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    graph = ms.FactorGraph(rng.choice(SIZES, n).tolist(), [(t, t + 1) for t in range(n - 1)])
    size, room = graph.size, 20
    around, tau = np.full(3 * size + 2 * room, np.nan), np.full(3 * size + 2 * room, 7.0)
    inside = slice(room, room + 3 * size)
    around[inside] = rng.standard_normal(3 * size)
    around[inside][size : 2 * size] = around[inside][:size]  # equal tables in two chains
    shape, log_z = forest_shape(graph), np.empty(2)
    offsets = np.array([0, 2 * size])  # the chain between them is left out
    forest_marginals(shape, 2, offsets, 3 * size, around[inside], tau[inside], log_z)
    for m, first in enumerate(room + offsets):
        expected = by_numpy(graph, around[first : first + size])
        assert log_z[m] == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(tau[first : first + size], expected[1], atol=1e-12)
        tau[first : first + size] = 7.0
    assert (tau == 7.0).all()


def draw_sequences(rng, states):
    """Sequences of drawn lengths, and rows of padded scores."""
    start = np.concatenate([[0], np.cumsum(rng.permutation(LENGTHS))])
    node = np.full((start[-1], -(-states // EIGHT) * EIGHT), -np.inf)
    node[:, :states] = rng.standard_normal((len(node), states))
    return Sequences(len(LENGTHS), start, len(node), states, node.shape[1]), node


@pytest.mark.parametrize("states", SIZES)
def test_chains_with_one_table_are_chains_of_equal_tables(states, rng):
    given, node = draw_sequences(rng, states)
    table = 3.0 * rng.standard_normal((states, states))
    table[0, -1] = table[0, -1] if states == 1 else -np.inf
    weight, top = rng.uniform(0.5, 2.0, given.count), table.max()
    found, log_z, pair = node.copy(), np.empty(given.count), np.empty((states, states))
    assert tied_marginals(given, weight, top, np.exp(table - top), found, log_z, pair)
    total = np.zeros((states, states))
    for m in range(given.count):
        part = slice(given.start[m], given.start[m + 1])
        graph = ms.chain(part.stop - part.start, states)
        score = np.concatenate(
            [node[part, :states].ravel(), np.tile(table.ravel(), graph.n_factors)]
        )
        value, tau, _ = ForwardBackward().many(ms.Batch.of(graph, count=1), score)
        assert log_z[m] == pytest.approx(value[0], rel=1e-12, abs=1e-12)
        ends = graph.node_start[-1]
        np.testing.assert_allclose(found[part, :states].ravel(), weight[m] * tau[:ends], atol=1e-12)
        total += weight[m] * tau[ends:].reshape(-1, states, states).sum(axis=0)
    np.testing.assert_allclose(pair, total, atol=1e-11)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_tied_chains_that_have_no_finite_sum_say_so(wrong, rng):
    given, node = draw_sequences(rng, 3)
    node[5, : 3 if wrong < 0 else 1] = wrong
    log_z, pair = np.empty(given.count), np.empty((3, 3))
    assert not tied_marginals(given, np.ones(given.count), 0.0, np.ones((3, 3)), node, log_z, pair)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("states", SIZES)
def test_labels_are_the_first_of_the_best(states, ties, rng):
    given, node = draw_sequences(rng, states)
    pair = rng.standard_normal((states, states))
    if ties:
        node[:, :states] = rng.integers(0, 2, (len(node), states))
        pair = 1.0 * rng.integers(0, 2, (states, states))
        pair[rng.random(pair.shape) < 0.1] = -np.inf
        pair[0] = 0.0
    label, expected = np.empty(len(node), dtype=np.int64), []
    for m in range(given.count):
        score = node[given.start[m] : given.start[m + 1], :states].copy()
        for i in range(len(score) - 2, -1, -1):
            score[i] += (pair + score[i + 1]).max(axis=1)
        expected.append(score[0].argmax())
        for i in range(1, len(score)):
            expected.append((pair[expected[-1]] + score[i]).argmax())
    assert label_sequences(given, node, pair, label)
    np.testing.assert_array_equal(label, expected)


def test_sequences_without_a_finite_score_have_no_labels(rng):
    given, node = draw_sequences(rng, 3)
    node[4] = -np.inf
    assert not label_sequences(given, node, np.zeros((3, 3)), np.empty(len(node), dtype=np.int64))


STRUCTURES = [
    ms.chain(3, 2),
    ms.chain(2, 9),
    ms.FactorGraph([2, 3, 2, 2], [(0, 1), (0, 2)]),
    ms.FactorGraph([3], []),
    ms.Paths([(0, 1), (1, 2), (0, 2)], 0, 2),
]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: f"{type(s).__name__}-{s.size}")
def test_scores_that_are_no_numbers_are_refused_wherever_they_stand(structure, wrong, rng):
    """Exponentials of NaN are zero in the kernels: it must be found otherwise."""
    for place in range(structure.size):
        scores = rng.standard_normal(structure.size)
        scores[place] = wrong
        with pytest.raises(Infeasible, match="finite score"):
            solve(structure, scores[None], 1.0)
