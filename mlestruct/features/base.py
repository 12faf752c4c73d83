"""What features are: an adjoint pair of linear maps, and where an example's moments live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.structures.base import Array, Ints, as_numbers

HUGE = 1e50  # weights times squares of more leave floating point
CHUNK = 1 << 16  # entries of a matrix, or of a list, looked at a time


@dataclass(frozen=True)
class Columns:
    """Where per-example moments live: weights ``index[start[m]:start[m+1]]`` of example m."""

    start: Ints
    index: Ints

    @classmethod
    def all(cls, d: int, examples: int) -> Columns:
        return cls(d * np.arange(examples + 1), np.tile(np.arange(d), examples))

    def gather(self, local: Array, d: int, weight: Array) -> Array:
        """Σ_m weight_m · (example m's moments)."""
        weight = as_numbers(weight, "weight")
        local = as_numbers(local, "local")
        per_entry = np.repeat(weight, np.diff(self.start))
        return np.bincount(self.index, weights=local * per_entry, minlength=d).astype(float)


class Features(Protocol):
    """An adjoint pair: ⟨potentials(θ), τ⟩ = ⟨θ, moments(τ)⟩, rows aligned with a batch.

    Interface: ``d``; ``potentials(theta)`` → flat scores; ``moments(tau)`` → Σ over the batch;
    ``each(tau)`` → every example's own moments on its ``columns``, flat; ``select(members)``;
    ``squares(v)`` → diag(Φᵀ diag(v) Φ) by one pass over the entries of Φ, or None where these are
    not at hand (:func:`mlestruct.features.base.squares` does without). Features of a matching's
    pairs may also know sums that others need all entries for: ``gram(w, s)`` (a first Hessian, see
    ``Routine.alike``) and ``weighted(v)`` (the sandwich's sums); they are looked for by name.
    """

    @property
    def d(self) -> int: ...
    @property
    def columns(self) -> Columns: ...
    def potentials(self, theta: Array) -> Array: ...
    def moments(self, tau: Array) -> Array: ...
    def each(self, tau: Array) -> Array: ...
    def select(self, members: Ints) -> Features: ...
    def squares(self, v: Array) -> Array | None: ...


@dataclass(frozen=True)
class NoFeatures:
    """No weights at all: inference with the score as bias."""

    size: int
    examples: int
    d: int = 0

    @property
    def columns(self) -> Columns:
        return Columns.all(0, self.examples)

    def potentials(self, theta: Array) -> Array:
        return np.zeros(self.size)

    def moments(self, tau: Array) -> Array:
        return np.zeros(0)

    def each(self, tau: Array) -> Array:
        return np.zeros(0)

    def select(self, members: Ints) -> NoFeatures:
        raise NotImplementedError("features that are empty have no rows to select")

    def squares(self, v: Array) -> Array:
        return np.zeros(0)


def check_parts(parts: Sequence[Any], sizes: Sequence[int] | Ints, unit: str) -> None:
    """One matrix for each example, a row for each ``unit``, equally many features in all."""
    if len(parts) != len(sizes):
        raise ValueError(f"features of {len(parts)} examples for {len(sizes)} examples")
    width = None
    for m, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if len(part.shape) != 2:
            raise ValueError(f"example {m}: features have shape {part.shape}; expected (…, d)")
        if part.shape[0] != size:
            raise ValueError(f"example {m}: {part.shape[0]} feature rows for {size} {unit}s")
        if width is not None and part.shape[1] != width:
            raise ValueError(f"example {m} has {part.shape[1]} features, example 0 has {width}")
        width = part.shape[1]


def refuse_nonfinite(array: Any, start: Ints, unit: str) -> None:
    """Names the example, the ``unit`` and the feature of a NaN, an infinity, or beyond ``HUGE``.

    ``array`` is a matrix, dense or compressed by rows; rows of example m begin at ``start[m]``.
    """
    found = _nonfinite_entry(array) if sp.issparse(array) else _nonfinite_cell(array)
    if found is not None:
        row, column, value = found
        m = int(np.searchsorted(start, row, side="right") - 1)
        advice = f"beyond {HUGE:g} nothing can be learned: divide it"
        if not np.isfinite(value):
            advice = "fill it in, and say in a feature of its own where you did"
        place = f"feature {column} of {unit} {row - start[m]}"
        raise ValueError(f"example {m}: {place} is {value}; {advice}")


def _within(values: Any) -> NDArray[np.bool_]:
    """Finite, and at most ``HUGE``, which shorter floats cannot hold."""
    short = values.dtype.kind == "f" and values.dtype.itemsize < 8
    return np.isfinite(values) if short else np.abs(values) <= HUGE


def _nonfinite_cell(array: Any) -> tuple[int, int, float] | None:
    for first in range(0, len(array), CHUNK):
        wrong = np.argwhere(~_within(array[first : first + CHUNK]))
        if len(wrong):
            row, column = int(wrong[0, 0]) + first, int(wrong[0, 1])
            return row, column, array[row, column]
    return None


def _nonfinite_entry(array: Any) -> tuple[int, int, float] | None:
    wrong = np.flatnonzero(~_within(array.data))
    if len(wrong) == 0:
        return None
    row = int(np.searchsorted(array.indptr, wrong[0], side="right") - 1)
    return row, int(array.indices[wrong[0]]), array.data[wrong[0]]


def refuse_none(features: Features) -> None:
    """Something must be there to learn the weights of."""
    if features.d == 0:
        raise ValueError("there are no features: X has no columns")


def restart(offsets: Ints, members: Ints) -> Ints:
    """Offsets of these members, one after the other."""
    return np.concatenate([[0], np.cumsum(np.diff(offsets)[members])])


FEW, PROBES = 64, 32  # weights that are tried one by one; random signs where there are more


def squares(features: Features, v: Array) -> Array:
    """diag(Φᵀ diag(v) Φ), exactly where the entries of Φ are at hand or d ≤ 64; v ≥ 0.

    Otherwise an estimate of it that needs moments alone: E[(Φᵀ √v ε)²] over random signs ε, which
    is off by a quarter. Always the same for the same features and v.
    """
    own = features.squares(v)
    if own is not None:
        return own
    return _columns(features, v) if features.d <= FEW else _probed(features, v)


def power(matrix: Any) -> Any:
    """The squares of a matrix's entries, dense or sparse."""
    return matrix.multiply(matrix) if hasattr(matrix, "multiply") else matrix**2


def _columns(features: Features, v: Array) -> Array:
    return np.array([v @ features.potentials(unit) ** 2 for unit in np.eye(features.d)])


def _probed(features: Features, v: Array) -> Array:
    rng, root, total = np.random.default_rng(0), np.sqrt(v), np.zeros(features.d)
    for _ in range(PROBES):
        signs = 2.0 * rng.integers(0, 2, len(v)) - 1.0
        total += features.moments(root * signs) ** 2
    return total / PROBES
