"""Features made of other features: weights shared or left out, rows weighed or repeated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.features.base import Columns, Features, restart
from mlestruct.structures.base import Array, Ints, Marks, as_numbers
from mlestruct.structures.batch import Batch, spans


@dataclass(frozen=True)
class Shared:
    """Other features in ``d`` weights: inner weight i is ``theta[place[i]]``, and 0 where −1.

    Inner weights that share one are of different coordinates. Made by :meth:`of` from a matrix, by
    :meth:`only` from the inner weights that are allowed, which is how CRFsuite counts parameters
    if these are those that an observed outcome uses (:meth:`seen`).
    """

    inner: Any
    place: Ints
    d: int

    @classmethod
    def of(cls, inner: Any, spread: Any) -> Shared:
        """From a 0/1 matrix (inner weights × weights) with at most a single 1 in each row."""
        rows = sp.csr_array(spread)
        place = np.full(rows.shape[0], -1, dtype=np.int64)
        filled = np.diff(rows.indptr) == 1
        if rows.shape[0] != inner.d or (rows.data != 1).any() or filled.sum() != rows.nnz:
            raise ValueError(f"shared weights need a 0/1 row for each of {inner.d} inner weights")
        place[filled] = rows.indices
        return cls(inner, place, rows.shape[1])

    @classmethod
    def only(cls, inner: Any, allowed: Marks | Ints) -> Shared:
        """Some inner weights: ``allowed`` is a flag for each, or the allowed weights' numbers."""
        given = np.asarray(allowed)
        if given.dtype == bool and len(given) != inner.d:
            raise ValueError(f"{len(given)} flags for {inner.d} weights")
        index = np.flatnonzero(given) if given.dtype == bool else np.unique(given)
        if len(index) and not 0 <= index[0] <= index[-1] < inner.d:
            raise ValueError(f"allowed weights must be in 0..{inner.d - 1}, got {index[-1]}")
        place = np.full(inner.d, -1, dtype=np.int64)
        place[index] = np.arange(len(index))
        return cls(inner, place, len(index))

    @classmethod
    def seen(cls, inner: Features, batch: Batch[Any]) -> Shared:
        """The weights whose moment under what is observed of the outcomes is not zero."""
        if batch.target is None:
            raise ValueError("weights are seen in outcomes, and this batch has none")
        return cls.only(inner, inner.moments(np.nan_to_num(batch.target)) != 0)

    @cached_property
    def index(self) -> Ints | None:
        """The allowed inner weights, in the order of the weights; None if any is shared."""
        index = np.flatnonzero(self.place >= 0)
        return index if np.array_equal(self.place[index], np.arange(self.d)) else None

    @property
    def offsets(self) -> Ints:
        return np.asarray(self.inner.offsets)

    @property
    def columns(self) -> Columns:
        return self._columns[0]

    @cached_property
    def _columns(self) -> tuple[Columns, Ints, Ints]:
        """Every example's own weights; inner moments that count, and their places there."""
        inner, d = self.inner.columns, max(self.d, 1)
        example = np.repeat(np.arange(len(inner.start) - 1), np.diff(inner.start))
        place = self.place[inner.index]
        kept = np.flatnonzero(place >= 0)
        used, local = np.unique(example[kept] * d + place[kept], return_inverse=True)
        start = np.searchsorted(used, np.arange(len(inner.start)) * d)
        return Columns(start, used % d), kept, local

    def spread(self, theta: Array) -> Array:
        """All weights of ``inner``."""
        return np.append(as_numbers(theta, "theta"), 0.0)[self.place]

    def gather(self, full: Array) -> Array:
        """Sums of what inner weights have, over those that share one."""
        kept = self.place >= 0
        full = as_numbers(full, "full")[kept]
        return np.bincount(self.place[kept], weights=full, minlength=self.d).astype(float)

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.inner.potentials(self.spread(theta)))

    def moments(self, tau: Array) -> Array:
        return self.gather(self.inner.moments(tau))

    def squares(self, v: Array) -> Array | None:
        found = self.inner.squares(v)
        return None if found is None else self.gather(found)

    def each(self, tau: Array) -> Array:
        columns, kept, local = self._columns
        found = self.inner.each(tau)[kept]
        return np.bincount(local, weights=found, minlength=len(columns.index)).astype(float)

    def select(self, members: Ints) -> Shared:
        return Shared(self.inner.select(members), self.place, self.d)


@dataclass(frozen=True)
class Weighed:
    """Coordinate k scores ``weight[k]`` times the inner features' row ``row[k]``."""

    inner: Features
    row: Ints
    weight: Array
    offsets: Ints
    starts: Ints
    """Where every example's inner rows begin."""

    @property
    def d(self) -> int:
        return self.inner.d

    @property
    def columns(self) -> Columns:
        return self.inner.columns

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.weight * self.inner.potentials(theta)[self.row])

    def moments(self, tau: Array) -> Array:
        return self.inner.moments(self.sums(tau))

    def squares(self, v: Array) -> Array | None:
        return self.inner.squares(self.sums(self.weight * v))

    def each(self, tau: Array) -> Array:
        return self.inner.each(self.sums(tau))

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
