"""A new inference routine is one class and one line: fits, predictions, proofs and files follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import routine as routines
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.oracle import Counted, resolve
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy

ALLOWED = ((1, 0, 0, 1), (0, 1, 1, 0), (1, 1, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1))


class Shapes(ms.Custom):
    """0/1 vectors that are on a list."""


def listing(score):
    rows = np.array(ALLOWED)
    return rows[int(np.argmax(rows @ score))]


# What CONTRIBUTING.md, "Add an inference routine", asks for: this class, and its line in ROUTINES.
@dataclass(frozen=True)
class Listed(Routine):
    """log Z and E[v] by summing over the list: exact, so that upper = lower."""

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> Listed | None:
        known = all(isinstance(s, Shapes) for s in entropy.batch.structures)
        return cls() if known else None

    def many(self, batch, scores, warm=None) -> Beliefs:
        rows = np.array(ALLOWED, dtype=float)
        total = scores.reshape(len(batch), -1) @ rows.T
        top = total.max(axis=1, keepdims=True)
        weight = np.exp(total - top)
        log_z = np.log(weight.sum(axis=1)) + top[:, 0]
        tau = weight @ rows / weight.sum(axis=1, keepdims=True)
        return Beliefs(log_z, tau.ravel())


@pytest.fixture
def listed(monkeypatch):
    monkeypatch.setattr(
        routines, "ROUTINES", (*routines.ROUTINES, (f"{__name__}:Listed", "Structure"))
    )


def problem(rng, count=8):
    batch = Batch.of(Shapes(4), [np.array(ALLOWED[k]) for k in rng.integers(0, 5, count)])
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))


def test_it_fits_and_is_certified_without_asking(listed, rng):
    batch, features = problem(rng)
    oracle = Counted(resolve(listing, batch))
    learner = ms.mle_struct(oracle=oracle, route="direct", solver=ms.FrankWolfe(tol=1e-9))
    model = learner.fit(batch, features)
    assert model.converged
    assert model.certificate.relative <= 1e-9
    assert oracle.calls == 0
    found = Listed().many(batch, features.potentials(model.theta))
    left = features.moments(batch.target - found.tau) - model.theta
    assert np.abs(left).max() <= 1e-3


def test_predictions_engines_and_checkpoints_follow(listed, rng, tmp_path):
    X = [rng.standard_normal((4, 3)) for _ in range(8)]
    y = [np.array(ALLOWED[k]) for k in rng.integers(0, 5, 8)]
    made = {}
    for engine in ("serial", "threads"):
        model = ms.StructuredModel(Shapes(4), oracle=listing, solver="direct", engine=engine)
        made[engine] = model.fit(X, y, checkpoint=tmp_path / engine)
    again = ms.StructuredModel(Shapes(4), oracle=listing, solver="direct", engine="serial")
    again.fit(X, y, checkpoint=tmp_path / "serial")
    for model in (made["threads"], again):
        assert (model.coef_ == made["serial"].coef_).all()
    tau = made["serial"].predict_marginals(X)
    scores = np.concatenate(made["serial"].potentials(X))
    expected = Listed().many(Batch.of(Shapes(4), count=8), scores).tau.reshape(8, -1)
    np.testing.assert_allclose(np.stack([part.ravel() for part in tau]), expected, atol=1e-12)
