"""The seam to every place where shards of the examples can live and work; those of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from operator import call
from typing import Any, Protocol

from mlestruct import engine as engines
from mlestruct.errors import refuse_removed
from mlestruct.trees import Tree


class Shard(Protocol):
    """A share of the examples, asked again and again where it lives.

    Interface: calling it with a question → its answer; ``memory()`` → what later answers depend
    on besides their questions, as a tree, None where that is nothing; ``remember(tree)`` goes on
    from there. Asked the same from the same memory, it answers the same bits.
    """

    def __call__(self, question: Any, /) -> Any: ...
    def memory(self) -> Tree: ...
    def remember(self, tree: Tree) -> None: ...


Maker = Callable[[], Shard]
"""Makes a shard where it is to live; Dask's workers are sent its pickle.

It may have ``halves(question)`` and ``first``, by which the example that costs workers is found.
"""


class Running(Protocol):
    """Started shards. Answers come in the shards' order, so sums have the same bits anywhere.

    Interface: ``len`` is the number of shards; ``round(questions)`` asks each its question;
    ``memory()`` and ``remember`` are the shards' own, one tree each; ``close()`` releases them.
    """

    def __len__(self) -> int: ...
    def round(self, questions: Sequence[Any]) -> list[Any]: ...
    def memory(self) -> list[Tree]: ...
    def remember(self, trees: Sequence[Tree]) -> None: ...
    def close(self) -> None: ...


class Engine(Protocol):
    """Where shards run. Their number is the data's business, never the number of workers."""

    def start(self, makers: Sequence[Maker]) -> Running: ...


class Local:
    """Shards as objects of this process, asked one after the other or in a pool of threads."""

    def __init__(self, shards: list[Shard], pool: ThreadPoolExecutor | None = None) -> None:
        self.shards, self.pool = shards, pool

    def __len__(self) -> int:
        return len(self.shards)

    def round(self, questions: Sequence[Any]) -> list[Any]:
        if self.pool is None:
            return list(map(call, self.shards, questions))
        asked = zip(self.shards, questions, strict=True)
        running = [self.pool.submit(copy_context().run, *pair) for pair in asked]
        return [one.result() for one in running]

    def memory(self) -> list[Tree]:
        return [shard.memory() for shard in self.shards]

    def remember(self, trees: Sequence[Tree]) -> None:
        for shard, tree in zip(self.shards, trees, strict=True):
            shard.remember(tree)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()


@dataclass(frozen=True)
class Threads:
    """``workers`` threads of this process: for shards that release the GIL, as our kernels do."""

    workers: int

    def start(self, makers: Sequence[Maker]) -> Local:
        pool = ThreadPoolExecutor(self.workers) if self.workers > 1 else None
        return Local([make() for make in makers], pool)


@dataclass(frozen=True)
class Serial(Threads):
    """One shard after the other, in the caller's thread."""

    workers: int = 1


def engine_of(engine: Engine | str | None, workers: int) -> Engine:
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
