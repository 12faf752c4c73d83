"""Other features whose rows serve several coordinates, or count with weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlestruct.features.base import Columns, Features, restart
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.batch import Batch, spans


@dataclass(frozen=True)
class Weighed:
    """Coordinate k scores ``weight[k]`` times the inner features' row ``row[k]``."""

    inner: Any
    row: Ints
    weight: Array
    offsets: Ints
    starts: Ints
    """Where every example's inner rows begin."""

    @property
    def d(self) -> int:
        return int(self.inner.d)

    @property
    def columns(self) -> Columns:
        found: Columns = self.inner.columns
        return found

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.weight * self.inner.potentials(theta)[self.row])

    def moments(self, tau: Array) -> Array:
        return np.asarray(self.inner.moments(self.sums(tau)))

    def squares(self, v: Array) -> Array | None:
        found: Array | None = self.inner.squares(self.sums(self.weight * v))
        return found

    def each(self, tau: Array) -> Array:
        return np.asarray(self.inner.each(self.sums(tau)))

    def sums(self, tau: Array) -> Array:
        """Weighed sums over the coordinates of every inner row."""
        tau, count = self.weight * as_numbers(tau, "tau"), int(self.starts[-1])
        return np.bincount(self.row, weights=tau, minlength=count).astype(float)

    def select(self, members: Ints) -> Weighed:
        flat, starts = spans(self.offsets, members), restart(self.starts, members)
        sizes = np.diff(self.offsets)[members]
        row = self.row[flat] - np.repeat(self.starts[members] - starts[:-1], sizes)
        offsets = restart(self.offsets, members)
        return Weighed(self.inner.select(members), row, self.weight[flat], offsets, starts)


def weighed(batch: Batch[Any], features: Features) -> tuple[Batch[Any], Features]:
    """Bias and features with the weights of nodes and factors; the same where all count alike."""
    weight = batch.counts
    if weight is None:
        return batch, features
    row, offsets = np.arange(batch.size), batch.offsets
    return replace(batch, bias=batch.bias * weight), Weighed(
        features, row, weight, offsets, offsets
    )
