"""Models: what a learner's rounds come to, for one regulariser after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mlestruct.batch import Batch
from mlestruct.checkpoint import AnyCheckpoint, Loop, Unwritten, begin
from mlestruct.dual import Certificate
from mlestruct.features import Features
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.method import Progress
from mlestruct.structures.base import Array
from mlestruct.trees import Tree

Through = Callable[[Iterator[Progress]], Iterator[Progress]]


@dataclass(frozen=True)
class Model:
    """Learned weights, the certificate they come with, and how the gap fell."""

    theta: Array
    certificate: Certificate
    history: list[tuple[int, float, float, float]] = field(repr=False)
    """(calls, seconds, objective, gap) of every round."""
    route: str = ""
    """``direct`` through marginals, ``frank_wolfe`` through the oracle, or one after the other."""
    inference: Inference = DEFAULT
    """What its marginals are computed by: that which learned it, where it computed any."""
    learned: Tree = field(default=None, repr=False)
    """What was learned of the inference, as it stands in files."""
    short: str = ""
    """Why the fit ended before what was asked of it, see
    :class:`mlestruct.method.Progress`; empty where it did not."""
    asking: float = float("nan")
    """Seconds of the fit in which its solver was waited for; not kept in files."""

    @property
    def converged(self) -> bool:
        """The fit reached what was asked of it: for certified learners, the relative gap."""
        return not self.short


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, the ``model`` of the last round before it, and the regulariser that was ``given``."""

    def __init__(self, model: Model, given: Any = None) -> None:
        super().__init__()
        self.model, self.given = model, given


def collect(states: Iterator[Progress], inference: Inference = DEFAULT) -> Model:
    """Consume rounds into a model."""
    return _collected(states, inference)[0]


States = Callable[[Any, Progress | None, Loop], Iterator[Progress]]
"""Rounds under a regulariser, given the last round under the one before it and a loop to be in."""


class Runs(NamedTuple):
    """A learner set to a problem: what it is called, where it is kept, how it goes."""

    name: str
    keeps: AnyCheckpoint
    states: States
    inference: Inference = DEFAULT


class Fits:
    """Learners whose ``runs(batch, features)`` say how they go under any regulariser."""

    def runs(self, batch: Batch[Any], features: Features) -> Runs:
        raise NotImplementedError

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        through: Through = iter,
    ) -> Iterator[Model]:
        """A model per regulariser, starting where the one before ended, if that is of use.

        Strongest first is cheapest: weights grow from zero. ``through`` may watch the rounds.
        """
        return along(self.runs(batch, features), regularisers, through)


def along(runs: Runs, regularisers: Sequence[Any], through: Through = iter) -> Iterator[Model]:
    """The models of one run after another."""
    loop, last = begin(runs.keeps, runs.name), None
    spent = loop.clock.seconds
    for number, given in enumerate(regularisers, start=1):
        loop.clock.start(spent)  # what the caller does between two models is not the fit's time
        try:
            with loop.trusted():
                states = runs.states(given, last, loop)
                model, last = _collected(through(states), runs.inference)
        except Interrupted as ended:
            raise Interrupted(ended.model, given) from ended
        except Unwritten as ended:
            ended.given = given
            raise
        loop.thin()
        spent = loop.clock.seconds
        if number == len(regularisers):
            _finish(loop, model, given)
        yield model


def _finish(loop: Loop, model: Model, given: Any) -> None:
    """The file says so too; one that cannot leaves the model all the same."""
    try:
        loop.finish()
    except Unwritten as ended:
        ended.model, ended.given = model, given
        raise


def _collected(states: Iterator[Progress], inference: Inference) -> tuple[Model, Progress]:
    history: list[tuple[int, float, float, float]] = []
    routes: dict[str, None] = {}
    last = None

    def model(state: Progress, short: str) -> Model:
        route, kept = ", then ".join(routes), inference.recall(state.learned)
        ends = (kept, state.learned, short)
        return Model(state.theta, state.certificate, history, route, *ends, asking=state.asking)

    try:
        for last in states:
            proof = last.certificate
            history.append((last.calls, last.seconds, proof.objective, proof.gap))
            routes[last.route] = None
    except KeyboardInterrupt as ended:
        if last is None:
            raise
        raise Interrupted(model(last, "interrupted")) from ended
    except Unwritten as ended:
        ended.model = None if last is None else model(last, "interrupted")
        raise
    assert last is not None
    return model(last, last.short), last
