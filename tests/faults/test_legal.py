"""Odd but legal: one example, constant features, disconnected graphs, isolated nodes."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import best


def test_one_example_is_enough():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 3, 2)), [2, 0, 1]
    model = ms.MatchingModel(tol=1e-6).fit([x], [y])
    assert model.certificate_.relative <= 1e-6
    assert model.predict([x])[0].shape == (3,)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_features_weigh_nothing_and_harm_nothing(value):
    """A constant shifts every matching alike: its weight is 0, the others are as without it."""
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((4, 4, 2)) for _ in range(5)]
    y = [rng.permutation(4) for _ in X]
    wide = [np.concatenate([x, np.full((4, 4, 1), value)], axis=2) for x in X]
    one, other = (ms.MatchingModel(tol=1e-9).fit(some, y) for some in (X, wide))
    np.testing.assert_allclose(other.coef_, [*one.coef_, 0.0], atol=1e-4)


def test_a_disconnected_graph_is_the_product_of_its_parts():
    """Two chains in one factor graph: log Z adds up, whichever routine is asked."""
    rng = np.random.default_rng(2)
    whole = ms.FactorGraph([2] * 5, [(0, 1), (2, 3), (3, 4)])
    score = rng.standard_normal(whole.size)
    ends = np.concatenate([whole.node_start, whole.table_start[1:]])
    nodes = [slice(0, 4), slice(4, 10)]
    tables = [slice(10, 14), slice(14, 22)]
    parts = [ms.chain(2, 2), ms.chain(3, 2)]
    assert ends[-1] == whole.size == 22
    log_z = sum(
        ms.exact(part, np.concatenate([score[a], score[b]])).log_z
        for part, a, b in zip(parts, nodes, tables, strict=True)
    )
    found = ms.marginals(ms.Batch.of(whole), score)
    assert ms.exact(whole, score).log_z == pytest.approx(log_z)
    assert found.lower[0] == pytest.approx(log_z, abs=1e-4)


def test_isolated_nodes_of_a_partial_matching_stay_single():
    graph = ms.Matching(5, [(0, 1), (1, 2)], kind="partial")  # 3 and 4 have no edge
    batch = ms.Batch.of(graph)
    assert best(batch, [2.0, 1.0])[0][0].tolist() == [1, 0, -1, -1, -1]
    listed = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    total = np.exp(listed @ [2.0, 1.0])
    np.testing.assert_allclose(ms.exact(graph, [2.0, 1.0]).tau, total @ listed / total.sum())
    tau = ms.marginals(batch, [2.0, 1.0]).tau
    assert ((tau > 0) & (tau < 1)).all()


def test_a_forbidden_part_may_score_minus_infinity():
    """Where the structure fixes it at 0: as if the score were any other number."""
    graph = ms.BipartiteMatching(3, forbidden=[(0, 0)])
    score = np.linspace(-1, 1, 9)
    barred = np.where(np.arange(9) == 0, -np.inf, score)
    batch = ms.Batch.of(graph)
    assert best(batch, barred)[1] == best(batch, score)[1]
    np.testing.assert_array_equal(ms.marginals(batch, barred).tau, ms.marginals(batch, score).tau)
