"""Convex learners on more examples than memory holds: shard by shard, read at every pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.learners.convex import Learner
from mlestruct.learners.model import Model, collect, ridge_of
from mlestruct.method import Progress
from mlestruct.objectives.base import Share
from mlestruct.oracle import Validated, resolve
from mlestruct.structures.base import Array
from mlestruct.train.proofs import likelihood
from mlestruct.train.streamed import Reader, Source, stream


def streamed(
    learner: Learner, sources: Sequence[Source], start: Array | None = None
) -> Iterator[Progress]:
    """Every round of a fit by the direct route, the last one certified; τ is nowhere kept.

    A source reads one shard's (batch, features), wherever the learner's engine has it: a file's,
    a database's. How examples are cut into shards is part of the result's last digits; where the
    shards are read is not.
    """
    if not sources:
        raise ValueError("no sources: there is nothing to learn from")
    if learner.route == "frank_wolfe" or learner.small is not None:
        raise ValueError(
            f"streamed examples take the direct route whole: {learner.route=}, {learner.small=}"
        )
    plain = partial(_share, replace(learner, solver=FrankWolfe()))
    readers = [Reader(source, plain, number) for number, source in enumerate(sources)]
    ridge = partial(ridge_of, learner.regulariser)
    yield from stream(learner.solver, readers, ridge, start)


def fit_streamed(learner: Learner, sources: Sequence[Source]) -> Model:
    """:func:`streamed` to its end."""
    return collect(streamed(learner, sources))


def _share(learner: Learner, batch: Batch[Any], features: Features) -> Share:
    dual = replace(learner, route="direct").dual(batch, features)
    messages = replace(learner, route="direct").messages(dual)
    assert messages is not None
    return likelihood(dual, messages, Validated(resolve(learner.oracle, batch)))
