"""Features whose rows count with the weights of a graph's nodes and factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlestruct.features.base import Columns, Features, restart
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch


@dataclass(frozen=True)
class Weighed:
    """Another features' scores times a weight per coordinate."""

    inner: Any
    weight: Array
    offsets: Ints

    @property
    def d(self) -> int:
        return int(self.inner.d)

    @property
    def columns(self) -> Columns:
        found: Columns = self.inner.columns
        return found

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.weight * self.inner.potentials(theta))

    def moments(self, tau: Array) -> Array:
        return np.asarray(self.inner.moments(self.weight * tau))

    def squares(self, v: Array) -> Array | None:
        found: Array | None = self.inner.squares(self.weight**2 * v)
        return found

    def each(self, tau: Array) -> Array:
        return np.asarray(self.inner.each(self.weight * tau))

    def select(self, members: Ints) -> Weighed:
        parts = [self.weight[self.offsets[m] : self.offsets[m + 1]] for m in members]
        offsets = restart(self.offsets, members)
        return Weighed(self.inner.select(members), np.concatenate(parts), offsets)


def weighed(batch: Batch[Any], features: Features) -> tuple[Batch[Any], Features]:
    """Bias and features with the weights of nodes and factors; the same where all count alike."""
    weight = batch.counts
    if weight is None:
        return batch, features
    return replace(batch, bias=batch.bias * weight), Weighed(features, weight, batch.offsets)
