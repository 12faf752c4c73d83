"""The direct route over examples that memory does not hold: shards read theirs when asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.digest import digest
from mlestruct.drive import drive
from mlestruct.dual import Dual
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.method import Progress
from mlestruct.objectives.base import EvaluationPoint, Share
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.train.descents import columns, descend, units
from mlestruct.train.direct import COARSEST, Descending, estimate
from mlestruct.train.proofs import Prove, Proving
from mlestruct.trees import Tree

Source = Callable[[], tuple[Batch[Any], Features]]
"""Reads one shard's examples; pickled to where it is called, again and again."""
log = logging.getLogger("mlestruct")


class Survey(NamedTuple):
    """What a shard has: asked for once, before the first round."""

    examples: int
    coordinates: int
    d: int
    coarse: bool
    bound: str
    print: str
    columns: Array | None


@dataclass(frozen=True)
class Reader:
    """Makes a shard that reads its examples when asked, and keeps inference's warm start only."""

    source: Source
    share: Callable[[Batch[Any], Features], Share]
    number: int

    def __call__(self) -> Read:
        return Read(self)


class Read:
    """A shard between two readings: its warm start."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.tree: Tree = None

    def __call__(self, question: EvaluationPoint | Prove | None) -> Any:
        try:
            share = self.reader.share(*self.reader.source())
            if question is None:
                return _survey(share)
            part = share()
            part.remember(self.tree)
            answer = part(question)
            self.tree = part.memory()
            return answer
        except Exception as error:
            error.add_note(f"in shard {self.reader.number}, whose examples count from 0")
            raise

    def memory(self) -> Tree:
        return self.tree

    def remember(self, tree: Tree) -> None:
        self.tree = tree


def _survey(share: Share) -> Survey:
    batch, features, proves = share.batch, share.heads["score"].features, share.proves
    assert isinstance(proves, Proving)
    dual, routine = Dual(batch, features, proves.entropy, Regulariser.of(0)), proves.routine
    return Survey(
        len(batch),
        batch.size,
        features.d,
        routine.loosened(COARSEST) is not routine,
        str(dual.entropy.bound),
        digest(batch.target, dual.observed),
        columns(batch, features),
    )


def stream(
    solver: FrankWolfe,
    readers: Sequence[Reader],
    ridge: Callable[[int], Regulariser],
    start: Array | None = None,
) -> Iterator[Progress]:
    """The rounds of :func:`direct` on all shards; none has a τ. A pass over them all per round."""
    with engine_of(solver.engine, solver.workers).start(readers) as running:
        found: list[Survey] = running.round([None] * len(readers))
        wrong = [k for k, one in enumerate(found) if one.d != found[0].d]
        if wrong:
            k = wrong[0]
            raise ValueError(f"shard {k} has {found[k].d} features, shard 0 has {found[0].d}")
        regulariser = ridge(found[0].d)

        known = [one.columns for one in found if one.columns is not None]
        bend = np.sum(known, axis=0) if len(known) == len(found) else None
        scale = units(bend, regulariser.lam)

        examples = sum(one.examples for one in found)
        log.info("%d examples in %d shards", examples, len(readers))
        setting = {
            "shards": digest([tuple(one) for one in found]),
            "regulariser": digest(regulariser),
            "start": digest(start),
            **asdict(solver.budget),
        }
        method = Descending(
            shards=lambda: nullcontext(running),
            regulariser=regulariser,
            examples=examples,
            claim=partial(estimate, " / ".join(dict.fromkeys(one.bound for one in found))),
            coarse=any(one.coarse for one in found),
            descents=lambda: partial(descend, regulariser, scale=scale),
            tol=solver.tol,
            setting=lambda: setting,
            size=sum(one.coordinates for one in found),
            keep=False,
            given=start,
            name="stream",
        )
        yield from drive(method, solver.budget, solver.checkpoint)
