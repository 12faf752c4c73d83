"""Fits on every engine: the same bits, whatever dies on the way; an oracle's errors by example."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import Dask, Threads
from mlestruct.errors import LostWorker
from mlestruct.learning import problem as problems


def problem(rng, structure=None, count=11):
    structure = ms.BipartiteMatching(4) if structure is None else structure
    outcomes = [structure.decode(_vertex(structure, rng)) for _ in range(count)]
    batch = ms.Batch.of(structure, outcomes)
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))


def _vertex(structure, rng):
    batch = ms.Batch.of(structure, count=1)
    return ms.oracle.resolve(None, batch).many(batch, rng.standard_normal(batch.size))[0]


def fitted(engine, route, batch, features, oracle=None):
    solver = ms.FrankWolfe(tol=1e-6, rounds=30, engine=engine)
    model = ms.mle_struct(route=route, oracle=oracle, solver=solver).fit(batch, features)
    return model.theta.tobytes(), model.certificate, [row[2:] for row in model.history]


@pytest.fixture(params=["frank_wolfe", "direct"])
def route(request):
    return request.param


@pytest.fixture
def small_shards(monkeypatch):
    """The direct route in eight shards, as it cuts much larger data."""
    monkeypatch.setattr(problems, "SHARD", 20)


STRUCTURES = {
    "matching": ms.BipartiteMatching(4),
    "chain": ms.chain(5, 3),
    "grid": ms.grid(3, 3),
    "general": ms.Matching(6),
}


@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_engine_gives_the_same_bits(engine, route, kind, rng, small_shards):
    batch, features = problem(rng, STRUCTURES[kind])
    assert fitted(engine, route, batch, features) == fitted(None, route, batch, features)


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [1, 3, 4])
def test_any_number_of_dask_workers_gives_the_same_bits(workers, rng, small_shards):
    pytest.importorskip("distributed")
    batch, features = problem(rng)
    engine = Dask(workers=workers)
    for route in ("frank_wolfe", "direct"):
        assert fitted(engine, route, batch, features) == fitted(None, route, batch, features)
    engine.close()


@pytest.mark.parametrize("workers", [1, 3, 4, 8])
def test_any_number_of_threads_gives_the_same_bits(workers, route, rng, small_shards):
    batch, features = problem(rng)
    expected = fitted(None, route, batch, features)
    assert fitted(Threads(workers), route, batch, features) == expected


def test_tied_chains_give_the_same_bits(engine, rng, small_shards):
    graphs = [ms.chain(n, 3) for n in rng.integers(1, 6, 30)]
    batch = ms.Batch.of(graphs, [rng.integers(0, 3, g.n_nodes) for g in graphs])
    features = ms.Tied.of(batch, rng.standard_normal((sum(g.n_nodes for g in graphs), 4)))
    assert fitted(engine, "direct", batch, features) == fitted(None, "direct", batch, features)


@pytest.mark.parametrize("learner", ["lbp", "implicit", "contrastive", "pseudo_likelihood"])
def test_primal_learners_give_the_same_bits(learner, remote, rng, small_shards):
    batch, features = problem(rng, ms.grid(3, 3))
    thetas = []
    for engine in (None, remote):
        solver = ms.FrankWolfe(tol=1e-5, rounds=12, engine=engine)
        made = ms.learners.LEARNERS[learner](solver=solver)
        thetas.append(made.fit(batch, features).theta.tobytes())
    assert thetas[0] == thetas[1]


def mortal(mark, call):
    """The best assignment by scipy; whoever is asked for the ``call``-th time first is killed."""
    asked = 0

    def solve(score):
        from scipy.optimize import linear_sum_assignment

        nonlocal asked
        asked += 1
        if asked == call and not os.path.exists(mark):
            with open(mark, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return linear_sum_assignment(score, maximize=True)[1]

    return solve


def test_a_worker_killed_in_a_round_changes_no_bit(remote, rng, tmp_path):
    """In the fourth example of a shard, rounds after the last snapshot."""
    batch, features = problem(rng)
    mark = tmp_path / "killed"
    expected = fitted(None, "frank_wolfe", batch, features, mortal("", -1))
    solve = mortal(str(mark), 20)
    assert fitted(remote, "frank_wolfe", batch, features, solve) == expected
    assert mark.exists()


def test_warm_starts_survive_lost_workers(remote, rng, small_shards):
    """All are restarted between rounds, where messages go on from their last."""
    batch, features = problem(rng, ms.grid(3, 3, 3))
    expected = fitted(None, "direct", batch, features)
    rounds = []

    class Losing:
        def open(self, parts):
            running = remote.open(parts)
            whole = running.ask

            def ask(name, questions):
                rounds.append(len(questions))
                if len(rounds) == 4:
                    remote.client.restart()
                return whole(name, questions)

            running.ask = ask
            return running

    assert fitted(Losing(), "direct", batch, features) == expected
    assert len(rounds) > 4


def bad_at(number, act):
    """A solver that ``act``s on the example whose scores carry its number."""

    def solve(score):
        from scipy.optimize import linear_sum_assignment

        if round(score[0, 0] / 1000) == number:
            act()
        return linear_sum_assignment(score, maximize=True)[1]

    return solve


def numbered(count=11):
    """Examples whose first score says which they are, in a coordinate no entropy can hide."""
    bias = np.zeros((count, 4, 4))
    bias[:, 0, 0] = 1000.0 * np.arange(count)
    batch = ms.Batch.of(ms.BipartiteMatching(4), [[0, 1, 2, 3]] * count, bias=bias.ravel())
    return batch, ms.Dense.of(batch, np.zeros((batch.size, 1)))


def test_an_oracles_own_exception_names_the_example(engine):
    def act():
        raise OverflowError("too hot")

    with pytest.raises(OverflowError, match="too hot") as caught:
        fitted(engine, "frank_wolfe", *numbered(), bad_at(7, act))
    assert any(note.startswith("example 7") for note in caught.value.__notes__)


DEADLY = {
    "segfault": lambda: ctypes.string_at(0),
    "hang": lambda: time.sleep(3600),
}


@pytest.mark.parametrize("kind", ["segfault", pytest.param("hang", marks=pytest.mark.nightly)])
def test_a_deadly_example_is_named_and_the_checkpoint_goes_on(kind, remote, tmp_path):
    path, calls, mended = tmp_path / "fit.ckpt", tmp_path / "calls", tmp_path / "mended"
    engine = Dask(cluster=remote.client, timeout=5.0 if kind == "hang" else None)

    def act():
        with open(calls, "a") as file:
            file.write(".")
        if not mended.exists() and calls.stat().st_size > 3:
            DEADLY[kind]()

    def fit(**more):
        solver = ms.FrankWolfe(tol=0.0, rounds=6, **more)
        learner = ms.mle_struct(oracle=bad_at(7, act), solver=solver)
        return learner.fit(*numbered()).theta.tobytes()

    with pytest.raises(LostWorker, match="example 7") as caught:
        fit(engine=engine, checkpoint=ms.Checkpoint(path, every=1))
    assert caught.value.example == 7
    assert path.exists()
    mended.touch()
    found = fit(checkpoint=ms.Checkpoint(path, every=1))
    assert found == fit()
