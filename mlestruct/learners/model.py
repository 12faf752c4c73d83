"""Models: what a learner's rounds come to, for one regulariser after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from mlestruct.checkpoint import Loop, Unwritten, begin
from mlestruct.digest import digest, named_examples
from mlestruct.drive import Progress
from mlestruct.dual import Certificate
from mlestruct.features import Features
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.trees import Tree

Told = Callable[[Progress], object] | None
"""Is told of every round of a fit, as it comes."""


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
    :class:`mlestruct.drive.Progress`; empty where it did not."""
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


class Learns(Protocol):
    """A learner: its name, the inference that its models keep, and a model per regulariser.

    ``of_seen(tol)`` is the learner for Partial outcomes, or a ValueError where there is none;
    ``told`` hears of the rounds of every fit of a path.
    """

    @property
    def name(self) -> str: ...

    @property
    def inference(self) -> Inference: ...

    def of_seen(self, tol: float) -> Learns: ...

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        told: Told = None,
    ) -> Iterator[Model]: ...


class Fits:
    """Learners that run under one regulariser after another.

    Interface: a ``name``, the ``inference`` that its models predict with, the ``regulariser`` of
    :meth:`fit`, and a ``solver``, whose checkpoint keeps it; ``problem(batch, features)`` is what
    all runs share, ``run(problem, given, last, loop)`` the rounds under the ``given`` regulariser,
    inside a loop, where the ``last`` round under the one before is known, or None.
    """

    def of_seen(self: Any, tol: float) -> Learns:
        """Refused: it has no likelihood of what was seen."""
        raise ValueError(
            f"{self.name} cannot learn from Partial outcomes: use mle_struct, trw or exact_mle, or "
            "leave out what was not seen (unseen='left_out', where labels are missing)"
        )

    def problem(self, batch: Batch[Any], features: Features) -> Any:
        """The examples, or what is made of them once."""
        return batch, features

    def run(self: Any, problem: Any, given: Any, last: Any, loop: Loop) -> Iterator[Progress]:
        """The learner's ``states`` for one regulariser, from the weights of the one before."""
        one = replace(self, regulariser=given, solver=replace(self.solver, checkpoint=loop))
        found: Iterator[Progress] = one.states(*problem, None if last is None else last.theta)
        return found

    def path(
        self: Any,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        told: Told = None,
    ) -> Iterator[Model]:
        """A model per regulariser, starting where the one before ended, if that is of use.

        Strongest first is cheapest: weights grow from zero. ``told`` hears of every round.
        """
        problem, last = self.problem(batch, features), None

        def setting() -> dict[str, Any]:
            return named_examples(batch, features) | {"regularisers": digest(regularisers)}

        loop = begin(self.solver.checkpoint, self.name, setting)
        spent = loop.clock.seconds
        for number, given in enumerate(regularisers, start=1):
            loop.clock.start(spent)  # what the caller does between two models is not the fit's time
            model = None
            try:
                with loop.trusted():
                    states = self.run(problem, given, last, loop)
                    model, last = _collected(states, self.inference, told)
                loop.thin()
                spent = loop.clock.seconds
                if number == len(regularisers):
                    loop.finish()
            except Interrupted as ended:
                raise Interrupted(ended.model, given) from ended
            except Unwritten as ended:
                ended.model, ended.given = model or ended.model, given
                raise
            yield model

    def fit(self: Any, batch: Batch[Any], features: Features) -> Model:
        """Run to the tolerance or the budget of ``solver``."""
        model: Model = next(self.path(batch, features, [self.regulariser]))
        return model


class Wraps(Fits):
    """Learners around another ``learner``, whose settings are theirs."""

    learner: Any
    name = property(attrgetter("learner.name"))
    inference = property(attrgetter("learner.inference"))
    regulariser = property(attrgetter("learner.regulariser"))
    solver = property(attrgetter("learner.solver"))


def _collected(
    states: Iterator[Progress], inference: Inference, told: Told = None
) -> tuple[Model, Progress]:
    history: list[tuple[int, float, float, float]] = []
    routes: dict[str, None] = {}
    last = None

    def model(state: Progress, short: str) -> Model:
        route, kept = ", then ".join(routes), inference.recall(state.learned)
        ends = (kept, state.learned, short)
        return Model(state.theta, state.certificate, history, route, *ends, asking=state.asking)

    try:
        for said in states:
            if told is not None:
                told(said)
            last, proof = said, said.certificate
            history.append((last.calls, last.seconds, proof.objective, proof.gap))
            routes[last.route] = None
    except KeyboardInterrupt as ended:
        if last is None:
            raise
        raise Interrupted(model(last.instead or last, "interrupted")) from ended
    except Unwritten as ended:
        ended.model = None if last is None else model(last, "interrupted")
        raise
    assert last is not None
    return model(last, last.short), last


WEIGHED = ("mle_struct", "trw", "lbp", "piecewise", "pseudo_likelihood", "ssvm", "perceptron")
"""The learners whose objective is a sum over nodes and factors, or over their scores."""


def check_problem(
    name: str, batch: Batch[Any], features: Features, *, partly: bool = False
) -> None:
    """There are outcomes to learn from, and the features score just the batch's coordinates.

    ``partly``: of outcomes a part is enough.
    """
    if batch.target is None:
        raise ValueError(f"{name} learns from outcomes, and this batch has none")
    if batch.partly and not partly:
        raise ValueError(f"{name} learns from whole outcomes, and this batch has Partial ones")
    if hasattr(features, "offsets"):
        rows = int(features.offsets[-1])
    else:  # a user's own are asked with all weights 0
        rows = len(features.potentials(np.zeros(features.d)))
    if rows != batch.size:
        raise ValueError(f"features have {rows} rows for {batch.size} coordinates")
    if name not in WEIGHED and batch.counts is not None:
        raise ValueError(
            f"node and class weights mean nothing to {name!r}, which takes an example's labels as "
            f"one: use {', '.join(WEIGHED)}, or weigh whole examples by sample_weight"
        )


def ridge_of(given: float | Regulariser, d: int) -> Regulariser:
    """A regulariser of d weights, from λ or as it is."""
    regulariser = given if isinstance(given, Regulariser) else Regulariser.of(d, given)
    if len(regulariser) != d:
        raise ValueError(f"regulariser of {len(regulariser)} weights for {d} features")
    return regulariser
