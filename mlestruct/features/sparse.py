"""A sparse row of features per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.features.base import (
    Columns,
    check_parts,
    power,
    refuse_none,
    refuse_nonfinite,
    restart,
)
from mlestruct.structures.base import Array, Ints, as_numbers, sound
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
        if isinstance(matrix, (list, tuple)):
            check_parts(matrix, np.diff(batch.offsets), "coordinate")
            matrix = [sound(part, f"example {m}") for m, part in enumerate(matrix)]
            matrix = sp.vstack(matrix, format="csr")
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"features have dtype {matrix.dtype}; expected numbers")
        array = sp.csr_array(sound(matrix, "features"), dtype=float)
        if array.shape[0] != batch.size:
            raise ValueError(f"features have {array.shape[0]} rows for {batch.size} coordinates")
        if not array.has_canonical_format:
            array = array.copy()  # the user's own arrays stay as they are
            array.sum_duplicates()
        refuse_nonfinite(array, batch.offsets, "coordinate")
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
