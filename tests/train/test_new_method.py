"""A new method for the loop is one class: budgets, checkpoints, engines and models follow."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.checkpoint import Checkpoint, Loop
from mlestruct.digest import named
from mlestruct.drive import Progress, drive
from mlestruct.dual import Certificate
from mlestruct.engine import engine_of
from mlestruct.inference.choose import DEFAULT
from mlestruct.inference.routine import routine
from mlestruct.learners.model import Fits, ridge_of
from mlestruct.learners.primal import scored
from mlestruct.objectives import Sum, Surrogate
from mlestruct.objectives.base import Share
from mlestruct.structures.entropy import Entropy


# What CONTRIBUTING.md, "How to add a method for the loop", asks for: this class.
@dataclass(frozen=True)
class Downhill:
    """Steps along −gradient of R + Σ, each half as long as the last until it goes down."""

    batch: Any
    features: Any
    ridge: Any
    engine: Any
    name: str = "downhill"

    @property
    def size(self) -> int:
        return self.batch.size

    def setting(self):
        return named(self.batch, scored(self.batch, self.features), self.ridge)

    def rounds(self, loop: Loop):
        entropy, ridge = Entropy.of(self.batch), self.ridge
        heads = scored(self.batch, self.features)
        makers = Share.whole(Surrogate(routine(entropy)), self.batch, heads).split()
        number, calls, length, theta = 0, 0, 1.0, np.zeros(self.features.d)

        def where():
            return number, calls, length, theta, running.memory()

        with closing(self.engine.start(makers)) as running:
            total = Sum(running)
            if loop.tree is not None:
                number, calls, length, theta, memory = loop.tree
                running.remember(memory)
            while True:
                loop.save(where)
                value, slope = total(theta)
                calls += len(self.batch)
                value += ridge.value(theta)
                proof = Certificate(
                    ridge.bracket(theta, -slope), 0.0, -value, "hull", str(entropy.bound)
                )
                yield Progress(number, calls, len(self.batch), proof, theta, route="direct")
                pull, length, reached = slope + ridge.lam * theta, 2.0 * length, np.inf
                while reached > value - 0.5 * length * (pull @ pull):
                    length /= 2.0
                    trial = theta - length * pull
                    reached = total(trial)[0] + ridge.value(trial)
                    calls += len(self.batch)
                number, theta = number + 1, trial


@dataclass(frozen=True)
class Plain(Fits):
    """The likelihood of chains, by :class:`Downhill`."""

    regulariser: Any = 1.0
    solver: Any = field(default=ms.FrankWolfe(tol=1e-6))
    name: str = "plain"
    inference: Any = DEFAULT

    def run(self, problem, given, last, loop):
        batch, features = problem
        engine = engine_of(self.solver.engine, self.solver.workers)
        ridge = ridge_of(given, features.d)
        return drive(Downhill(batch, features, ridge, engine), self.solver.budget, loop)


def plain(rho=None, oracle=None, route="auto", **settings) -> Plain:
    return Plain(**settings)


def problem(rng):
    batch = ms.Batch.of(ms.chain(3, 2), [rng.integers(0, 2, 3) for _ in range(8)])
    return batch, ms.Dense.of(batch, 0.3 * rng.standard_normal((batch.size, 3)))


def timeless(model):
    rows = [(calls, objective, gap) for calls, _, objective, gap in model.history]
    return model.theta.tobytes(), repr(model.certificate), model.short, rows


def one(batch, features, **settings):
    (model,) = Plain(solver=ms.FrankWolfe(**settings)).path(batch, features, [1.0])
    return model


def test_its_certificate_holds_the_optimum(rng):
    batch, features = problem(rng)
    model = one(batch, features, tol=1e-8)
    best = ms.mle_struct(solver=ms.FrankWolfe(tol=1e-12)).fit(batch, features)
    assert model.converged
    assert model.certificate.relative <= 1e-8
    assert np.sum((model.theta - best.theta) ** 2) <= 2 * model.certificate.gap + 1e-12


@pytest.mark.parametrize(
    ("limit", "short"),
    [({"rounds": 3}, "rounds"), ({"calls": 60}, "calls"), ({"seconds": 0.0}, "seconds")],
)
def test_every_budget_ends_it(rng, limit, short):
    model = one(*problem(rng), tol=0.0, **limit)
    assert model.short == short
    assert len(model.history) <= limit.get("rounds", np.inf) + 1


def test_any_engine_and_any_end_give_the_same_bits(rng, tmp_path, monkeypatch):
    batch, features = problem(rng)
    whole = timeless(one(batch, features, tol=1e-6))
    assert timeless(one(batch, features, tol=1e-6, workers=2)) == whole
    kept, ask, left = Checkpoint(tmp_path / "fit", every=1), Sum.__call__, [0]

    def mortal(self, theta):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return ask(self, theta)

    monkeypatch.setattr(Sum, "__call__", mortal)
    for ends in range(5, 1000):
        left[0] = ends
        try:
            found = one(batch, features, tol=1e-6, checkpoint=kept)
            break
        except KeyboardInterrupt:
            continue
    assert ends > 6
    assert timeless(found) == whole


def test_the_front_door_takes_its_learner(rng):
    X = [rng.standard_normal((5, 2)) for _ in range(9)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    mine = ms.SequenceModel(learner=plain, alpha=5.0, penalty="raw").fit(X, y)
    best = ms.SequenceModel(alpha=5.0, penalty="raw", tol=1e-9).fit(X, y)
    assert mine.converged_
    for ours, theirs in zip(mine.predict_marginals(X), best.predict_marginals(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-2)
