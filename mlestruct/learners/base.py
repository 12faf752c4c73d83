"""What every learner does: it runs under a regulariser, inside a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter
from typing import Any, Self

import numpy as np

from mlestruct.errors import refuse_removed
from mlestruct.features import Features
from mlestruct.learning.checkpoints import Unwritten
from mlestruct.learning.loop import BROKEN, Found, Loop, Told
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import resolve
from mlestruct.oracle.protocol import name_of
from mlestruct.storage.digest import digest, named, shown
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch

Start = Array | Found | None
"""Weights, or for Frank-Wolfe τ, to begin with; or what another fit has come to."""
OWN = ("name", "regulariser", "solver", "oracle", "learner", "inference")
FREE = ("workers", "engine", "checkpoint")  # settings of a solver that change no bit


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, the ``model`` of the last round before it, and the regulariser that was ``given``."""

    def __init__(self, model: Found, given: Any = None) -> None:
        super().__init__()
        self.model, self.given = model, given


class Learns:
    """A learner, a dataclass of settings.

    Interface: a ``name``, the ``inference`` that its models predict with, a ``regulariser``, a
    ``solver`` with limits, engine and checkpoint, and ``run(batch, features, loop, start)``, which
    learns inside a loop and returns a :class:`Found`. ``start`` is where to begin, if known:
    weights (or τ, where the oracle alone is asked), or what a fit under another regulariser found.
    """

    name: Any
    inference: Any
    regulariser: Any
    solver: Any

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """Learn inside a loop."""
        raise NotImplementedError

    def fit(
        self,
        batch: Batch[Any],
        features: Features,
        *,
        start: Start = None,
        told: Told = None,
        loop: Loop | None = None,
    ) -> Found:
        """Learn to the tolerance or within the limits of ``solver``.

        Parameters
        ----------
        batch, features
            The examples.
        start : array or Found, optional
            Where to begin: weights, or τ where the oracle alone is asked.
        told : callable, optional
            Is called with a :class:`Found` after every round.
        loop : Loop, optional
            The loop of which the fit is a part; without one its checkpoint is the solver's.
        """
        around, setting = loop, partial(self.setting, batch, features)
        loop = Loop(loop or self.solver.checkpoint, self.name, setting, self.solver, told)
        ended: KeyboardInterrupt | Unwritten | None = None
        try:
            found: Found = loop.end(loop.found or self.run(batch, features, loop, start))
        except (KeyboardInterrupt, Unwritten) as error:
            last = loop.history.last
            if last is None:
                raise
            found, ended = replace(last, short=last.short or "interrupted"), error
        except BROKEN as error:
            loop.blame(error)
            raise
        if around is not None:
            around.thin()
        rows, known = list(loop.history.rows), self.inference.recall(found.learned)
        model = replace(found, history=rows, inference=known)
        if ended is None:
            return model
        if isinstance(ended, KeyboardInterrupt):
            raise Interrupted(model, self.regulariser) from ended
        ended.model, ended.given = model, self.regulariser
        raise ended

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        told: Told = None,
    ) -> list[Found]:
        """A fit per regulariser, each starting where the one before ended, if that is of use.

        Strongest first is cheapest: weights grow from zero.
        """
        setting = {"regularisers": digest(regularisers)}
        loop = Loop(self.solver.checkpoint, "path", lambda: setting)
        found: list[Found] = []
        for given in regularisers:
            start = found[-1] if found else None
            learner = self.under(given)
            found.append(learner.fit(batch, features, start=start, told=told, loop=loop))
        loop.end()
        return found

    def under(self, regulariser: Any) -> Self:
        """The learner with another regulariser."""
        return replace(self, regulariser=regulariser)  # type: ignore[type-var]

    def of_seen(self, tol: float) -> Learns:
        """The learner for Partial outcomes, to this tolerance; refused without a likelihood."""
        raise ValueError(
            f"{self.name} cannot learn from Partial outcomes: use mle_struct, trw or exact_mle, or "
            "leave out what was not seen (unseen='left_out', where labels are missing)"
        )

    def setting(self, batch: Batch[Any], features: Features) -> dict[str, Any]:
        """What a fit that goes on from a checkpoint must share."""
        given = 1.0 if self.regulariser is None else self.regulariser
        found = named(batch, features, ridge_of(given, features.d)) | self.own()
        if hasattr(self, "oracle"):
            found["oracle"] = name_of(resolve(self.oracle, batch))
        return found

    def own(self) -> dict[str, Any]:
        """The learner's settings and its solver's, as checkpoints know them."""
        pairs = [(one.name, getattr(self, one.name)) for one in fields(self)]  # type: ignore[arg-type]
        solver = [(one.name, getattr(self.solver, one.name)) for one in fields(self.solver)]
        found = {name: shown(value) for name, value in solver if name not in FREE}
        return found | {name: shown(value) for name, value in pairs if name not in OWN}

    def states(self, *given: Any) -> None:
        """Removed."""
        refuse_removed("Learner.states")


class Wraps(Learns):
    """A learner around another ``learner``, whose settings are its own."""

    learner: Any
    name = property(attrgetter("learner.name"))
    inference = property(attrgetter("learner.inference"))
    regulariser = property(attrgetter("learner.regulariser"))
    solver = property(attrgetter("learner.solver"))

    def under(self, regulariser: Any) -> Self:
        return replace(self, learner=self.learner.under(regulariser))  # type: ignore[type-var]

    def own(self) -> dict[str, Any]:
        return self.learner.own() | super().own()


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
    if len(regulariser.lam) != d:
        raise ValueError(f"regulariser of {len(regulariser.lam)} weights for {d} features")
    return regulariser
