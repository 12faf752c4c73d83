"""Several threads on one example: its work in fixed pieces, so that their number changes no bit.

``with sharing(4):`` offers threads to what the caller does inside. Work that is worth it asks
:func:`each` for the answers of independent pieces, in their order, or runs one kernel in all
threads with :func:`abreast`. Without threads, and inside a piece, both work in the caller's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
A = TypeVar("A")


class Crew:
    """Threads that start when they are first needed."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pool: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[int], None], stop: Callable[[], None]) -> None:
        """``work(rank)`` in every thread, until all have ended; ``stop`` has them end early."""
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.threads)
        running: list[Future[None]] = []
        try:
            for rank in range(self.threads):
                running.append(self.pool.submit(copy_context().run, work, rank))
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            if any(not one.done() or one.exception() for one in running):
                stop()
            wait(running)
        for one in running:
            one.result()


_here = threading.local()


@contextmanager
def sharing(threads: int) -> Iterator[None]:
    """So many threads for what this thread does inside, unless it has some; they end with it."""
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"workers is {threads!r}; it must be a whole number, at least 1")
    if threads == 1 or at_hand() > 1:
        yield
        return
    _here.crew = crew = Crew(threads)
    try:
        yield
    finally:
        _here.crew = None
        if crew.pool is not None:
            crew.pool.shutdown()


def at_hand() -> int:
    """How many threads there are for what this thread does."""
    crew = getattr(_here, "crew", None)
    return 1 if crew is None else int(crew.threads)


def each(function: Callable[[T], A], items: Iterable[T]) -> list[A]:
    """The function's answers in the items' order; of several errors, the first item's."""
    waiting, crew = list(items), getattr(_here, "crew", None)
    if crew is None or len(waiting) < 2:
        return [function(one) for one in waiting]
    found: list[Any] = [None] * len(waiting)
    failed: list[tuple[int, BaseException]] = []
    turn, over = count(), threading.Event()

    def work(rank: int) -> None:
        while not over.is_set() and (k := next(turn)) < len(waiting):
            try:
                found[k] = function(waiting[k])
            except BaseException as error:
                failed.append((k, error))
                over.set()

    crew.run(work, over.set)
    if failed:
        raise min(failed, key=lambda one: one[0])[1]
    return found


def abreast(work: Callable[[int], None], stop: Callable[[], None]) -> None:
    """``work(rank)`` in all threads at hand at once; ``stop`` has them end early."""
    crew = getattr(_here, "crew", None)
    if crew is None:
        work(0)
    else:
        crew.run(work, stop)
