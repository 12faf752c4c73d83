"""What every engine owes to shards: their answers in order, their memory, their errors."""

from __future__ import annotations

import copy
import os
import threading
import time
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import Dask, engine_of
from mlestruct.errors import LostWorker


def parts(count, act=lambda number, asked: None):
    """Parts that add up what they are asked, and call ``act(number, how often asked)`` before.

    The sum is the warm start. Classes made here travel by value, as users' own do.
    """

    @dataclass
    class Sums:
        first: int

        def total(self, question, warm):
            total, asked = (0.0, 0) if warm is None else warm
            act(self.first, asked + 1)
            total = 0.9 * total + question.sum()
            return (self.first, total * np.ones(2)), (total, asked + 1)

        def pack(self, warm):
            return None if warm is None else {"total": warm[0], "asked": warm[1]}

        def unpack(self, tree):
            return tree["total"], tree["asked"]

        def halves(self, arguments):
            return []

    return [Sums(number) for number in range(count)]


def rounds(engine, given, count=7):
    with closing(engine.open(given)) as running:
        return _rounds(running, 0, count)


def _rounds(running, first, count):
    found, places = [], range(len(running.parts))
    for r in range(first, first + count):
        answers = running.ask("total", [(np.full(3, k + 0.1 * r),) for k in places])
        assert [number for number, _ in answers] == list(places)
        found.append([answer.tolist() for _, answer in answers])
    return found


def test_answers_come_in_order_with_the_same_bits(engine):
    assert rounds(engine, parts(5)) == rounds(engine_of(None, 1), parts(5))


def test_a_run_goes_on_elsewhere_from_its_memory(engine):
    expected = rounds(engine_of(None, 1), parts(3), 7)
    with closing(engine.open(parts(3))) as running:
        before = _rounds(running, 0, 4)
        trees = running.memory()
    with closing(engine.open(parts(3))) as running:
        running.remember(trees)
        assert before + _rounds(running, 4, 3) == expected


def test_a_run_of_many_rounds_replays_at_most_twenty(remote):
    """The log of questions is emptied whenever the states are gathered."""
    with closing(remote.open(parts(2))) as running:
        longest = 0
        for r in range(45):
            running.ask("total", [(np.full(3, 0.1 * r),)] * 2)
            longest = max(longest, len(running.log))
        assert longest < 20


def test_killed_again_and_again_is_an_error(remote):
    def dies(number, asked):
        if number == 2:
            os._exit(7)

    with pytest.raises(LostWorker, match="example 2"):
        rounds(remote, parts(3, dies))
    assert rounds(remote, parts(2)) == rounds(engine_of(None, 1), parts(2))


@pytest.mark.nightly
def test_workers_come_back_for_as_long_as_they_are_killed(remote):
    """Dask looks 15 s after each loss whether the worker is there, and gives it up if it is not."""

    def dies(number, asked):
        if number == 2:
            os._exit(7)

    until = time.monotonic() + 25
    while time.monotonic() < until:
        with pytest.raises(LostWorker, match="example 2"):
            rounds(remote, parts(3, dies))
    began = time.monotonic()
    assert rounds(remote, parts(2)) == rounds(engine_of(None, 1), parts(2))
    assert time.monotonic() - began < 10  # no waiting for one that never comes


def test_an_exception_without_a_pickle_keeps_its_words(remote):
    def fails(number, asked):
        class Odd(Exception):
            def __init__(self, a, b):
                super().__init__(f"{a} and {b}")

        raise Odd(1, 2)

    with pytest.raises(Exception, match="1 and 2"):
        rounds(remote, parts(1, fails))


def test_what_cannot_be_sent_is_refused(remote):
    lock = threading.Lock()

    def fails(number, asked):
        lock.acquire()

    with pytest.raises(ValueError, match="no other process can be sent this"):
        rounds(remote, parts(1, fails))


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

    class Tells:
        def told(self, warm):
            return [os.environ.get(name) for name in names], None

        def pack(self, warm):
            return None

    with closing(remote.open([Tells(), Tells()])) as running:
        found = running.ask("told", [(), ()])
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
    expected = rounds(engine_of(None, 1), parts(5))
    settings = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as own, distributed.Client(own) as client:
        for cluster in (own, own.scheduler_address, client):
            engine = Dask(cluster=cluster)
            assert rounds(engine, parts(5)) == expected
            engine.close()
        assert client.submit(sum, [1, 2]).result() == 3
