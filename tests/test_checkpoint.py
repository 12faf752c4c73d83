"""Whatever ends a fit, it goes on from its checkpoint with the bits of one that nothing ended."""

import os
from dataclasses import replace

import numpy as np
import pytest

from mlestruct.batch import Batch
from mlestruct.checkpoint import Checkpoint
from mlestruct.dual import Dual
from mlestruct.entropy import Entropy
from mlestruct.features import Dense
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.oracle import Validated, resolve
from mlestruct.oracle.wrappers import Around
from mlestruct.regulariser import Regulariser
from mlestruct.structures import BipartiteMatching, grid


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    """tests/test_files.py has the order of things; here processes end, computers do not."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Ended(Exception):
    """The end of a process, as far as a fit can tell."""


class Mortal(Around):
    """Ends the fit at a call."""

    def __init__(self, oracle, calls):
        self.oracle, self.left = oracle, calls

    def many(self, batch, scores):
        self.left -= 1
        if self.left < 0:
            raise Ended
        return self.oracle.many(batch, scores)


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


def bits(state):
    """All that a state says but its seconds."""
    return (
        state.round, state.calls, repr(state.certificate), state.done, state.route, state.cut,
        state.theta.tobytes(), state.tau.tobytes(), state.at.tobytes(),
    )  # fmt: skip


def without_arrays(said):
    return said[:6]


@pytest.mark.parametrize(
    ("dual", "step"),
    [
        (matchings(whole=True), "pairwise"),  # tied scores: the oracle's memory decides
        (matchings(l1=0.3, lower=-0.2, upper=0.4), "pairwise"),
        (grids(), "pairwise"),
        (matchings(whole=True), "block"),
        (matchings(), "batch"),
        (matchings(), "block_fixed"),
    ],
)
def test_frank_wolfe_ended_at_every_call(dual, step, tmp_path):
    """Killed at round k, resumed on threads, killed again, resumed: the same bits every time."""
    solver = FrankWolfe(tol=0.0, rounds=33, step=step, shards=2)
    oracle = Validated(resolve(None, dual.batch))
    whole = [bits(state) for state in solver.run(dual, Validated(resolve(None, dual.batch)))]
    assert len(whole) == 34
    for calls in range(1, 56, 6):
        path = tmp_path / f"{calls}.ckpt"
        kept = replace(solver, checkpoint=Checkpoint(path, every=1))
        for left, workers in ((calls, 1), (5, 2)):
            mortal = Mortal(Validated(resolve(None, dual.batch)), left)
            states = replace(kept, workers=workers).run(dual, mortal)
            seen = []
            with pytest.raises(Ended):
                seen.extend(map(bits, states))
        resumed = [bits(state) for state in kept.run(dual, oracle)]
        assert list(map(without_arrays, resumed)) == list(map(without_arrays, whole))
        new = next(k for k, said in enumerate(resumed) if said[-1])
        assert resumed[new:] == whole[new:]
