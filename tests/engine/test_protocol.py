"""What every engine owes to shards: their answers in order, their memory, their errors."""

from __future__ import annotations

import copy
import os
import signal
import threading
import time
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import Dask, engine_of
from mlestruct.errors import LostWorker


class Adder:
    """A shard that remembers nothing."""

    def memory(self):
        return None

    def remember(self, tree):
        pass


def makers(count, mark=None, fails=None):
    """Shards that add up what they are asked; worker functions travel by value, as users' do.

    With ``mark``, a file: who first asks shard 1 for the third time is killed.
    """

    @dataclass
    class Adds:
        number: int
        total: float = 0.0
        asked: int = 0

        def __call__(self, question):
            self.asked += 1
            if mark and self.number == 1 and self.asked == 3 and not os.path.exists(mark):
                with open(mark, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)
            if fails is not None:
                fails(self.number)
            self.total = 0.9 * self.total + question.sum()
            return self.number, self.total * np.ones(2)

        def memory(self):
            return {"total": self.total, "asked": self.asked}

        def remember(self, tree):
            self.total, self.asked = tree["total"], tree["asked"]

    return [lambda k=k: Adds(k) for k in range(count)]


def rounds(engine, made, count=7):
    with closing(engine.start(made)) as running:
        return _rounds(running, 0, count)


def _rounds(running, first, count):
    found = []
    for r in range(first, first + count):
        answers = running.round([np.full(3, k + 0.1 * r) for k in range(len(running))])
        assert [number for number, _ in answers] == list(range(len(running)))
        found.append([answer.tolist() for _, answer in answers])
    return found


def test_answers_come_in_order_with_the_same_bits(engine):
    assert rounds(engine, makers(5)) == rounds(engine_of(None, 1), makers(5))


def test_a_run_goes_on_elsewhere_from_its_memory(engine):
    expected = rounds(engine_of(None, 1), makers(3), 7)
    with closing(engine.start(makers(3))) as running:
        before = _rounds(running, 0, 4)
        trees = running.memory()
    with closing(engine.start(makers(3))) as running:
        running.remember(trees)
        assert before + _rounds(running, 4, 3) == expected


def test_a_run_of_many_rounds_replays_at_most_twenty(remote):
    """The log of questions is emptied whenever the states are gathered."""
    with closing(remote.start(makers(2))) as running:
        longest = 0
        for r in range(45):
            running.round([np.full(3, 0.1 * r)] * 2)
            longest = max(longest, len(running.log))
        assert longest < 20


def test_killed_again_and_again_is_an_error(remote):
    def dies(number):
        if number == 2:
            os._exit(7)

    with pytest.raises(LostWorker, match="3 times"):
        rounds(remote, makers(3, fails=dies))
    assert rounds(remote, makers(2)) == rounds(engine_of(None, 1), makers(2))


@pytest.mark.nightly
def test_workers_come_back_for_as_long_as_they_are_killed(remote):
    """Dask looks 15 s after each loss whether the worker is there, and gives it up if it is not."""

    def dies(number):
        if number == 2:
            os._exit(7)

    until = time.monotonic() + 25
    while time.monotonic() < until:
        with pytest.raises(LostWorker, match="3 times"):
            rounds(remote, makers(3, fails=dies))
    began = time.monotonic()
    assert rounds(remote, makers(2)) == rounds(engine_of(None, 1), makers(2))
    assert time.monotonic() - began < 10  # no waiting for one that never comes


def test_an_exception_without_a_pickle_keeps_its_words(remote):
    def fails(number):
        class Odd(Exception):
            def __init__(self, a, b):
                super().__init__(f"{a} and {b}")

        raise Odd(1, 2)

    with pytest.raises(Exception, match="1 and 2"):
        rounds(remote, makers(1, fails=fails))


def test_what_cannot_be_sent_is_refused(remote):
    lock = threading.Lock()

    def fails(number):
        lock.acquire()

    with pytest.raises(ValueError, match="no other process can be sent this"):
        rounds(remote, makers(1, fails=fails))


def test_names_and_workers_are_checked():
    with pytest.raises(ValueError, match="no engine 'spark'; there are serial"):
        engine_of("spark", 1)
    with pytest.raises(ValueError, match="workers is 0"):
        engine_of("threads", 0)
    with pytest.raises(ValueError, match="own business"):
        engine_of(engine_of("threads", 2), 2)
    with pytest.raises(ValueError, match="own business"):
        Dask(cluster="tcp://127.0.0.1:8786", workers=2)
    with pytest.raises(ValueError, match="must be positive"):
        Dask(timeout=0.0)


def test_workers_take_the_callers_number_of_blas_threads(remote):
    """Two threads add a matrix product up in another order than one."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

    class Tells(Adder):
        def __call__(self, question):
            return [os.environ.get(name) for name in names]

    with closing(remote.start([Tells, Tells])) as running:
        found = running.round([None, None])
    assert found == [[os.environ[name] for name in names]] * 2


def test_copies_of_an_estimator_share_the_workers_of_its_engine(remote):
    assert remote.client.submit(sum, [1, 2]).result() == 3
    assert copy.deepcopy(ms.MatchingModel(engine=remote)).engine is remote


def test_a_number_alone_is_no_setting():
    """Dask(4) could be workers or seconds."""
    with pytest.raises(TypeError):
        Dask(4)


@pytest.mark.nightly
def test_a_cluster_of_ones_own_is_left_as_it_was():
    distributed = pytest.importorskip("distributed")
    expected = rounds(engine_of(None, 1), makers(5))
    settings = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as own, distributed.Client(own) as client:
        for cluster in (own, own.scheduler_address, client):
            engine = Dask(cluster=cluster)
            assert rounds(engine, makers(5)) == expected
            engine.close()
        assert client.submit(sum, [1, 2]).result() == 3
