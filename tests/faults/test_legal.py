"""Odd but legal: one example, constant features, disconnected graphs, isolated nodes."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import best


def test_a_disconnected_graph_is_the_product_of_its_parts():
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
