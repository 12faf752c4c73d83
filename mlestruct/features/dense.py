"""A feature row per coordinate, as users mostly give features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.features.base import (
    CHUNK,
    Columns,
    Features,
    check_parts,
    refuse_none,
    refuse_nonfinite,
    restart,
)
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, as_numbers


@dataclass(frozen=True)
class Dense:
    """A feature row per coordinate: matrix (coordinates × d), float32 or memory-mapped welcome."""

    matrix: NDArray[Any]
    offsets: Ints

    @classmethod
    def of(cls, batch: Batch[Any], matrix: Any) -> Dense:
        """From one (coordinates, d) matrix, or one array (…, d) per example."""
        array = _stack(batch, matrix)
        if array.ndim != 2 or len(array) != batch.size:
            raise ValueError(
                f"features have shape {array.shape}; expected {batch.size} rows, one per coordinate"
            )
        if array.dtype.kind == "O":
            array = as_numbers(array, "features")
        if array.dtype.kind not in "fiu":
            raise ValueError(f"features have dtype {array.dtype}; expected numbers")
        refuse_nonfinite(array, batch.offsets, "coordinate")
        kept = array.dtype in (np.dtype(np.float64), np.dtype(np.float32))
        features = cls(array if kept else array.astype(float), batch.offsets)
        refuse_none(features)
        return features

    @property
    def d(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.offsets) - 1)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows that a processor's cache holds, as floats: a product with all takes BLAS thrice as
        long, and more threads than were asked for.
        """
        step = max(1, CHUNK // max(self.d, 1))
        for first in range(0, len(self.matrix), step):
            rows = slice(first, first + step)
            yield rows, np.asarray(self.matrix[rows], dtype=float)

    def potentials(self, theta: Array) -> Array:
        out = np.empty(len(self.matrix))
        for rows, block in self._blocks():
            np.matmul(block, theta, out=out[rows])
        return out

    def moments(self, tau: Array) -> Array:
        out = np.zeros(self.d)
        for rows, block in self._blocks():
            out += tau[rows] @ block
        return out

    def squares(self, v: Array) -> Array:
        out = np.zeros(self.d)
        for rows, block in self._blocks():
            out += v[rows] @ block**2
        return out

    def each(self, tau: Array) -> Array:
        out = np.zeros((len(self.offsets) - 1, self.matrix.shape[1]))
        _dense_each(self.matrix, self.offsets, tau, out)
        return out.ravel()

    def select(self, members: Ints) -> Dense:
        rows = [self.matrix[self.offsets[m] : self.offsets[m + 1]] for m in members]
        return Dense(np.concatenate(rows), restart(self.offsets, members))


def _stack(batch: Batch[Any], matrix: Any) -> NDArray[Any]:
    if not isinstance(matrix, (list, tuple)):
        array = np.asanyarray(matrix)
        return _flat(array)
    parts = []
    for m, given in enumerate(matrix):
        try:
            array = np.asarray(given)
        except ValueError as error:
            raise ValueError(f"example {m}: {error}") from error
        if array.dtype.kind in "OmM":
            array = as_numbers(array, f"example {m}: features")
        parts.append(_flat(array))
    check_parts(parts, np.diff(batch.offsets), "coordinate")
    return np.concatenate(parts)


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    """(…, d) as (rows, d)."""
    if array.ndim < 3:
        return array
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if not sp.issparse(first):
        return Dense.of(batch, X)
    from mlestruct.features.sparse import Sparse

    return Sparse.of(batch, X)


@kernel
def _dense_each(matrix: NDArray[Any], offsets: Ints, tau: Array, out: Array) -> None:
    for m in range(len(out)):
        for k in range(offsets[m], offsets[m + 1]):
            if tau[k] != 0.0:
                for j in range(matrix.shape[1]):
                    out[m, j] += tau[k] * matrix[k, j]
