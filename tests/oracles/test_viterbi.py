"""Viterbi equals brute force on forests of factors of any order."""

import numpy as np
import pytest
from mlestruct_oracles.viterbi import Viterbi

from mlestruct.errors import Infeasible
from mlestruct.structures import FactorGraph, chain, grid
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices


@pytest.mark.parametrize("seed", range(40))
def test_random_trees_of_factors(seed):
    """Any forest: factors attached in any order, scopes written in any order, roots anywhere."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(7)
    scopes, joined = [], 1
    while joined < 6:
        more = int(rng.integers(1, min(3, 7 - joined) + 1))
        scope = [int(rng.integers(joined)), *range(joined, joined + more)]
        scopes.append(rng.permutation(name[scope]).tolist())
        joined += more
    cards = rng.integers(1, 4, 7)
    graph = FactorGraph(cards, [scopes[i] for i in rng.permutation(len(scopes))])
    batch = Batch.of(graph, count=20)
    scores = rng.standard_normal(batch.size)
    answers, upper = Viterbi().many(batch, scores)
    listed = vertices(graph)
    best = (batch.rows(scores, np.arange(20)) @ listed.T).max(axis=1)
    np.testing.assert_allclose(upper, best, rtol=1e-12)
    np.testing.assert_allclose(batch.totals(scores * answers), best, rtol=1e-12)
    assert graph.contains(batch.rows(answers, np.arange(20))).all()


@pytest.mark.parametrize("scopes", [[(0, 1), (1, 2)], [(1, 0), (2, 1)], [(0, 1), (2, 0)]])
def test_any_numbers_of_states(scopes, rng):
    """Vectors of eight states end anywhere: all labellings of three nodes, with many ties."""
    for _ in range(100):
        graph = FactorGraph(rng.choice([1, 2, 5, 6, 7, 8, 9, 16, 17], 3), scopes)
        score = 1.0 * rng.integers(-3, 4, graph.size)
        answer, upper = Viterbi().many(Batch.of(graph), score)
        state = np.indices(graph.cards)
        every = sum(score[graph.node_start[v] + state[v]] for v in range(3))
        for first, (i, j) in zip(graph.table_start, scopes, strict=False):
            every += score[first + state[i] * graph.cards[j] + state[j]]
        assert score @ answer == upper[0] == every.max()
        assert graph.contains(answer)


def test_long_chains_of_mixed_lengths():
    """A thousand positions against a plain recursion, several lengths in one batch."""
    lengths = [1000, 2, 37]
    batch = Batch.of([chain(n, 3) for n in lengths])
    scores = np.random.default_rng(0).standard_normal(batch.size)
    answers, upper = Viterbi().many(batch, scores)
    for m, n in enumerate(lengths):
        part = scores[batch.coordinates(m)]
        nodes, edges = part[: 3 * n].reshape(n, 3), part[3 * n :].reshape(n - 1, 3, 3)
        best = nodes[0]
        for i in range(1, n):
            best = (best[:, None] + edges[i - 1]).max(axis=0) + nodes[i]
        assert upper[m] == pytest.approx(best.max())
        assert batch.structure(m).contains(answers[batch.coordinates(m)])


def test_graphs_with_cycles_are_refused():
    with pytest.raises(ValueError, match="without cycles"):
        Viterbi().many(Batch.of(grid(2, 2)), np.zeros(grid(2, 2).size))
    shared = FactorGraph([2, 2, 2, 2], [(0, 1, 2), (1, 2, 3)])
    with pytest.raises(ValueError, match="sharing two variables"):
        Viterbi().many(Batch.of(shared), np.zeros(shared.size))


def test_an_impossible_labelling_names_variable_and_example():
    graph = chain(3, 2).forbid([(0, 0)], [(0, (1, 0)), (0, (1, 1))])
    batch = Batch.of([chain(3, 2), graph])
    with pytest.raises(Infeasible, match=r"example 1: (the factor on|variable)"):
        Viterbi().many(batch, np.zeros(batch.size))
