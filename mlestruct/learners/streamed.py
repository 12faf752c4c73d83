"""Convex learners on more examples than memory holds: shard by shard, read at every pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.digest import digest
from mlestruct.drive import drive
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.learners.convex import Learner
from mlestruct.learners.model import Model, collect, ridge_of
from mlestruct.method import Progress
from mlestruct.objectives.base import EvaluationPoint
from mlestruct.oracle import Validated, resolve
from mlestruct.structures.base import Array
from mlestruct.train.descents import columns, descend, units
from mlestruct.train.direct import Descending, estimate
from mlestruct.train.proofs import Prove, likelihood
from mlestruct.trees import Tree

Source = Callable[[], tuple[Batch[Any], Features]]
"""Reads one shard's examples; pickled to where it is called, again and again."""
log = logging.getLogger("mlestruct")


def streamed(
    learner: Learner, sources: Sequence[Source], start: Array | None = None
) -> Iterator[Progress]:
    """Every round of a fit by the direct route, the last one certified; τ is nowhere kept.

    A source reads one shard's (batch, features), wherever the learner's engine has it: a file's,
    a database's. How examples are cut into shards is part of the result's last digits; where the
    shards are read is not. A round is a pass over them all.
    """
    if not sources:
        raise ValueError("no sources: there is nothing to learn from")
    if learner.route == "frank_wolfe" or learner.small is not None:
        raise ValueError(
            f"streamed examples take the direct route whole: {learner.route=}, {learner.small=}"
        )
    solver, plain = learner.solver, replace(learner, solver=FrankWolfe(), route="direct")
    readers = [Reader(plain, source, number) for number, source in enumerate(sources)]
    with closing(engine_of(solver.engine, solver.workers).start(readers)) as running:
        found: list[Survey] = running.round([None] * len(readers))
        wrong = [k for k, one in enumerate(found) if one.d != found[0].d]
        if wrong:
            k = wrong[0]
            raise ValueError(f"shard {k} has {found[k].d} features, shard 0 has {found[0].d}")
        regulariser = ridge_of(learner.regulariser, found[0].d)

        known = [one.columns for one in found if one.columns is not None]
        squared = np.sum(known, axis=0) if len(known) == len(found) else None
        scale = units(squared, regulariser.lam)

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
            coarse=max(one.coarse for one in found),
            descents=lambda: partial(descend, regulariser, scale=scale),
            tol=solver.tol,
            setting=lambda: setting,
            size=sum(one.coordinates for one in found),
            keep=False,
            given=start,
            name="stream",
        )
        yield from drive(method, solver.budget, solver.checkpoint)


def fit_streamed(learner: Learner, sources: Sequence[Source]) -> Model:
    """:func:`streamed` to its end."""
    return collect(streamed(learner, sources), learner.inference)


class Survey(NamedTuple):
    """What a shard has: asked for once, before the first round."""

    examples: int
    coordinates: int
    d: int
    coarse: float
    bound: str
    print: str
    columns: Array | None


@dataclass(frozen=True)
class Reader:
    """Makes a shard that reads its examples when asked, and keeps inference's warm start only."""

    learner: Learner
    source: Source
    number: int

    def __call__(self) -> Read:
        return Read(self)


class Read:
    """A shard between two readings: its warm start."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.tree: Tree = None

    def __call__(self, question: EvaluationPoint | Prove | None) -> Any:
        learner = self.reader.learner
        try:
            dual = learner.dual(*self.reader.source())
            batch, routine = dual.batch, learner.messages(dual)
            assert routine is not None
            if question is None:
                coarse, bound = routine.first, str(dual.entropy.bound)
                known = digest(batch.target, dual.observed), columns(batch, dual.features)
                return Survey(len(batch), batch.size, dual.features.d, coarse, bound, *known)
            part = likelihood(dual, routine, Validated(resolve(learner.oracle, batch)))()
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
