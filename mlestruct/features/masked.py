"""Only some of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.features.base import Columns, Features
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.batch import Batch


@dataclass(frozen=True)
class Masked:
    """Other features with only some weights allowed; the rest are 0 and not part of θ.

    ``index`` lists the allowed weights of ``inner`` in order. With :meth:`seen` these are the
    weights that an observed outcome uses, which is how CRFsuite counts its parameters.
    """

    inner: Any
    index: Ints

    @classmethod
    def of(cls, inner: Features, allowed: NDArray[np.bool_] | Ints) -> Masked:
        """``allowed`` is a flag per weight of ``inner``, or the allowed weights' numbers."""
        given = np.asarray(allowed)
        index = np.flatnonzero(given) if given.dtype == bool else np.unique(given)
        if given.dtype == bool and len(given) != inner.d:
            raise ValueError(f"{len(given)} flags for {inner.d} weights")
        if len(index) and not 0 <= index[0] <= index[-1] < inner.d:
            raise ValueError(f"allowed weights must be in 0..{inner.d - 1}, got {index[-1]}")
        return cls(inner, index.astype(np.int64))

    @classmethod
    def seen(cls, inner: Features, batch: Batch[Any]) -> Masked:
        """The weights whose moment under what is observed of the outcomes is not zero."""
        if batch.target is None:
            raise ValueError("weights are seen in outcomes, and this batch has none")
        known = np.nan_to_num(batch.target) if batch.partly else batch.target
        return cls.of(inner, inner.moments(known) != 0)

    @property
    def d(self) -> int:
        return len(self.index)

    @property
    def offsets(self) -> Ints:
        return np.asarray(self.inner.offsets)

    @property
    def columns(self) -> Columns:
        return self._columns[0]

    @cached_property
    def _columns(self) -> tuple[Columns, Ints]:
        """The inner columns that are allowed, and which of the inner entries they are."""
        inner = self.inner.columns
        place = np.minimum(np.searchsorted(self.index, inner.index), max(self.d - 1, 0))
        kept = self.index[place] == inner.index if self.d else np.zeros(len(place), dtype=bool)
        before = np.concatenate([[0], np.cumsum(kept)])
        return Columns(before[inner.start], place[kept]), np.flatnonzero(kept)

    def spread(self, theta: Array) -> Array:
        """All weights of ``inner``, those not allowed 0."""
        theta = as_numbers(theta, "theta")
        full = np.zeros(self.inner.d)
        full[self.index] = theta
        return full

    def gather(self, full: Array) -> Array:
        """The allowed ones of inner weights."""
        full = as_numbers(full, "full")
        return np.asarray(full[self.index])

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.inner.potentials(self.spread(theta)))

    def moments(self, tau: Array) -> Array:
        return self.gather(self.inner.moments(tau))

    def squares(self, v: Array) -> Array | None:
        found = self.inner.squares(v)
        return None if found is None else self.gather(found)

    def each(self, tau: Array) -> Array:
        return np.asarray(self.inner.each(tau)[self._columns[1]])

    def select(self, members: Ints) -> Masked:
        return Masked(self.inner.select(members), self.index)
