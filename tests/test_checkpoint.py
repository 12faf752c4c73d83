"""Whatever ends a fit, it goes on from its checkpoint with the bits of one that nothing ended."""

import os
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mlestruct.families.consistency.coupled import Coupled
from mlestruct.features import Dense
from mlestruct.learners import (
    camel,
    contrastive,
    implicit,
    lbp,
    mle_struct,
    perceptron,
    piecewise,
    pseudo_likelihood,
    trw_tightest,
)
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.learning.dual import Dual
from mlestruct.learning.frank_wolfe import Asked, FrankWolfe
from mlestruct.learning.problem import Problem
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import resolve
from mlestruct.structures import BipartiteMatching, Matching, chain, grid
from mlestruct.structures.batch import Batch, Partial
from mlestruct.structures.entropy import Entropy
from papers.relaxations import small_batches


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    """tests/test_files.py has the order of things; here processes end, computers do not."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Ended(Exception):
    """The end of a process, as far as a fit can tell."""


@pytest.fixture
def mortal(monkeypatch):
    """A function that ends whatever evaluates examples so many times more; None: nothing does."""
    left = [None]

    def counted(evaluate):
        def evaluated(*given):
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    raise Ended
            return evaluate(*given)

        return evaluated

    for evaluating, name in (
        (Asked, "__call__"), (Problem, "value_and_gradient"), (Coupled, "__call__"),
    ):  # fmt: skip
        monkeypatch.setattr(evaluating, name, counted(getattr(evaluating, name)))
    online = sys.modules["mlestruct.learners.online"]
    monkeypatch.setattr(online, "counting_from", counted(online.counting_from))
    return lambda count: left.__setitem__(0, count)


def learning(structure, outcome, count=7, d=3, whole=False, **regulariser):
    rng = np.random.default_rng(3)
    batch = Batch.of(structure, [outcome(rng) for _ in range(count)])
    matrix = rng.integers(-1, 2, (batch.size, d)) if whole else rng.normal(size=(batch.size, d))
    features = Dense.of(batch, 1.0 * matrix)
    return Dual(batch, features, Entropy.of(batch, 0.5), Regulariser.of(d, **regulariser))


def matchings(**options):
    return learning(BipartiteMatching(5), lambda rng: rng.permutation(5), **options)


def grids(**options):
    return learning(grid(2, 3, states=2), lambda rng: rng.integers(0, 2, 6), **options)


def pairings(n=4, **options):
    return learning(Matching(n), lambda rng: rng.permutation(n).reshape(-1, 2).tolist(), **options)


def chains(**options):
    return learning(chain(4, states=3), lambda rng: rng.integers(0, 3, 4), **options)


def hidden():
    """Chains with a label in three unseen."""
    dual = chains()
    graph, rng = dual.batch.structures[0], np.random.default_rng(1)
    outcomes = [
        Partial(np.where(rng.random(4) < 1 / 3, -1, rng.integers(0, 3, 4)))
        for _ in range(len(dual.batch))
    ]
    return replace(dual, batch=Batch.of(graph, outcomes))


def bits(state):
    """All that a state says but its seconds."""
    return (
        state.round, state.calls, repr(state.certificate), state.done, state.route, state.moved,
        state.theta.tobytes(), state.tau.tobytes(), state.at.tobytes(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dual", "step"),
    [
        (matchings(whole=True), "pairwise"),  # tied scores: the oracle's memory decides
        (matchings(l1=0.3, lower=-0.2, upper=0.4), "pairwise"),
        (grids(), "pairwise"),
        (matchings(whole=True), "block"),
    ],
)
def test_frank_wolfe_ended_at_every_round(dual, step, tmp_path, mortal):
    """Ended at round k, resumed on threads, ended again, resumed: the same bits every time."""
    solver = FrankWolfe(tol=0.0, rounds=33, step=step, shards=2)
    whole = bits(solver.solve(dual, resolve(None, dual.batch)))
    assert whole[0] == 33
    for calls in range(1, 31, 3):
        kept = replace(solver, checkpoint=Checkpoint(tmp_path / f"{calls}.ckpt", every=1))
        for left, workers in ((calls, 1), (3, 2)):
            mortal(left)
            with pytest.raises(Ended):
                replace(kept, workers=workers).solve(dual, resolve(None, dual.batch))
        mortal(None)
        assert bits(kept.solve(dual, resolve(None, dual.batch))) == whole


def likelihood(**settings):
    return partial(mle_struct, 0.5, **settings)


def filled_in(tol=1e-2, **settings):
    return replace(mle_struct(0.5, **settings).of_seen(tol), rounds=3)


def loosely(learner, solver, **settings):
    return learner(solver=replace(solver, tol=0.1), **settings)


LEARNERS = {
    "frank_wolfe": (matchings(whole=True), likelihood(route="frank_wolfe")),
    "messages": (grids(), likelihood()),
    "kinks": (grids(l1=0.3, lower=-0.2, upper=0.4), likelihood()),
    "preconditioned": (pairings(), likelihood()),
    "chains": (chains(), likelihood()),
    "small batches": (grids(), partial(contrastive, steps=small_batches(size=3))),
    "primal": (grids(), pseudo_likelihood),
    "restarts": (grids(), partial(lbp, sweeps=3, restarts=3)),
    "slopes": (grids(), partial(contrastive)),
    "implicit": (grids(), implicit),
    "frank_wolfe after direct": (pairings(n=6), likelihood()),
    "camel": (grids(), camel),
    "camel, coupled": (grids(), partial(camel, route="coupled", start="empirical", rounds=3)),
    "camel, oracle": (grids(), partial(camel, oracle="qpbo", rounds=4)),
    "piecewise": (grids(), piecewise),
    "perceptron": (matchings(whole=True), partial(perceptron, epochs=9)),
    "trw_tightest": (grids(), trw_tightest),
    "trw_tightest, oracle": (grids(), partial(loosely, trw_tightest, oracle="qpbo", rounds=1)),
    "missing": (hidden(), partial(filled_in, tol=1e-5)),
    "missing, oracle": (hidden(), partial(loosely, filled_in, oracle="viterbi")),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_ended_again_and_again(name, tmp_path, mortal):
    """Every few evaluations, on other engines each time; a path of two alphas."""
    dual, learner = LEARNERS[name]
    solver = FrankWolfe(tol=1e-7, rounds=40)

    def models(**more):
        given = learner(solver=replace(solver, **more))
        return [
            (model.theta.tobytes(), repr(model.certificate), model.route, timeless(model.history))
            for model in given.path(dual.batch, dual.features, [dual.regulariser, 0.3])
        ]

    whole, ends, finished = models(), 0, None
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", every=1)
    while finished is None:
        mortal(2 + ends)  # a line search asks more than once
        try:
            finished = models(checkpoint=checkpoint, workers=1 + ends % 2)
        except Ended:
            ends += 1
    assert finished == whole
    assert ends > 2
    mortal(0)
    assert models(checkpoint=checkpoint) == whole, "a finished fit is not computed again"


def timeless(history):
    return [(calls, objective, gap) for calls, _, objective, gap in history]
