"""A sparse row of features per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.features.base import Columns, power, refuse_none, restart, rows_of
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.batch import Batch


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
        features = cls._with(array, batch.offsets)
        refuse_none(features)
        return features

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
        parts = [self.matrix[self.offsets[m] : self.offsets[m + 1]] for m in members]
        return Sparse._with(
            sp.csr_array(sp.vstack(parts, format="csr")), restart(self.offsets, members)
        )
