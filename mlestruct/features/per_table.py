"""One score per table: what belongs to a variable or factor, whatever its state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlestruct.features.base import Columns, restart
from mlestruct.features.tied import Tied
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class PerTable:
    """Every entry of a table scores alike: node features · p weights, factor features · q weights.

    For the coefficients of fitted entropies, one per variable and factor; tied features with a
    weight per state are one per configuration.
    """

    inner: Tied
    table: Ints
    """The table of every coordinate, numbered through the batch."""
    offsets: Ints

    @classmethod
    def of(cls, batch: Batch[FactorGraph], nodes: Any, factors: Any = None) -> PerTable:
        """``nodes`` (variables × p), ``factors`` (factors × q; default a constant), stacked."""
        counts = np.array([s.n_nodes + s.n_factors for s in batch.structures])[batch.which]
        starts = np.concatenate([[0], np.cumsum(counts)])
        tables = [s.table_of for s in batch.structures]
        table = [tables[k] + start for k, start in zip(batch.which, starts, strict=False)]
        tied = replace(Tied.of(batch, nodes, factors), states=1, table=1, offsets=starts)
        return cls(tied, np.concatenate(table), batch.offsets)

    @property
    def d(self) -> int:
        return self.inner.d

    @property
    def columns(self) -> Columns:
        return self.inner.columns

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.inner.potentials(theta)[self.table])

    def moments(self, tau: Array) -> Array:
        return self.inner.moments(self.sums(tau))

    def squares(self, v: Array) -> Array:
        return self.inner.squares(self.sums(v))

    def each(self, tau: Array) -> Array:
        return self.inner.each(self.sums(tau))

    def sums(self, tau: Array) -> Array:
        """Over the coordinates of every table."""
        tau = as_numbers(tau, "tau")
        count = int(self.inner.offsets[-1])
        return np.bincount(self.table, weights=tau, minlength=count).astype(float)

    def select(self, members: Ints) -> PerTable:
        offsets, tables = restart(self.offsets, members), restart(self.inner.offsets, members)
        parts = [
            self.table[self.offsets[m] : self.offsets[m + 1]] - self.inner.offsets[m] + start
            for m, start in zip(members, tables, strict=False)
        ]
        return PerTable(self.inner.select(members), np.concatenate(parts), offsets)
