"""No fit outlives its time by more than an evaluation, a round of questions, and their proof.

Time passes here by evaluations and by questions to a solver, of which each takes a second.
"""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learners import LEARNERS
from mlestruct.learning.problem import Problem
from mlestruct.oracle import Validated

SECONDS, COUNT = 4.0, 3
BEYOND = 1 + 2  # evaluations: the one under way, and the start's and the end's where proofs differ
ASKED = 3 * COUNT + 2  # questions: a round, its proof, a proof of the start, and a last of a cover
PIECES = 7  # of a picture: its edges, of which each is asked about


@pytest.fixture
def spent(monkeypatch):
    """The seconds so far; every evaluation and every question of one example takes one."""
    now = [0.0]
    monkeypatch.setattr("mlestruct.learning.loop.clock", lambda: now[0])
    value, many = Problem.value_and_gradient, Validated.many

    def evaluated(self, theta):
        now[0] += 1.0
        return value(self, theta)

    def asked(self, batch, scores):
        now[0] += len(batch)
        return many(self, batch, scores)

    monkeypatch.setattr(Problem, "value_and_gradient", evaluated)
    monkeypatch.setattr(Validated, "many", asked)
    return now


def pictures(rng):
    y = [(rng.random((2, 3)) > 0.5).astype(int) for _ in range(COUNT)]
    return [z[..., None] + rng.normal(size=(2, 3, 2)) for z in y], y


def tables(rng):
    return [rng.normal(size=(4, 4, 2)) for _ in range(COUNT)], [rng.permutation(4) for _ in "123"]


KINDS = {"grid": (ms.GridModel, pictures), "matching": (ms.MatchingModel, tables)}


def fitted(kind, **settings):
    """A fit that cannot meet its tolerance; None where the learner does not take it."""
    make, data = KINDS[kind]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = make(tol=1e-15, max_seconds=SECONDS, **settings).fit(*data(rng()))
        except ValueError:
            return None, []
    return model, [str(one.message) for one in heard]


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["direct", "frank_wolfe"])
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_fit_ends_in_time(name, solver, kind, spent):
    model, heard = fitted(kind, learner=name, solver=solver)
    if model is None:
        pytest.skip("it does not take this route or structure")
    most = ASKED * PIECES if name == "piecewise" else ASKED
    assert spent[0] <= SECONDS + BEYOND + most
    if not model.converged_ and name != "perceptron":
        assert any("max_seconds" in words or "time" in words for words in heard)


def test_time_runs_out_while_an_interior_is_asked_for(spent):
    parts = list(range(30))
    structure = ms.Custom(30, exactly_one=[parts])
    X, y = [np.eye(30)[:, :4] for _ in parts[:COUNT]], [np.eye(30)[k] for k in parts[:COUNT]]
    model = ms.StructuredModel(
        structure, oracle=lambda s: np.eye(30)[s.argmax()], max_seconds=SECONDS
    )
    with pytest.warns(ms.ConvergenceWarning, match="was not asked about all parts in time"):
        model.fit(X, y)
    assert spent[0] <= SECONDS + ASKED
    assert np.isfinite(model.coef_).all()


def test_a_pass_of_single_steps_ends_in_time(spent):
    from mlestruct.learners import mle_struct, perceptron
    from mlestruct.learning.bcfw import BCFW

    X, y = zip(*itertools.chain.from_iterable(zip(*tables(rng()), strict=True) for _ in range(9)),
               strict=True)  # fmt: skip
    batch = ms.Batch.of(ms.BipartiteMatching(4, 4), [np.asarray(one) for one in y])
    features = ms.features.Dense.of(batch, np.concatenate([x.reshape(16, 2) for x in X]))
    for learner in (
        mle_struct(solver=BCFW(seconds=30.0, tol=0.0)),
        perceptron(solver=ms.FrankWolfe(seconds=SECONDS)),
    ):
        before = spent[0]
        learner.fit(batch, features)
        assert spent[0] - before <= learner.solver.seconds + 1 + len(batch)


ASKED_FOR = {  # structures without a point of their own that every part has a share of
    "paths": (ms.Paths([(0, 1), (1, 2), (0, 2), (0, 1)], 0, 2), [[0, 1], [2]]),
    "flows": (ms.Flow([(0, 1), (1, 2), (0, 2)], {0: (0, 2), 2: (-2, 0)}), [[0, 1], [2]]),
    "b-matchings": (ms.BMatching(4, capacity=2), [[(0, 1), (1, 2)], [(0, 3)]]),
    "matchings": (
        ms.Matching(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]),
        [[(0, 1), (2, 3), (4, 5)]],
    ),
    "labels": (
        ms.FactorGraph([2, 2, 2], [(0, 1), (1, 2)], fixed=[0] + [-1] * 13),
        [[1, 0, 1], [1, 1, 0]],
    ),
}


@pytest.mark.parametrize("make", [ms.mle_struct, ms.learners.camel0])
@pytest.mark.parametrize("kind", ASKED_FOR)
def test_no_time_at_all_accuses_no_oracle(kind, make):
    structure, outcomes = ASKED_FOR[kind]
    batch = ms.Batch.of(structure, outcomes)
    features = ms.Dense.of(batch, np.random.default_rng(0).normal(size=(batch.size, 2)))
    solver = ms.FrankWolfe(seconds=1e-9)
    try:
        model = make(regulariser=1.0, solver=solver, route="frank_wolfe").fit(batch, features)
    except ValueError as error:
        if re.search("no reweighted Bethe|clusters are|not provably concave", str(error)):
            return
        raise
    assert model.short
    assert np.isfinite(model.theta).all()
