"""Weights that several weights of other features share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.features.base import Columns
from mlestruct.structures.base import Array, Ints, as_numbers


@dataclass(frozen=True)
class Shared:
    """Other features under θ_inner = S θ: ``spread`` S is (inner weights × weights).

    A row of zeros keeps a weight of ``inner`` at 0; two rows that are equal tie two weights,
    which are of different coordinates.
    """

    inner: Any
    spread: sp.csr_array

    @property
    def d(self) -> int:
        return int(self.spread.shape[1])

    @property
    def offsets(self) -> Ints:
        return np.asarray(self.inner.offsets)

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.inner.columns.start) - 1)

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta")
        return np.asarray(self.inner.potentials(self.spread @ theta))

    def moments(self, tau: Array) -> Array:
        return np.asarray(self.spread.T @ self.inner.moments(tau))

    def squares(self, v: Array) -> Array | None:
        """Inner weights that share one are of different coordinates."""
        found = self.inner.squares(v)
        return None if found is None else np.asarray(self.spread.power(2).T @ found)

    def each(self, tau: Array) -> Array:
        inner = self.inner.columns
        shape = (len(inner.start) - 1, self.inner.d)
        local = sp.csr_array((self.inner.each(tau), inner.index, inner.start), shape=shape)
        return np.asarray((local @ self.spread).toarray().ravel())

    def select(self, members: Ints) -> Shared:
        return Shared(self.inner.select(members), self.spread)
