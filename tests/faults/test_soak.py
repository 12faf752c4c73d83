"""Long runs and many runs take no more memory than short ones and few."""

import gc
import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import mlestruct as ms
from benchmarks._faults.hostile import SOLVER, Assigns, problem
from mlestruct.learning.checkpoints import Checkpoint

SLACK = 64 << 10  # bytes: free lists and caches of the interpreter


@pytest.fixture
def memory():
    """Bytes that are alive now."""

    def alive():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    yield alive
    tracemalloc.stop()


def grown(memory, count, step, early=50):
    """Bytes by which a run grows between two of its rounds; it ends by their number alone."""
    rng = np.random.default_rng(0)
    batch = ms.Batch.of(ms.BipartiteMatching(8), [rng.permutation(8) for _ in range(20)])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 5)))
    oracle = ms.oracle.Validated(ms.oracle.resolve(Assigns(), batch))
    dual = ms.mle_struct(regulariser=1e-3).dual(batch, features)
    at, run = {}, ms.FrankWolfe(tol=0.0, rounds=count, step=step)
    run.solve(dual, oracle)  # what a first run loads is no leak

    def told(state):
        if state.round in (early, count):
            at[state.round] = memory()

    run.solve(dual, oracle, told=told)
    return at[count] - at[early]


def fits(memory, count):
    """Bytes that ``count`` fits leave behind, after as many: free lists fill up at first."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((5, 5, 3)) for _ in range(4)]
    y = [rng.permutation(5) for _ in X]
    chains = [rng.standard_normal((6, 2)) for _ in range(4)]
    labels = [rng.integers(0, 2, 6) for _ in chains]
    for number in range(2 * count):
        if number == count:
            before = memory()
        ms.MatchingModel(oracle=Assigns(), tol=1e-2).fit(X, y).predict(X)
        ms.SequenceModel(tol=1e-2).fit(chains, labels).predict_marginals(chains)
    return memory() - before


NIGHT = pytest.mark.nightly


@pytest.mark.parametrize("rounds", [150, pytest.param(1000, marks=NIGHT)])
@pytest.mark.parametrize("step", ["pairwise", "block"])
def test_memory_is_flat_over_rounds(memory, step, rounds):
    """A leak grows every time; what other tests' threads hold for a moment does not."""
    assert any(grown(memory, rounds, step) < SLACK for _ in range(2))


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=NIGHT)])
def test_fits_leave_nothing_behind(memory, count):
    assert fits(memory, count) < SLACK


@NIGHT
@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_checkpoints_and_workers_leave_no_open_file(tmp_path, engine):
    counts = []
    for number in range(20):
        kept = replace(SOLVER, rounds=5, checkpoint=Checkpoint(tmp_path / f"{number}", every=1))
        learner = ms.mle_struct(
            oracle=Assigns(), route="frank_wolfe", solver=replace(kept, engine=engine, workers=2)
        )
        learner.fit(*problem())
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] <= counts[1]
