"""What features are: an adjoint pair of linear maps, and where an example's moments live."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.structures.base import Array, Ints, as_numbers, refuse_masked, sound

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


def rows_of(given: Any, start: Ints, unit: str, sparse: bool | None = None) -> Any:
    """All feature rows in one matrix of finite numbers, from one matrix or one per example.

    A row for each ``unit``: dense (…, d), or of scipy.sparse, compressed by rows; ``sparse`` says
    which, by default the first matrix does. Rows of coordinates may stay of four bytes a number.
    """
    what = "features" if unit == "coordinate" else f"{unit} features"
    listed = isinstance(given, (list, tuple))
    if listed and len(given) != len(start) - 1:
        raise ValueError(f"features of {len(given)} examples for {len(start) - 1} examples")
    parts = given if listed else [given]
    if sparse is None:
        sparse = sp.issparse(parts[0])
    names = [f"example {m}: {what}" for m in range(len(parts))] if listed else [what]
    read = _sparse_rows if sparse else _dense_rows
    parts = [read(part, name) for part, name in zip(parts, names, strict=True)]
    if listed:
        _check_parts(parts, np.diff(start), unit)
    array: Any = parts[0]
    if listed:
        array = sp.vstack(parts, format="csr") if sparse else np.concatenate(parts)
    if array.ndim != 2 or array.shape[0] != start[-1]:
        raise ValueError(
            f"{what} have shape {array.shape}; expected {start[-1]} rows, one per {unit}"
        )
    if sparse and not array.has_canonical_format:
        array = array.copy()  # the user's own arrays stay as they are
        array.sum_duplicates()
    if unit != "coordinate":
        array = array.astype(float)
    refuse_nonfinite(array, start, unit)
    return array


def _dense_rows(part: Any, what: str) -> NDArray[Any]:
    narrow = isinstance(part, np.ndarray) and part.dtype == np.float32
    if narrow:
        refuse_masked(part, what)
    array = part if narrow else as_numbers(part, what)
    return array.reshape(math.prod(array.shape[:-1]), -1) if array.ndim > 2 else array


def _sparse_rows(part: Any, what: str) -> sp.csr_array:
    if part.dtype.kind not in "biuf":
        raise ValueError(f"{what} have dtype {part.dtype}; expected numbers")
    return sp.csr_array(sound(part, what), dtype=float)


def _check_parts(parts: Sequence[Any], sizes: Ints, unit: str) -> None:
    """One matrix for each example, a row for each ``unit``, equally many features in all."""
    for m, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if len(part.shape) != 2:
            raise ValueError(f"example {m}: features have shape {part.shape}; expected (…, d)")
        if part.shape[0] != size:
            raise ValueError(f"example {m}: {part.shape[0]} feature rows for {size} {unit}s")
        if part.shape[1] != parts[0].shape[1]:
            width = parts[0].shape[1]
            raise ValueError(f"example {m} has {part.shape[1]} features, example 0 has {width}")


def refuse_nonfinite(array: Any, start: Ints, unit: str) -> None:
    """Names the example, the ``unit`` and the feature of a NaN, an infinity, or beyond ``HUGE``.

    ``array`` is a matrix, dense or compressed by rows; rows of example m begin at ``start[m]``.
    """
    sparse = sp.issparse(array)
    values: Any = array.data if sparse else array
    step = max(1, CHUNK // max(math.prod(values.shape[1:]), 1))
    for first in range(0, len(values), step):
        usable = np.abs(values[first : first + step]) <= np.float64(HUGE)
        if usable.all():
            continue
        wrong = np.argwhere(~usable)[0].tolist()
        row, column = first + wrong[0], wrong[-1]
        value = values[row] if sparse else values[row, column]
        if sparse:
            column = array.indices[row]
            row = int(np.searchsorted(array.indptr, row, side="right") - 1)
        m = int(np.searchsorted(start, row, side="right") - 1)
        advice = f"beyond {HUGE:g} nothing can be learned: divide it"
        if not np.isfinite(value):
            advice = "fill it in, and say in a feature of its own where you did"
        place = f"feature {column} of {unit} {row - start[m]}"
        raise ValueError(f"example {m}: {place} is {value}; {advice}")


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
