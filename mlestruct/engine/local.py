"""Shards in this process: one after the other, or on threads; and engines by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from operator import call
from typing import Any

from mlestruct import engine as engines
from mlestruct.engine.protocol import Engine, Maker, Shard, Tree
from mlestruct.threads import sharing


class Local:
    """Shards as objects of this process, on so many threads; those beyond shards work in each."""

    def __init__(self, shards: list[Shard], threads: int = 1) -> None:
        self.shards, self.inside = shards, threads // max(len(shards), 1)
        several = threads > 1 and len(shards) > 1
        self.pool = ThreadPoolExecutor(threads) if several else None

    def __len__(self) -> int:
        return len(self.shards)

    def round(self, questions: Sequence[Any]) -> list[Any]:
        ask: Any = self._ask if self.inside > 1 else call
        if self.pool is None:
            return list(map(ask, self.shards, questions))
        asked = zip(self.shards, questions, strict=True)
        running = [self.pool.submit(copy_context().run, ask, *pair) for pair in asked]
        return [one.result() for one in running]

    def _ask(self, shard: Shard, question: Any) -> Any:
        with sharing(self.inside):
            return shard(question)

    def memory(self) -> list[Tree]:
        return [shard.memory() for shard in self.shards]

    def remember(self, trees: Sequence[Tree]) -> None:
        for shard, tree in zip(self.shards, trees, strict=True):
            shard.remember(tree)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()


@dataclass(frozen=True)
class Serial:
    """One shard after the other, in the caller's thread."""

    def start(self, makers: Sequence[Maker]) -> Local:
        return Local([make() for make in makers])


@dataclass(frozen=True)
class Threads:
    """``workers`` threads of this process: for shards that release the GIL, as our kernels do."""

    workers: int

    def start(self, makers: Sequence[Maker]) -> Local:
        return Local([make() for make in makers], self.workers)


def threads_of(engine: Engine | str | None, workers: int) -> int:
    """How many threads of this process an engine works with."""
    if isinstance(engine, Threads):
        return engine.workers
    return workers if engine in (None, "threads") else 1


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
        raise ValueError(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
    return ENGINES[engine](workers)


# Cached, so that all runs that name an engine share its workers, which take a second to start.
ENGINES: dict[str, Callable[[int], Engine]] = {
    "serial": lambda workers: Serial(),
    "threads": Threads,
    "processes": cache(lambda workers: engines.Processes(workers=workers)),
    "dask": cache(lambda workers: engines.Dask(workers=workers)),
}
