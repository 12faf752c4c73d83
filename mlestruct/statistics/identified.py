"""What data can tell of weights: directions that change a probability, and names for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.structures.base import Array

if TYPE_CHECKING:
    from mlestruct.statistics.likelihood import Likelihood

STEP = 1e-4  # of scores: what truncates a difference is then as small as what rounds it
NULL = 1e-6  # of the largest eigenvalue of the scaled Hessian at θ = 0: below, no information
ROUNDING = 1e-7  # what elimination leaves of an entry that is 0
ZERO = 1e-5  # of a combination's length: what it may have outside of what is identified


class Named(NamedTuple):
    """A combination of weights that a person can read."""

    name: str
    combination: Array


class Identified(NamedTuple):
    """``basis`` (d × r): directions in which the data are informative, of one standard error each.

    ``null`` (d × …), orthonormal: directions of free weights that change no probability. They are
    found at θ = 0, where no outcome is ruled out yet: at a fit, a separation would look the same.
    """

    basis: Array
    null: Array

    @classmethod
    def of(cls, likelihood: Likelihood, free: NDArray[np.bool_] | None = None) -> Identified:
        """From the information at θ = 0; weights that are not ``free`` are known, not estimated."""
        chosen = np.flatnonzero(np.ones(likelihood.d, dtype=bool) if free is None else free)
        units = np.eye(likelihood.d)[:, chosen]
        largest = [np.abs(likelihood.features.potentials(unit)).max() for unit in units.T]
        units = units / np.maximum(largest, 1e-300)
        asking = replace(likelihood, near=None)  # at 0 few answers are known: none tells a slope
        H = asking.slopes(np.zeros(likelihood.d), units, STEP).hessian.sum(axis=0)
        size = np.diag(H).copy()
        dead = size <= NULL**2 * len(likelihood)
        size[dead] = 1.0
        scale = np.where(dead, 0.0, 1.0 / np.sqrt(size))
        value, vector = np.linalg.eigh(scale[:, None] * H * scale)
        live = value > NULL * max(float(value.max(initial=0.0)), 1e-300)
        basis = units @ (scale[:, None] * vector[:, live] / np.sqrt(value[live]))
        turned = np.where(dead, 1.0, scale)[:, None] * vector[:, ~live]
        null = np.linalg.qr(units @ turned)[0] if len(turned.T) else np.zeros((likelihood.d, 0))
        return cls(basis, null)

    @property
    def rank(self) -> int:
        return self.basis.shape[1]

    def tells(self, combination: Array) -> bool:
        """Whether the data say anything of this combination of weights."""
        outside = np.linalg.norm(self.null.T @ combination)
        moved = np.linalg.norm(self.basis.T @ combination)
        return bool(outside <= ZERO * np.linalg.norm(combination) and moved > 0)

    def contrasts(self, names: Sequence[str], known: Sequence[Named] = ()) -> list[Named]:
        """The ``known`` ones that are identified; others, in few weights each, up to the rank.

        Where weights are identified one by one, these are the weights.
        """
        found = [one for one in known if self.tells(one.combination)]
        from mlestruct.inference.sandwich import echelon

        reduced = echelon(self._told().T)
        for row in np.where(np.abs(reduced) < ROUNDING, 0.0, reduced):
            rows = np.array([one.combination for one in found]).reshape(-1, len(row))
            if np.linalg.matrix_rank(rows, 1e-8) == self.rank:
                break
            if np.linalg.matrix_rank(np.vstack([rows, row]), 1e-8) > np.linalg.matrix_rank(
                rows, 1e-8
            ):
                found.append(Named(words(row, names), row))
        return found

    def _told(self) -> Array:
        """An orthonormal basis of the combinations that the data identify."""
        own = np.linalg.qr(self.basis)[0]
        inside = own - self.null @ (self.null.T @ own)
        left, size, _ = np.linalg.svd(inside, full_matrices=False)
        return left[:, size > ZERO]


def words(row: Array, names: Sequence[str]) -> str:
    """A combination in words: a weight, one against another, or the sum written out."""
    used = np.flatnonzero(row).tolist()
    if len(used) == 1 and row[used[0]] == 1.0:
        return names[used[0]]
    if len(used) == 2 and row[used[0]] == 1.0 and np.isclose(row[used[1]], -1.0):
        return f"{names[used[0]]} against {names[used[1]]}"
    return " ".join(f"{row[j]:+.3g}·({names[j]})" for j in used)
