"""Shards in this process: one after the other, or on threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import call
from typing import Any, Self

from mlestruct.engine.protocol import Maker, Shard, Tree


class Local:
    """Shards as objects of this process."""

    def __init__(self, shards: list[Shard], pool: ThreadPoolExecutor | None = None) -> None:
        self.shards, self.pool = shards, pool

    def __len__(self) -> int:
        return len(self.shards)

    def round(self, questions: Sequence[Any]) -> list[Any]:
        over = map if self.pool is None else self.pool.map
        return list(over(call, self.shards, questions))

    def memory(self) -> list[Tree]:
        return [shard.memory() for shard in self.shards]

    def remember(self, trees: Sequence[Tree]) -> None:
        for shard, tree in zip(self.shards, trees, strict=True):
            shard.remember(tree)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
        return Local([make() for make in makers], ThreadPoolExecutor(self.workers))
