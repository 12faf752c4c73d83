"""One round's questions: an oracle asked for fixed shares of the examples, wherever they live."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mlestruct.engine import Engine
from mlestruct.errors import counted_from
from mlestruct.oracle import Answers, Oracle, memory, remember
from mlestruct.oracle.wrappers import Around
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.trees import Tree


class OracleShard:
    """A shard: some examples and their oracle. Asked with scores, it answers as oracles do.

    ``first`` is the number of its first example, as errors are to count them.
    """

    def __init__(self, batch: Batch[Any], oracle: Oracle[Any], first: int) -> None:
        self.batch, self.oracle, self.first = batch, oracle, first

    def __call__(self, scores: Array) -> Answers:
        try:
            return self.oracle.many(self.batch, scores)
        except Exception as error:
            if not hasattr(error, "__notes__"):  # a solver says which example it was
                last = self.first + len(self.batch) - 1
                error.add_note(f"the oracle raised this, asked about {self.first} to {last}")
            raise counted_from(error, self.first) from error.__cause__

    def memory(self) -> Tree:
        return memory(self.oracle, self.batch)

    def remember(self, tree: Tree) -> None:
        remember(self.oracle, self.batch, tree)


@dataclass(frozen=True)
class OracleShards:
    """Makes the shard of these examples."""

    batch: Batch[Any]
    oracle: Oracle[Any]
    first: int = 0

    def __call__(self) -> OracleShard:
        return OracleShard(self.batch, self.oracle, self.first)

    def halves(self, scores: Array) -> list[tuple[OracleShards, Array]]:
        """Makers of the two halves, each with its scores; a single example has none."""
        count = len(self.batch)
        if count == 1:
            return []
        parts = [self.batch.select(part) for part in self.batch.shards(2)]
        cut = parts[0].size
        return [
            (OracleShards(parts[0], self.oracle, self.first), scores[:cut]),
            (OracleShards(parts[1], self.oracle, self.first + len(parts[0])), scores[cut:]),
        ]


@dataclass(frozen=True)
class RemoteOracle(Around):
    """An oracle asked where the engine has its shards: what it does there is not done here."""

    engine: Engine
    oracle: Oracle[Any]

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        with closing(self.engine.start([partial(OracleShard, batch, self.oracle, 0)])) as running:
            answers: Answers = running.round([scores])[0]
        return answers


class ShardedOracle:
    """Asks the oracle for all examples, by fixed shards on an engine."""

    def __init__(self, engine: Engine, batch: Batch[Any], oracle: Oracle[Any], count: int) -> None:
        members = batch.shards(count)
        own = replace(batch)  # oracles may remember a batch, and runs are not to know each other
        parts = [batch.select(part) for part in members] if len(members) > 1 else [own]
        edges = np.cumsum([0, *(part.size for part in parts)])
        self.slices = [slice(*edges[i : i + 2]) for i in range(len(parts))]
        firsts = [int(part[0]) for part in members]
        self.running: Any = engine.start(
            [OracleShards(part, oracle, first) for part, first in zip(parts, firsts, strict=True)]
        )

    def __call__(self, score: Array) -> Answers:
        answers = self.running.round([score[place] for place in self.slices])
        return np.concatenate([a[0] for a in answers]), np.concatenate([a[1] for a in answers])

    def close(self) -> None:
        self.running.close()
