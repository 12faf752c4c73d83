"""Engines ask parts of the examples: one after the other, on threads, or at Dask's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol

from mlestruct import engine as engines
from mlestruct.errors import refuse_removed
from mlestruct.storage.trees import Tree


class Engine(Protocol):
    """Where parts are asked. Their number is the data's business, never the number of workers.

    Interface: ``open(parts)`` → the parts at work, with their warm starts: ``ask(name, questions)``
    puts a question, a tuple of arguments, to each part's method of that name and returns the
    answers in the parts' order, so that sums have the same bits anywhere; ``memory()`` are the warm
    starts as trees, ``remember(trees)`` goes on from them, and ``close()`` releases the parts.

    A part is a share of the examples. Asked, it changes nothing: its method takes the arguments and
    a warm start, None at first, and returns the answer and the next warm start. ``pack(warm)`` is
    that as a tree of arrays, None where nothing depends on it, and ``unpack(tree)`` the warm start
    again. Asked the same from the same warm start, a part answers the same bits. ``first`` is the
    number of its first example; ``halves(arguments)`` are the two halves of its examples, each with
    its arguments, none of a single example: so the example that costs workers is found.
    """

    def open(self, parts: Sequence[Any]) -> Any: ...


@dataclass
class Local:
    """Parts in this process, asked one after the other or by a pool of threads."""

    parts: list[Any]
    warm: list[Any]
    pool: ThreadPoolExecutor | None = None

    def ask(self, name: str, questions: Sequence[tuple[Any, ...]]) -> list[Any]:
        asked = zip(self.parts, questions, self.warm, strict=True)
        if self.pool is None:
            found = [getattr(part, name)(*question, warm) for part, question, warm in asked]
        else:
            running = [
                self.pool.submit(partial(copy_context().run, getattr(part, name)), *question, warm)
                for part, question, warm in asked
            ]
            found = [one.result() for one in running]
        self.warm = [warm for _, warm in found]
        return [answer for answer, _ in found]

    def memory(self) -> list[Tree]:
        return [part.pack(warm) for part, warm in zip(self.parts, self.warm, strict=True)]

    def remember(self, trees: Sequence[Tree]) -> None:
        pairs = zip(self.parts, trees, strict=True)
        self.warm = [None if tree is None else part.unpack(tree) for part, tree in pairs]

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()


@dataclass(frozen=True)
class Threads:
    """``workers`` threads of this process: for parts that release the GIL, as our kernels do."""

    workers: int = 1

    def open(self, parts: Sequence[Any]) -> Local:
        pool = ThreadPoolExecutor(self.workers) if self.workers > 1 else None
        return Local(list(parts), [None] * len(parts), pool)


@dataclass(frozen=True)
class Serial(Threads):
    """One part after the other, in the caller's thread."""


def engine_of(engine: Engine | str | None, workers: int) -> Any:
    """An engine from a name and a number of workers, or the one given."""
    if not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers is {workers!r}; it must be a whole number, at least 1")
    if engine is None:
        engine = "serial" if workers == 1 else "threads"
    if not isinstance(engine, str):
        if workers != 1:
            raise ValueError(f"workers={workers} is {engine!r}'s own business: leave it away")
        return engine
    if engine not in ENGINES:
        refuse_removed(f"engine={engine!r}")
        raise ValueError(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
    return ENGINES[engine](workers)


# Cached, so that all runs that name Dask share its workers, which take a second to start.
ENGINES: dict[str, Callable[[int], Engine]] = {
    "serial": lambda workers: Serial(),
    "threads": Threads,
    "dask": cache(lambda workers: engines.Dask(workers=workers)),
}
