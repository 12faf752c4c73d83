"""Nothing but a MAP solver: learners that never see a marginal agree with those that do."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.consistency.coupled import Coupled
from mlestruct.inference.graph import forward_backward, sum_product
from mlestruct.inference.matching import scaling
from mlestruct.learners import LEARNERS
from mlestruct.oracle import Counted, load

NAMES = ["camel", "camel0", "piecewise", "trw"]


@pytest.fixture(scope="module")
def cycles():
    rng, graph = np.random.default_rng(5), ms.grid(2, 2)
    batch = ms.Batch.of(graph, list(rng.integers(2, size=(6, 4))))
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))


@pytest.fixture
def blind(monkeypatch):
    """Every routine for marginals, and the dual of coupled tables, is out of order."""

    def refuse(*_, **__):
        raise AssertionError("marginals were asked for")

    for kind in (
        forward_backward.ForwardBackward,
        scaling.Scaling,
        sum_product.SumProduct,
    ):
        monkeypatch.setattr(kind, "many", refuse)
    monkeypatch.setattr(Coupled, "solve", refuse)


def fitted(name, route, oracle, cycles):
    solver = ms.FrankWolfe(tol=1e-4, rounds=2000)
    return LEARNERS[name](oracle=oracle, route=route, solver=solver).fit(*cycles)


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_with_nothing_but_an_oracle(name, cycles, blind):
    """One counted call per example and round; no routine for marginals is entered."""
    oracle = Counted(load("linear_program"))
    model = fitted(name, "auto", oracle, cycles)
    assert model.route == "frank_wolfe"
    assert model.certificate.relative <= 1e-4
    assert oracle.calls >= len(cycles[0]) * len(model.history)
