"""An oracle asked for fixed shares of the examples, wherever an engine has them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlestruct.engine import Serial
from mlestruct.errors import counted_from
from mlestruct.oracle import Answers, Oracle, memory, remember
from mlestruct.oracle.solver import Solver
from mlestruct.oracle.wrappers import Around, innermost
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch, spans


@dataclass(frozen=True)
class OraclePart:
    """Some examples and their oracle, for engines; ``first`` is the number of the first of them."""

    batch: Batch[Any]
    oracle: Oracle[Any]
    first: int = 0

    def answer(self, scores: Array, warm: object = None) -> tuple[Answers, None]:
        """Return the oracle's answers; its errors count examples from ``first``."""
        try:
            return self.oracle.many(self.batch, scores), None
        except Exception as error:
            if not hasattr(error, "__notes__"):  # a solver says which example it was
                last = self.first + len(self.batch) - 1
                error.add_note(f"the oracle raised this, asked about {self.first} to {last}")
            raise counted_from(error, self.first) from error.__cause__

    def pack(self, warm: object = None) -> Tree:
        """Return what the oracle remembers of this batch."""
        return memory(self.oracle, self.batch)

    def unpack(self, tree: Tree) -> None:
        """Let the oracle remember it."""
        remember(self.oracle, self.batch, tree)

    def halves(self, arguments: tuple[Any, ...]) -> list[tuple[OraclePart, tuple[Any, ...]]]:
        """Return the two halves, each with its scores; a single example has none."""
        halves = []
        for half in self.batch.shards(2) if len(self.batch) > 1 else []:
            part = OraclePart(self.batch.select(half), self.oracle, self.first + int(half[0]))
            halves.append((part, (arguments[0][spans(self.batch.offsets, half)],)))
        return halves


@dataclass(frozen=True)
class RemoteOracle(Around):
    """An oracle asked where the engine has its parts: what it does there is not done here."""

    engine: Any
    oracle: Oracle[Any]

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        with closing(self.engine.open([OraclePart(batch, self.oracle)])) as running:
            answers: Answers = running.ask("answer", [(scores,)])[0]
        return answers


class Asked:
    """Asks the oracle for all examples, by ``count`` fixed parts of them on an engine."""

    def __init__(self, engine: Any, batch: Batch[Any], oracle: Oracle[Any], count: int) -> None:
        # Solvers of users are asked one by one and remember nothing: parts would only cost time.
        plain = type(engine) is Serial and isinstance(innermost(oracle), Solver)
        members = batch.shards(1 if plain else count)
        own = replace(batch)  # oracles may remember a batch, and runs are not to know each other
        parts = [batch.select(part) for part in members] if len(members) > 1 else [own]
        edges = np.cumsum([0, *(part.size for part in parts)])
        self.slices = [slice(*edges[i : i + 2]) for i in range(len(parts))]
        firsts = [int(part[0]) for part in members]
        self.running = engine.open(
            [OraclePart(part, oracle, first) for part, first in zip(parts, firsts, strict=True)]
        )

    def __call__(self, score: Array) -> Answers:
        answers = self.running.ask("answer", [(score[place],) for place in self.slices])
        return np.concatenate([a[0] for a in answers]), np.concatenate([a[1] for a in answers])

    def memory(self) -> Tree:
        """Return what the parts remember, None if that is nothing, in whatever parts."""
        kept = self.running.memory()
        return None if all(one is None for one in kept) else kept

    def remember(self, tree: Tree) -> None:
        """Go on from what the parts remembered."""
        if tree is not None:
            self.running.remember(tree)

    def close(self) -> None:
        self.running.close()
