"""The end of the direct route: what messages prove of themselves, and at what cost."""

from __future__ import annotations

from contextlib import closing

import numpy as np

import mlestruct as ms
from mlestruct.engine import Serial
from mlestruct.inference.graph import convergent
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.oracle import resolve
from mlestruct.train.direct import likelihood, proven
from tests.inference.graph.test_convergent import spin_glass


def test_messages_that_stall_prove_what_they_can_before_newton_goes_on(rng, monkeypatch):
    """A loose proof takes their τ as it is; for a tight one Newton and the oracle help."""
    graph, bias = spin_glass(3, 3, 10.0, rng)
    batch = ms.Batch.of(graph, [rng.integers(2, size=9)], bias=bias)
    features = ms.Dense.of(batch, np.zeros((graph.size, 1)))
    learner = ms.mle_struct(solver=ms.FrankWolfe(tol=1e-9))
    best = learner.fit(batch, features).certificate.objective
    dual = learner.dual(batch, features)
    entered, ascend = [], convergent.ascend
    monkeypatch.setattr(convergent, "ascend", lambda *a: entered.append(a) or ascend(*a))
    shards = likelihood(
        dual, SumProduct.of(dual.entropy, sweeps=100), resolve("linear_program", batch)
    )
    with closing(Serial().start(shards.split())) as running:
        for tol, helped in ((0.5, False), (1e-7, True)):
            proof, *_ = proven(running, dual.regulariser, np.zeros(1), tol * abs(best))
            assert bool(entered) == helped
            assert proof.relative <= tol
            assert -1e-9 <= proof.objective - best <= proof.gap + 1e-9
