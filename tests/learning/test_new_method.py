"""A new method is one function with a loop of its own: budgets, checkpoints and engines follow."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import engine_of
from mlestruct.inference.choose import DEFAULT
from mlestruct.inference.routine import routine
from mlestruct.learners import Learns
from mlestruct.learners.base import ridge_of
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Found
from mlestruct.learning.minimise import likelihood
from mlestruct.learning.problem import Problem
from mlestruct.oracle import resolve


# What CONTRIBUTING.md, "How to add a method", asks for: this function.
def downhill(problem, loop):
    """Steps along −gradient of R + Σ, each half as long as the last until it goes down."""
    ridge, d = problem.regulariser, len(problem.regulariser)
    number, calls, length, theta, memory = loop.state or (0, 0, 1.0, np.zeros(d), None)
    with closing(problem):
        if memory is not None:
            problem.remember(memory)
        while True:
            loop.save((number, calls, length, theta, problem.memory()))
            value, slope = problem.value_and_gradient(theta)
            value, calls = value + ridge.value(theta), calls + problem.examples
            proof = Certificate(ridge.bracket(theta, -slope), 0.0, -value, "hull", "exact")
            said = Found(theta, proof, round=number, calls=calls, examples=problem.examples)
            why, met = loop.over(said), proof.relative <= loop.tol
            if why or met:
                return loop.end(said, "" if met else why)
            loop.tell(said)
            pull, length, reached = slope + ridge.lam * theta, 2.0 * length, np.inf
            while reached > value - 0.5 * length * (pull @ pull):
                length /= 2.0
                trial = theta - length * pull
                reached = problem.value_and_gradient(trial)[0] + ridge.value(trial)
                calls += problem.examples
            number, theta = number + 1, trial


@dataclass(frozen=True)
class Plain(Learns):
    """The likelihood of chains, by :func:`downhill`."""

    regulariser: Any = 1.0
    solver: Any = field(default=ms.FrankWolfe(tol=1e-6))
    name: str = "plain"
    inference: Any = DEFAULT

    def run(self, batch, features, loop, start):
        dual = ms.mle_struct(regulariser=ridge_of(self.regulariser, features.d)).dual(
            batch, features
        )
        engine = engine_of(self.solver.engine, self.solver.workers)
        oracle = resolve(None, batch)
        return downhill(likelihood(dual, routine(dual.entropy), engine, oracle), loop)


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
    kept, ask = Checkpoint(tmp_path / "fit", every=1), Problem.value_and_gradient
    left = [0]

    def mortal(self, theta):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return ask(self, theta)

    monkeypatch.setattr(Problem, "value_and_gradient", mortal)
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
