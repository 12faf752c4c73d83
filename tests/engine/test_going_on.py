"""A fit begun on one engine goes on on another, from memories that live with the shards."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import Serial, Threads
from mlestruct.frank_wolfe.sharded_oracle import ShardedOracle
from mlestruct.objectives import Sum, base


class Ended(Exception):
    """The end of a process, as far as the fit can tell."""


@pytest.fixture
def ended(monkeypatch):
    """Sets after how many rounds of questions everything ends."""
    left = [0]

    def counted(ask):
        def asked(*given):
            left[0] -= 1
            if left[0] < 0:
                raise Ended
            return ask(*given)

        return asked

    for asking in (ShardedOracle, Sum):
        monkeypatch.setattr(asking, "__call__", counted(asking.__call__))
    return lambda count: left.__setitem__(0, count)


@pytest.mark.parametrize("route", ["frank_wolfe", "direct"])
def test_from_engine_to_engine(remote, route, monkeypatch, tmp_path, ended):
    """Here, away, on threads, away again; tied scores, so warm starts decide on answers."""
    monkeypatch.setattr(base, "SHARD", 20)
    rng = np.random.default_rng(2)
    outcomes = [rng.permutation(4) for _ in range(11)]
    batch = ms.Batch.of(ms.BipartiteMatching(4), outcomes)
    features = ms.Dense.of(batch, 1.0 * rng.integers(-1, 2, (batch.size, 3)))

    def fit(**more):
        solver = ms.FrankWolfe(tol=1e-12, rounds=25, **more)
        model = ms.mle_struct(0.6, regulariser=0.01, route=route, solver=solver).fit(
            batch, features
        )
        rows = [(calls, objective, gap) for calls, _, objective, gap in model.history]
        return model.theta.tobytes(), repr(model.certificate), rows

    ended(1000)
    whole, kept = fit(), ms.Checkpoint(tmp_path / "fit.ckpt", every=1)
    for engine in (Serial(), remote, Threads(2), remote):
        ended(4 if route == "frank_wolfe" else 2)
        with pytest.raises(Ended):
            fit(engine=engine, checkpoint=kept)
    ended(1000)
    assert fit(checkpoint=kept) == whole
