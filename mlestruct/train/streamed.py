"""The direct route over examples that memory does not hold: shards read theirs when asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.checkpoint import begin
from mlestruct.digest import digest
from mlestruct.features import Features
from mlestruct.frank_wolfe import State, noted
from mlestruct.objectives.base import Question
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train.descents import descend
from mlestruct.train.direct import COARSEST, Direct, Task
from mlestruct.train.proofs import Judge, Prove
from mlestruct.train.units import columns, units
from mlestruct.trees import Tree

Source = Callable[[], tuple[Batch[Any], Features]]
"""Reads one shard's examples; pickled to where it is called, again and again."""
log = logging.getLogger("mlestruct")


class Survey(NamedTuple):
    """What a shard has: asked for once, before the first round."""

    examples: int
    coordinates: int
    d: int
    loose: bool
    bound: str
    print: str
    columns: Array | None


@dataclass(frozen=True)
class Reader:
    """Makes a shard that reads its examples when asked, and keeps inference's warm start only."""

    source: Source
    judge: Callable[[Batch[Any], Features], Judge]
    number: int

    def __call__(self) -> Read:
        return Read(self)


class Read:
    """A shard between two readings: its warm start."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.tree: Tree = None

    def __call__(self, question: Question | Prove | None) -> Any:
        try:
            judge = self.reader.judge(*self.reader.source())
            if question is None:
                return _survey(judge)
            judged = judge()
            judged.remember(self.tree)
            answer = judged(question)
            self.tree = judged.memory()
            return answer
        except Exception as error:
            error.add_note(f"in shard {self.reader.number}, whose examples count from 0")
            raise

    def memory(self) -> Tree:
        return self.tree

    def remember(self, tree: Tree) -> None:
        self.tree = tree


def _survey(judge: Judge) -> Survey:
    dual, routine = judge.dual, judge.routine
    return Survey(
        len(dual.batch),
        dual.batch.size,
        dual.features.d,
        routine.loosened(COARSEST) is not routine,
        str(dual.entropy.bound),
        digest(dual.batch.target, dual.observed),
        columns(dual.batch, dual.features),
    )


def stream(
    direct: Direct,
    readers: Sequence[Reader],
    ridge: Callable[[int], Regulariser],
    start: Array | None = None,
) -> Iterator[State]:
    """The states of :class:`Direct` on all shards; none has a τ. A pass over them all per round."""
    with direct.engine.start(readers) as running:
        found: list[Survey] = running.round([None] * len(readers))
        wrong = [k for k, one in enumerate(found) if one.d != found[0].d]
        if wrong:
            k = wrong[0]
            raise ValueError(f"shard {k} has {found[k].d} features, shard 0 has {found[0].d}")
        regulariser = ridge(found[0].d)

        known = [one.columns for one in found if one.columns is not None]
        bend = np.sum(known, axis=0) if len(known) == len(found) else None
        scale = units(bend, regulariser.lam)

        task = Task(
            running=running,
            regulariser=regulariser,
            examples=sum(one.examples for one in found),
            bound=" / ".join(dict.fromkeys(one.bound for one in found)),
            loose=any(one.loose for one in found),
            descent=partial(descend, regulariser, memory=direct.memory, scale=scale),
            keep=False,
            given=start,
        )
        log.info("%d examples in %d shards", task.examples, len(readers))
        setting = {
            "shards": digest([tuple(one) for one in found]),
            "regulariser": digest(regulariser),
            "start": digest(start),
            **direct.limits(),
        }
        size = sum(one.coordinates for one in found)
        loop = begin(direct.checkpoint, "stream", lambda: setting, size)
        yield from noted(loop, partial(direct.follow, task, loop))
