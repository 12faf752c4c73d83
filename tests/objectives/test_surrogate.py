"""The surrogate likelihood: what a rough evaluation may leave out."""

from __future__ import annotations

import numpy as np

import mlestruct as ms
from mlestruct.entropy import Entropy
from mlestruct.inference.graph import convergent
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.objectives import Surrogate
from tests.inference.graph.test_convergent import spin_glass


def test_only_exact_evaluations_go_on_where_messages_stall(rng, monkeypatch):
    """A tolerance takes the messages as they are, a bound from below; 0 has Newton go on."""
    graph, score = spin_glass(3, 3, 10.0, rng)
    batch = ms.Batch.of(graph, [rng.integers(2, size=9)])
    surrogate = Surrogate(SumProduct.of(Entropy.of(batch)))
    ascend, entered = convergent.ascend, []
    monkeypatch.setattr(convergent, "ascend", lambda *a: entered.append(a) or ascend(*a))
    scores = {"score": score}
    rough = surrogate(batch, scores, None, 1e-5)
    assert not entered
    exact = surrogate(batch, scores, None, 0.0)
    assert entered
    assert rough.value < exact.value
    best = ms.marginals(batch, scores["score"])
    np.testing.assert_allclose(exact.tau, best.tau, atol=1e-6)
