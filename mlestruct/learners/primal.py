"""What every primal learner shares: L-BFGS on an objective of the weights, and Fenchel's gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from mlestruct.batch import Batch, pinned
from mlestruct.digest import digest, named
from mlestruct.drive import drive
from mlestruct.dual import Certificate
from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.choose import DEFAULT, Inference
from mlestruct.lbfgs import Descent, Step
from mlestruct.learners.model import Fits, Learns, check_problem, ridge_of
from mlestruct.method import Progress
from mlestruct.objectives import Head, Objective
from mlestruct.objectives.base import Share, places
from mlestruct.objectives.difference import difference
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.structures.graph import only_graphs
from mlestruct.train.descents import LEAST, columns, descend, memory, units
from mlestruct.train.direct import Descending
from mlestruct.train.slopes import descend_slopes
from mlestruct.train.small_batches import SmallBatches
from mlestruct.trees import Tree

Doubt = Callable[[int], str]
"""Why the objective proves nothing, with inference stalled on so many examples."""
Heads = Callable[[Batch[Any], Features], Mapping[str, Head]]


def scored(batch: Batch[Any], features: Features) -> dict[str, Head]:
    """One score per coordinate, and the batch's bias."""
    return {"score": Head(features, batch.bias)}


@dataclass(frozen=True)
class Primal(Fits):
    """min over θ of R(θ) + Σ w_m ℓ_m(θ), by L-BFGS with bounds, λ per group and l1.

    The gap is Fenchel's for R: it bounds the error of a convex objective whose gradient is exact.
    Elsewhere ``doubt`` says why nothing is certified. Descents are those of
    :class:`mlestruct.train.direct.Descending`, begun anew ``restarts`` times at most. Where the
    gradient is not the value's own, steps are judged by slopes alone; ``small`` takes stochastic
    ones instead, and a round is an epoch. θ holds the weights of all ``heads``, one after the
    other, and starts where ``begin`` says (default: the regulariser's optimum). Of ``solver`` it
    takes ``tol``, ``rounds``, ``seconds``, ``workers`` and ``engine``.
    """

    name: str
    objective: Callable[[Batch[Any]], Objective]
    polytope: str
    bound: str
    regulariser: float | Regulariser = 1.0
    solver: FrankWolfe = field(default=FrankWolfe())
    doubt: Doubt | None = None
    restarts: int = 0
    small: SmallBatches | None = None
    heads: Heads = scored
    begin: Callable[[Batch[Any], Features], Array] | None = None
    inference: Inference = DEFAULT
    """What its models predict with."""
    partly: Literal["", "summed", "seen"] = ""
    """How it learns from outcomes of which a part was seen, if it does: ``summed`` over the rest,
    ℓ being log Z less its observed score; or its objective makes do with the tables ``seen``."""
    dear: bool = True
    """Whether an evaluation takes so long that L-BFGS may keep more steps to need fewer."""

    def states(
        self, batch: Batch[Any], features: Features, start: Array | None = None
    ) -> Iterator[Progress]:
        """Every iteration."""
        check_problem(self.name, batch, features, partly=self.partly != "")
        batch = only_seen(batch) if self.partly == "seen" else batch
        heads, solver = self.heads(batch, features), self.solver
        ridge, engine = _ridge(self.regulariser, heads), engine_of(solver.engine, solver.workers)
        begin = None if self.begin is None else partial(self.begin, batch, features)

        def setting() -> dict[str, Any]:
            return {
                **named(batch, heads, ridge),
                "objective": digest(self.objective(batch)),
                "start": digest(start),
                **asdict(solver.budget),
                "restarts": self.restarts,
                "small": repr(self.small),
            }

        method = Descending(
            shards=lambda: closing(engine.start(self._makers(batch, heads))),
            regulariser=ridge,
            examples=len(batch),
            claim=partial(self._claim, batch.partly),
            descents=partial(self._descents, batch, heads, ridge),
            tol=solver.tol,
            restarts=self.restarts,
            setting=setting,
            size=batch.size,
            given=begin if start is None else start,
            name=self.name,
            proof=None,
            learned=partial(_besides, heads),
        )
        return drive(method, solver.budget, solver.checkpoint)

    def of_seen(self, tol: float) -> Learns:
        """The learner itself where its objective knows what to do; else it is refused."""
        summed = self.partly == "summed" and self.small is None
        return self if summed or self.partly == "seen" else super().of_seen(tol)

    def _makers(self, batch: Batch[Any], heads: Mapping[str, Head]) -> Sequence[Any]:
        """What makes shards; of outcomes seen in part: all outcomes less those that agree."""
        if not batch.partly:
            return Share.whole(self.objective(batch), batch, heads).split()
        both = [replace(one, target=np.zeros(batch.size)) for one in (batch, pinned(batch))]
        return difference(*(Share.whole(self.objective(one), one, heads) for one in both))

    def _descents(
        self, batch: Batch[Any], heads: Mapping[str, Head], ridge: Regulariser
    ) -> Callable[..., Descent]:
        objective = self.objective(batch)
        if self.small is not None:
            return partial(self.small.run, objective, batch, heads, ridge)
        scale = _units(batch, heads, ridge)
        if not objective.exact_gradient:
            return partial(descend_slopes, ridge, scale=scale)
        kept = memory(batch.size, len(ridge)) if self.dear else LEAST
        return partial(descend, ridge, memory=kept, scale=scale)

    def _claim(self, partly: bool, step: Step, gap: float, stalled: int) -> Certificate:
        claimed, why = (gap, None) if self.doubt is None else (np.inf, self.doubt(stalled))
        if partly:
            also = "" if why is None else f"; {why}"
            claimed, why = np.inf, f"with labels missing it is not convex{also}"
        return Certificate(claimed, 0.0, -step.value, self.polytope, self.bound, why)


def _ridge(given: float | Regulariser, heads: Mapping[str, Head]) -> Regulariser:
    """The regulariser of all heads; one for the scores alone gives others its mean λ."""
    each = {name: head.features.d for name, head in heads.items()}
    total = sum(each.values())
    if not isinstance(given, Regulariser) or len(given) == total or len(given) != each["score"]:
        return ridge_of(given, total)
    more = Regulariser.of(total - len(given), float(given.lam.mean()))
    parts = zip(astuple(given), astuple(more), strict=True)
    return Regulariser(*(np.concatenate(pair) for pair in parts))


def _besides(heads: Mapping[str, Head], theta: Array) -> Tree:
    """The weights of heads that are not scores, by name; None where there are no others."""
    found = {name: theta[part] for name, part in places(heads).items() if name != "score"}
    return found or None


def _units(batch: Batch[Any], heads: Mapping[str, Head], ridge: Regulariser) -> Array | None:
    """Of a single head on the coordinates; weights of entropies are all of one kind."""
    if list(heads) != ["score"] or heads["score"].exponential:
        return None
    return units(columns(batch, heads["score"].features), ridge.lam)


def only_seen(batch: Batch[Any]) -> Batch[Any]:
    """Labelled graphs whose tables are 0 in the target where a variable of theirs was not seen.

    A label that is known to be one of several was not.
    """
    if batch.target is None or not batch.partly:
        return batch
    only_graphs(batch.structures, "an objective of what was seen")
    target = np.nan_to_num(batch.target)
    for structure, members in batch.groups():
        entry, node, _ = structure.below
        order = np.bincount(entry, minlength=structure.size)
        for m in members:
            own = target[batch.coordinates(m)]
            met = np.bincount(entry, weights=own[node], minlength=structure.size)
            own[order > 0] = (met == order)[order > 0]
    return replace(batch, target=target)


def refuse(name: str, route: str, **unused: Any) -> None:
    """A ValueError for settings that a primal learner would not heed."""
    for setting, value in unused.items():
        if value is not None:
            raise ValueError(f"{name} has no use for {setting}={value!r}")
    if route not in ("auto", "direct"):
        raise ValueError(f"{name} has a direct route only, not route={route!r}")
