"""What features are: an adjoint pair of linear maps, and where an example's moments live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mlestruct.structures.base import Array, Ints


@dataclass(frozen=True)
class Columns:
    """Where per-example moments live: weights ``index[start[m]:start[m+1]]`` of example m."""

    start: Ints
    index: Ints

    @classmethod
    def all(cls, d: int, examples: int) -> Columns:
        return cls(d * np.arange(examples + 1), np.tile(np.arange(d), examples))

    def gather(self, local: Array, d: int, weight: Array) -> Array:
        """Σ_m weight_m · (example m's moments)."""
        per_entry = np.repeat(weight, np.diff(self.start))
        return np.bincount(self.index, weights=local * per_entry, minlength=d).astype(float)


class Features(Protocol):
    """An adjoint pair: ⟨potentials(θ), τ⟩ = ⟨θ, moments(τ)⟩, rows aligned with a batch.

    Interface: ``d``; ``potentials(theta)`` → flat scores; ``moments(tau)`` → Σ over the batch;
    ``each(tau)`` → every example's own moments on its ``columns``, flat; ``select(members)``.
    """

    @property
    def d(self) -> int: ...
    @property
    def columns(self) -> Columns: ...
    def potentials(self, theta: Array) -> Array: ...
    def moments(self, tau: Array) -> Array: ...
    def each(self, tau: Array) -> Array: ...
    def select(self, members: Ints) -> Features: ...


@dataclass(frozen=True)
class NoFeatures:
    """No weights at all: inference with the score as bias."""

    size: int
    examples: int
    d: int = 0

    @property
    def columns(self) -> Columns:
        return Columns.all(0, self.examples)

    def potentials(self, theta: Array) -> Array:
        return np.zeros(self.size)

    def moments(self, tau: Array) -> Array:
        return np.zeros(0)

    def each(self, tau: Array) -> Array:
        return np.zeros(0)

    def select(self, members: Ints) -> NoFeatures:
        raise NotImplementedError("features that are empty have no rows to select")


def restart(offsets: Ints, members: Ints) -> Ints:
    """Offsets of these members, one after the other."""
    return np.concatenate([[0], np.cumsum(np.diff(offsets)[members])])
