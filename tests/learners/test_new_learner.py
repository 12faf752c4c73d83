"""A new learner is one function and one line: fits, predictions, proofs and files follow."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import learners
from mlestruct.learners.convex import Learner
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

SHARE = 0.2


# What CONTRIBUTING.md, "How to add a learner", asks for: this function, and its import.
def doubting(rho=None, share=SHARE, **settings) -> Learner:
    """The likelihood of outcomes of which a share is taken for noise: any other was as likely."""

    def surrogate(batch: Batch) -> tuple[Batch, Entropy]:
        middle = np.concatenate([batch.structure(m).interior() for m in range(len(batch))])
        target = (1.0 - share) * batch.target + share * middle
        return replace(batch, target=target), Entropy.of(batch, rho)

    return Learner("doubting", surrogate, rho=rho, **settings)


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlestruct.learners.doubt", sys.modules[__name__])
    for table in (learners.MAKERS, learners.HOME):
        monkeypatch.setitem(table, "doubting", "mlestruct.learners.doubt")
    yield
    vars(learners).pop("doubting", None)


def sequences(rng):
    X = [rng.standard_normal((5, 2)) for _ in range(9)]
    return X, [(x[:, 0] + 0.3 * rng.standard_normal(5) > 0).astype(int) for x in X]


@pytest.mark.parametrize("route", ["direct", "frank_wolfe"])
def test_its_certificate_bounds_the_distance_to_its_own_optimum(route, rng):
    """At the optimum λθ is what was observed, partly the middle, less what is expected."""
    batch = ms.Batch.of(ms.chain(3, 2), [rng.integers(0, 2, 3) for _ in range(8)])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))
    best = doubting(solver=ms.FrankWolfe(tol=1e-12)).fit(batch, features)
    tau = ms.marginals(batch, features.potentials(best.theta)).tau
    middle = np.tile(batch.structures[0].interior(), len(batch))
    pull = features.moments((1 - SHARE) * batch.target + SHARE * middle - tau)
    np.testing.assert_allclose(pull, best.theta, atol=1e-5)
    model = doubting(route=route, solver=ms.FrankWolfe(tol=1e-4)).fit(batch, features)
    assert model.converged
    assert model.certificate.relative <= 1e-4
    assert np.sum((model.theta - best.theta) ** 2) <= 2.0 * model.certificate.gap + 1e-9


def test_the_front_door_engines_checkpoints_and_files_know_it_by_name(named, rng, tmp_path):
    X, y = sequences(rng)
    made = {}
    for engine in ("serial", "threads"):
        model = ms.SequenceModel(learner="doubting", engine=engine, workers=2)
        made[engine] = model.fit(X, y, checkpoint=tmp_path / engine)
        again = ms.SequenceModel(learner="doubting", engine=engine, workers=2)
        assert (again.fit(X, y, checkpoint=tmp_path / engine).coef_ == model.coef_).all()
    one, other = made.values()
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.converged_
    one.save(tmp_path / "model")
    kept = ms.SequenceModel.load(tmp_path / "model")
    for mine, theirs in zip(one.predict_marginals(X), kept.predict_marginals(X), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    plain = ms.SequenceModel().fit(X, y)
    assert np.linalg.norm(one.coef_) < np.linalg.norm(plain.coef_)
