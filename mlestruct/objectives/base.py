"""The seam of all objectives, their sum over shards of the examples, the surrogate likelihood.

At the end a sum less another: log Z, and log Z of what agrees with what was seen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from mlestruct.engine import Shard
from mlestruct.errors import counted_from
from mlestruct.features import Features
from mlestruct.inference.routine import Routine
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch, spans
from mlestruct.trees import Tree

SHARD, MOST = 200_000, 8  # coordinates that are worth a shard of their own; never more than MOST


class Values(NamedTuple):
    """Σ w_m ℓ_m, its gradient by each head's scores, and what the next call may start from.

    ``stalled`` counts the examples on which inference did not converge.
    """

    value: float
    gradient: Mapping[str, Array]
    tau: Array | None = None
    warm: Any = None
    stalled: int = 0


class Objective(Protocol):
    """A function of the scores that every head gives to a batch; weights w_m are its business.

    Interface: calling it with (batch, heads, warm, tol) → :class:`Values`, where ``heads`` maps a
    head's name to its scores (``score``: one per coordinate) and inference inside may stop at a
    relative error ``tol``. ``exact_gradient`` is False where the gradient is not the value's own
    (truncated inference); then line searches mean nothing and the trainer takes plain steps.
    Each with a default here: where answers depend on ``warm``, ``pack(warm)`` → it as a tree of
    arrays, and ``unpack(batch, tree)`` → the warm start again; ``cheaper(batch, heads)`` may offer
    pieces of the same numbers at less cost, see :data:`Cheaper`.
    """

    @property
    def exact_gradient(self) -> bool: ...

    @abstractmethod
    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values: ...

    def pack(self, warm: Any) -> Tree:
        return None

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        return None

    def cheaper(self, batch: Batch[Any], heads: Mapping[str, Head]) -> Cheaper | None:
        return None


@dataclass(frozen=True)
class Head:
    """Features and a link: scores Φθ + bias, or their exponential, which stays positive."""

    features: Features
    bias: Array | float = 0.0
    exponential: bool = False

    def scores(self, theta: Array) -> Array:
        out = self.features.potentials(theta)
        out += self.bias
        return np.exp(out, out=out) if self.exponential else out

    def pull(self, scores: Array, gradient: Array) -> Array:
        """The gradient by θ from the one by scores."""
        return self.features.moments(gradient * scores if self.exponential else gradient)

    def select(self, members: Ints, entries: Ints) -> Head:
        bias = self.bias if np.ndim(self.bias) == 0 else np.asarray(self.bias)[entries]
        return Head(self.features.select(members), bias, self.exponential)


class EvaluationPoint(NamedTuple):
    """Where a shard is to be evaluated, and how exactly."""

    theta: Array
    tol: float = 0.0


class ShardValue(NamedTuple):
    """A shard's value and gradient there; examples on which inference had not converged."""

    value: float
    gradient: Array
    stalled: int = 0


Cheaper = Callable[[Ints, Callable[[Ints], Shard]], Shard]
"""(members, how to make the general piece) → a piece of the same numbers."""


Proves = Any
"""Proves what inference finds on a shard, (question, batch, heads, warm) → what it says.

``of(batch, members)`` is the same for some of the examples.
"""


class ShardSummand:
    """An objective on one shard: θ → heads → value, and back. Keeps the shard's warm start.

    Questions other than an :class:`EvaluationPoint` are what ``proves`` answers.
    """

    def __init__(
        self,
        objective: Objective,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        first: int = 0,
        proves: Proves | None = None,
    ) -> None:
        self.objective, self.batch, self.heads, self.first = objective, batch, heads, first
        self.proves, self.warm, self.places = proves, None, places(heads)

    def __call__(self, question: Any) -> Any:
        batch, heads, place = self.batch, self.heads, self.places
        try:
            if not isinstance(question, EvaluationPoint):
                assert self.proves is not None
                return self.proves(question, batch, heads, self.warm)
            theta, tol = question
            scores = {}
            for name, head in heads.items():
                scores[name] = head.scores(theta[place[name]])
            found = self.objective(batch, scores, self.warm, tol)
            self.warm = found.warm
            gradient = np.zeros(len(theta))
            for name, head in heads.items():
                gradient[place[name]] = head.pull(scores[name], found.gradient[name])
            return ShardValue(found.value, gradient, found.stalled)
        except Exception as error:
            raise counted_from(error, self.first) from error.__cause__

    def memory(self) -> Tree:
        return None if self.warm is None else self.objective.pack(self.warm)

    def remember(self, tree: Tree) -> None:
        self.warm = None if tree is None else self.objective.unpack(self.batch, tree)


def places(heads: Mapping[str, Head]) -> dict[str, slice]:
    """Each head's part of θ, in the heads' order."""
    found, end = {}, 0
    for name, head in heads.items():
        found[name] = slice(end, end := end + head.features.d)
    return found


class Sum:
    """Σ of the pieces, in their order: the same bits on any engine.

    While ``cold`` every answer is a first call's: what depends on warm starts is a function again.
    """

    def __init__(self, running: Any) -> None:
        self.running = running
        self.tol = 0.0
        self.stalled = 0
        self.cold = False

    def forget(self) -> None:
        """The pieces' next answers are those of a first call."""
        self.running.remember([None] * len(self.running))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        if self.cold:
            self.forget()
        first, *rest = self.running.round([EvaluationPoint(theta, self.tol)] * len(self.running))
        value, gradient, self.stalled = first
        for more, slope, stalled in rest:
            value += more
            gradient += slope
            self.stalled += stalled
        return value, gradient


@dataclass(frozen=True)
class Share:
    """Makes one shard's piece; pickled, it takes along its own examples only.

    ``before`` counts the examples before the batch's own, for the numbers in errors.
    """

    objective: Objective
    batch: Batch[Any]
    heads: Mapping[str, Head]
    members: Ints
    cheaper: Cheaper | None = None
    proves: Proves | None = None
    before: int = 0

    @classmethod
    def whole(
        cls,
        objective: Objective,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        proves: Proves | None = None,
        before: int = 0,
        *,
        general: bool = False,
    ) -> Share:
        """All examples as one, by cheaper pieces where the objective has them.

        ``general``: by no others, as where a part of a batch could have them that as a whole could
        not.
        """
        cheaper = None if general else objective.cheaper(batch, heads)
        return cls(objective, batch, heads, np.arange(len(batch)), cheaper, proves, before)

    @property
    def first(self) -> int:
        return self.before + int(self.members[0])

    def __call__(self) -> Shard:
        if self.cheaper is None:
            return self._general(self.members)
        return self.cheaper(self.members, self._general)

    def split(self) -> list[Share]:
        """A maker per shard: as many as the batch's size is worth, whatever works on them."""
        count = int(np.clip(self.batch.size // SHARD, 1, MOST))
        return [replace(self, members=members) for members in self.batch.shards(count)]

    def halves(self, question: Any) -> list[tuple[Share, Any]]:
        """Makers of the two halves, each with the question; a single example has none."""
        parts = np.array_split(self.members, 2) if len(self.members) > 1 else []
        return [(replace(self, members=part), question) for part in parts]

    def _general(self, members: Ints) -> ShardSummand:
        batch, heads, proves = self._own(members)
        return ShardSummand(self.objective, batch, heads, self.before + int(members[0]), proves)

    def _own(self, members: Ints) -> tuple[Batch[Any], Mapping[str, Head], Proves | None]:
        if len(members) == len(self.batch):
            return self.batch, self.heads, self.proves
        batch, heads = self.batch.select(members), chosen(self.heads, self.batch, members)
        return batch, heads, None if self.proves is None else self.proves.of(batch, members)

    def __reduce__(self) -> tuple[Any, ...]:
        batch, heads, proves = self._own(self.members)
        whole = partial(Share.whole, general=self.cheaper is None)
        return whole, (self.objective, batch, heads, proves, self.first)


def chosen(heads: Mapping[str, Head], batch: Batch[Any], members: Ints) -> dict[str, Head]:
    """The heads of some examples, where their entries are a batch's coordinates."""
    entries = spans(batch.offsets, members)
    return {name: head.select(members, entries) for name, head in heads.items()}


@dataclass(frozen=True)
class Surrogate(Objective):
    """Minus the surrogate log-likelihood; its gradient is τ − φ, exact once messages converge.

    The scores hold the bias; a dual's constant has taken off the observed outcome's share of it.
    """

    routine: Routine
    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        scores, target = heads["score"], batch.target
        assert target is not None
        log_z, tau, warm = self.routine.coarser(tol).many(batch, scores, warm)
        each = log_z - batch.observed(scores)
        if batch.constant is not None:
            each += batch.constant + batch.observed(batch.bias)
        gradient = tau - target
        if (batch.weight != 1).any():
            gradient *= batch.weights
        stalled = self.routine.stalled(warm)
        return Values(float(batch.weight @ each), {"score": gradient}, tau, warm, stalled)

    def cheaper(self, batch: Batch[Any], heads: Mapping[str, Head]) -> Cheaper | None:
        """Chains whose transitions are tied, without a table per edge."""
        if not self.routine.exact:
            return None
        from mlestruct.objectives.tied_chains import pieces

        return pieces(self.routine, batch, heads)

    def pack(self, warm: Any) -> Tree:
        return self.routine.pack(warm)

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        return self.routine.unpack(batch, tree)


class Difference:
    """One shard's value less another's, at the same θ."""

    def __init__(self, more: Shard, less: Shard) -> None:
        self.more, self.less = more, less

    def __call__(self, question: EvaluationPoint) -> ShardValue:
        more, less = self.more(question), self.less(question)
        slope = more.gradient - less.gradient
        return ShardValue(more.value - less.value, slope, more.stalled + less.stalled)

    def memory(self) -> Tree:
        return self.more.memory(), self.less.memory()

    def remember(self, tree: Tree) -> None:
        more, less = (None, None) if tree is None else tree
        self.more.remember(more)
        self.less.remember(less)


@dataclass(frozen=True)
class Differences:
    """Makes one shard of a difference, of what makes either; both have the same examples."""

    more: Share
    less: Share

    @property
    def first(self) -> int:
        return self.more.first

    def __call__(self) -> Difference:
        return Difference(self.more(), self.less())

    def halves(self, question: Any) -> list[tuple[Differences, Any]]:
        """Makers of the two halves, each with the question."""
        both = (share.halves(question) for share in (self.more, self.less))
        return [(Differences(a, b), question) for (a, _), (b, _) in zip(*both, strict=True)]


def difference(more: Share, less: Share) -> list[Differences]:
    """A maker per shard of the first less the second, each given as all examples as one."""
    return [Differences(share, replace(less, members=share.members)) for share in more.split()]
