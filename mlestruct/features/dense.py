"""A feature row per coordinate, dense or sparse, as users mostly give features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.features.base import CHUNK, Columns, Features, power, restart, rows_of
from mlestruct.structures.base import (
    Array,
    Ints,
    Structure,
    as_numbers,
)
from mlestruct.structures.batch import Batch, spans


@dataclass(frozen=True)
class Sparse:
    """A scipy.sparse row per coordinate; an example's moments stay on its own columns."""

    matrix: sp.csr_array
    offsets: Ints
    columns: Columns = field(repr=False)
    local: Ints = field(repr=False)  # every entry's place among its example's columns

    @classmethod
    def of(cls, batch: Batch[Any], matrix: Any) -> Sparse:
        """From one (coordinates × d) sparse matrix, or a list with one per example."""
        array = rows_of(matrix, batch.offsets, "coordinate", sparse=True)
        return cls._with(array, batch.offsets)

    @classmethod
    def _with(cls, array: sp.csr_array, offsets: Ints) -> Sparse:
        example = np.repeat(
            np.arange(len(offsets) - 1), np.diff(np.asarray(array.indptr, dtype=np.int64)[offsets])
        )
        d = array.shape[1]
        used, local = np.unique(example * np.int64(d) + array.indices, return_inverse=True)
        start = np.searchsorted(used, np.arange(len(offsets)) * np.int64(d))
        return cls(array, offsets, Columns(start, used % max(d, 1)), local)

    @property
    def d(self) -> int:
        return int(self.matrix.shape[1])

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta")
        return np.asarray(self.matrix @ theta)

    def moments(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau")
        return np.asarray(self.matrix.T @ tau)

    def squares(self, v: Array) -> Array:
        v = as_numbers(v, "v")
        return np.asarray(power(self.matrix).T @ v)

    def each(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau")
        weights = self.matrix.data * np.repeat(tau, np.diff(self.matrix.indptr))
        found = np.bincount(self.local, weights=weights, minlength=len(self.columns.index))
        return found.astype(float)

    def select(self, members: Ints) -> Sparse:
        rows = sp.csr_array(self.matrix[spans(self.offsets, members)])
        return Sparse._with(rows, restart(self.offsets, members))


GONE = 1e-12  # of a column: what rounding leaves of a part that is not there
ULPS = 4e-15  # of an example's largest entry: what rounding leaves of each of its entries


@dataclass(frozen=True)
class Dense:
    """A feature row per coordinate: matrix (coordinates × d), float32 or memory-mapped welcome."""

    matrix: NDArray[Any]
    offsets: Ints

    @classmethod
    def of(cls, batch: Batch[Any], matrix: Any) -> Dense:
        """From one (coordinates, d) matrix, or one array (…, d) per example."""
        return cls(rows_of(matrix, batch.offsets, "coordinate", sparse=False), batch.offsets)

    @property
    def d(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.offsets) - 1)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows that a processor's cache holds, as floats: a product with all takes BLAS thrice as
        long, and more threads than were asked for. One after the other in memory: of others BLAS
        has other bits.
        """
        step = max(1, CHUNK // max(self.d, 1))
        for first in range(0, len(self.matrix), step):
            rows = slice(first, first + step)
            yield rows, np.ascontiguousarray(self.matrix[rows], dtype=float)

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta")
        out = np.empty(len(self.matrix))
        for rows, block in self._blocks():
            np.matmul(block, theta, out=out[rows])
        return out

    def moments(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau")
        out = np.zeros(self.d)
        for rows, block in self._blocks():
            out += tau[rows] @ block
        return out

    def squares(self, v: Array) -> Array:
        v = as_numbers(v, "v")
        out = np.zeros(self.d)
        for rows, block in self._blocks():
            out += v[rows] @ block**2
        return out

    def each(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau", len(self.matrix))
        start, count = self.offsets, len(self.offsets) - 1
        out, first = np.empty((count, self.d)), 0
        ready = self.matrix.dtype == float and self.matrix.flags.c_contiguous
        while first < count:
            most = start[-1] if ready else start[first] + CHUNK // max(self.d, 1)
            last = max(first + 1, int(np.searchsorted(start, most, side="right")) - 1)
            rows, inside = slice(start[first], start[last]), start[first : last + 1] - start[first]
            block = np.ascontiguousarray(self.matrix[rows], dtype=float)
            some = np.flatnonzero(tau[rows])
            starts = np.searchsorted(some, inside)
            times = sp.csr_array((tau[rows][some], some, starts), (last - first, len(block)))
            out[first:last] = times @ block
            first = last
        return out.ravel()

    def select(self, members: Ints) -> Dense:
        rows = np.asarray(self.matrix[spans(self.offsets, members)])
        return Dense(rows, restart(self.offsets, members))


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if not sp.issparse(first):
        return Dense.of(batch, X)
    return Sparse.of(batch, X)


def levelled(batch: Batch[Any], features: Features, wanted: Ints) -> Features:
    """The same model; of movable structures ``wanted`` columns lose what all outcomes have alike.

    That says nothing, and a large one (the mean of a Unix time) drowns what does; the structure
    says what it is: :meth:`Structure.levelled`. Columns stay as they are where features are not a
    dense row per coordinate. What rounding leaves becomes 0: of a constant column it would be
    divided by its own size, and learned from.
    """
    if not isinstance(features, Dense) or not (groups := _movable(batch)):
        return features
    matrix = np.array(features.matrix, dtype=float)
    for structure, members in groups:
        table = matrix[batch.index(members)].reshape(len(members), structure.size, -1)
        given = table[:, :, wanted]
        given = given - given[:, [structure.fixed.argmin()]]  # exact, as all have as many pairs
        rest, size = structure.levelled(given), np.abs(given).max(axis=1, keepdims=True)
        table[:, :, wanted] = np.where(np.abs(rest) > ULPS * size, rest, 0.0)
        matrix[batch.index(members)] = table.reshape(-1, matrix.shape[1])
    return replace(features, matrix=matrix)


def levelled_scores(batch: Batch[Any], scores: Array) -> Array:
    """The same differences between outcomes; of movable structures without what all share."""
    out = scores.copy()
    for structure, members in _movable(batch):
        table = batch.rows(scores, members)[:, :, None]
        out[batch.index(members)] = structure.levelled(table).ravel()
    return out


def alike(batch: Batch[Any], features: Features, asked: Ints) -> list[int]:
    """Which of the columns are the same for every outcome of every example.

    Found where they are 0, and where features are dense and structures say what outcomes share.
    """
    left = [int(j) for j in asked]
    if not isinstance(features, Dense):
        return [j for j in left if not features.potentials(np.eye(features.d)[j]).any()]
    for structure, members in batch.groups():
        table = np.asarray(features.matrix[batch.index(members)][:, left], dtype=float)
        table = table.reshape(len(members), structure.size, -1)
        rest = np.abs(structure.levelled(table)).max(axis=(0, 1), initial=0.0)
        same = rest <= GONE * np.abs(table).max(axis=(0, 1), initial=0.0)
        left = [j for j, flat in zip(left, same, strict=True) if flat]
    return left


def _movable(batch: Batch[Any]) -> list[tuple[Structure, Ints]]:
    return [group for group in batch.groups() if group[0].movable]
