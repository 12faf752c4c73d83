"""The seam of all objectives, and their sum over fixed shards of the examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.structures.base import Array, Ints

SHARD, MOST = 200_000, 8  # coordinates that are worth a shard of their own; never more than MOST


class Values(NamedTuple):
    """Σ w_m ℓ_m, its gradient by each head's scores, and what the next call may start from."""

    value: float
    gradient: Mapping[str, Array]
    tau: Array | None = None
    warm: Any = None


class Objective(Protocol):
    """A function of the scores that every head gives to a batch; weights w_m are its business.

    Interface: calling it with (batch, heads, warm, tol) → :class:`Values`, where ``heads`` maps a
    head's name to its scores (``score``: one per coordinate) and inference inside may stop at a
    relative error ``tol``. ``exact_gradient`` is False where the gradient is not the value's own
    (truncated inference); then line searches mean nothing and the trainer takes plain steps.
    """

    @property
    def exact_gradient(self) -> bool: ...

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values: ...


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

    def select(self, members: Ints, entries: Array) -> Head:
        bias = self.bias if np.ndim(self.bias) == 0 else np.asarray(self.bias)[entries]
        return Head(self.features.select(members), bias, self.exponential)


class Piece(Protocol):
    """A share of the objective as a function of θ: value, gradient, and τ where there is one."""

    def __call__(self, theta: Array, tol: float) -> tuple[float, Array, Array | None]: ...


Cheaper = Callable[[Ints, Callable[[Ints], Piece]], Piece]
"""(members, how to make the general piece) → a piece of the same numbers."""
Special = Callable[[Batch[Any], Mapping[str, "Head"]], Cheaper | None]
"""Offers cheaper pieces where they serve the batch and its heads, else None."""


class Part:
    """An objective on one shard: θ → heads → value, and back. Keeps the shard's warm start."""

    def __init__(self, objective: Objective, batch: Batch[Any], heads: Mapping[str, Head]) -> None:
        self.objective, self.batch, self.heads = objective, batch, heads
        self.warm: Any = None

    def __call__(self, theta: Array, tol: float) -> tuple[float, Array, Array | None]:
        slices = places(self.heads)
        scores = {name: head.scores(theta[slices[name]]) for name, head in self.heads.items()}
        found = self.objective(self.batch, scores, self.warm, tol)
        self.warm = found.warm
        gradient = np.zeros(len(theta))
        for name, head in self.heads.items():
            gradient[slices[name]] = head.pull(scores[name], found.gradient[name])
        return found.value, gradient, found.tau


def places(heads: Mapping[str, Head]) -> dict[str, slice]:
    """Each head's part of θ, in the heads' order."""
    ends = np.cumsum([head.features.d for head in heads.values()])
    return {
        name: slice(int(end) - head.features.d, int(end))
        for (name, head), end in zip(heads.items(), ends, strict=True)
    }


class Sum:
    """Σ of the pieces, in their order: the same bits for any number of threads."""

    def __init__(self, pieces: list[Piece], pool: ThreadPoolExecutor | None = None) -> None:
        self.pieces, self.pool = pieces, pool
        self.tol = 0.0
        self.tau: Array | None = None
        self.at: Array | None = None
        self.warm: Any = None

    def __call__(self, theta: Array) -> tuple[float, Array]:
        def ask(piece: Piece) -> tuple[float, Array, Array | None]:
            return piece(theta, self.tol)

        map_ = map if self.pool is None else self.pool.map
        (value, gradient, tau), *rest = map_(ask, self.pieces)
        taus = [tau]
        for more, slope, tau in rest:
            value += more
            gradient += slope
            taus.append(tau)
        self.at = theta
        self.warm = getattr(self.pieces[0], "warm", None) if len(self.pieces) == 1 else None
        known = [tau for tau in taus if tau is not None]
        self.tau = None if len(known) < len(taus) else np.concatenate(known) if rest else known[0]
        return value, gradient


def shards(batch: Batch[Any]) -> list[Ints]:
    """Fixed shares of a batch: as many as its size is worth, whatever the number of threads."""
    return batch.shards(int(np.clip(batch.size // SHARD, 1, MOST)))


def parts(
    objective: Objective,
    batch: Batch[Any],
    heads: Mapping[str, Head],
    special: Special | None = None,
) -> list[Piece]:
    """One piece per shard; ``special`` may offer a cheaper one for the same numbers."""
    members_of = shards(batch)

    def general(members: Ints) -> Part:
        if len(members) == len(batch):
            return Part(objective, batch, heads)
        return Part(objective, batch.select(members), chosen(heads, batch, members))

    cheaper = None if special is None else special(batch, heads)
    if cheaper is None:
        return [general(members) for members in members_of]
    return [cheaper(members, general) for members in members_of]


def chosen(heads: Mapping[str, Head], batch: Batch[Any], members: Ints) -> dict[str, Head]:
    """The heads of some examples, where their entries are a batch's coordinates."""
    entries = np.concatenate([np.arange(batch.offsets[m], batch.offsets[m + 1]) for m in members])
    return {name: head.select(members, entries) for name, head in heads.items()}
