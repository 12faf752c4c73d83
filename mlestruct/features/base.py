"""What features are, and a row for every coordinate, dense or sparse, as users give them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.structures.base import Array, Ints, Structure, as_numbers, sound
from mlestruct.structures.batch import Batch, spans

HUGE = 1e50  # weights times squares of more leave floating point
NONE = "there are no features: X has no columns"
CHUNK = 1 << 16  # entries of a matrix, or of a list, looked at a time


@dataclass(frozen=True)
class Columns:
    """Where per-example moments live: weights ``index[start[m]:start[m+1]]`` of example m."""

    start: Ints
    index: Ints

    @classmethod
    def all(cls, d: int, examples: int) -> Columns:
        return cls(d * np.arange(examples + 1), np.tile(np.arange(d), examples))


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


def rows_of(given: Any, start: Ints, unit: str, sparse: bool | None = None) -> Any:
    """All feature rows in one matrix of finite numbers, from one matrix or one per example.

    A row for each ``unit``: dense (…, d), or of scipy.sparse, compressed by rows; ``sparse`` says
    which, by default the first matrix does. Rows of coordinates may stay of four bytes a number.
    """
    what = "features" if unit == "coordinate" else f"{unit} features"
    listed = isinstance(given, (list, tuple))
    if listed and len(given) != len(start) - 1:
        raise ValueError(f"features of {len(given)} examples for {len(start) - 1} examples")
    parts, sizes = given if listed else [given], np.diff(start).tolist()
    rows: list[Any] = []
    sparse = sp.issparse(parts[0]) if sparse is None else sparse
    for m, part in enumerate(parts):
        name = f"example {m}: {what}" if listed else what
        if sparse:
            if part.dtype.kind not in "biuf":
                raise ValueError(f"{name} have dtype {part.dtype}; expected numbers")
            array: Any = sp.csr_array(sound(part, name), dtype=float)
        else:
            narrow = type(part) in (np.ndarray, np.memmap) and part.dtype == np.float32
            array = part if narrow else as_numbers(part, name)
            array = array.reshape(math.prod(array.shape[:-1]), -1) if array.ndim > 2 else array
        rows.append(array)
        if listed and array.shape != (sizes[m], *rows[0].shape[1:2]):
            _refuse_shape(m, array.shape, sizes[m], rows, unit)
    array = rows[0]
    if listed:
        array = sp.vstack(rows, format="csr") if sparse else np.concatenate(rows)
    if array.ndim != 2 or array.shape[0] != start[-1]:
        shape = f"expected {start[-1]} rows, one per {unit}"
        raise ValueError(f"{what} have shape {array.shape}; {shape}")
    if unit == "coordinate" and array.shape[1] == 0:
        raise ValueError(NONE)
    if sparse and not array.has_canonical_format:
        array = array.copy()  # the user's own arrays stay as they are
        array.sum_duplicates()
    values = array.data if sparse else array
    if values.size and not (float(values.min()) >= -HUGE and float(values.max()) <= HUGE):
        _refuse_values(array, start, unit)
    return array if unit == "coordinate" else array.astype(float)


def _refuse_shape(m: int, shape: tuple[int, ...], size: int, rows: list[Any], unit: str) -> None:
    """Raise what is wrong with the features of one example."""
    if len(shape) != 2:
        raise ValueError(f"example {m}: features have shape {shape}; expected (…, d)")
    if shape[0] != size:
        raise ValueError(f"example {m}: {shape[0]} feature rows for {size} {unit}s")
    width = rows[0].shape[1]
    raise ValueError(f"example {m} has {shape[1]} features, example 0 has {width}")


def _refuse_values(array: Any, start: Ints, unit: str) -> None:
    """Name the example, the ``unit`` and the feature of a NaN, an infinity, or beyond ``HUGE``."""
    table = sp.coo_array(array)
    k = int(np.argmin(np.abs(table.data) <= np.float64(HUGE)))
    row, column, value = int(table.row[k]), int(table.col[k]), table.data[k]
    m = int(np.searchsorted(start, row, side="right") - 1)
    advice = f"beyond {HUGE:g} nothing can be learned: divide it"
    if not np.isfinite(value):
        advice = "fill it in, and say in a feature of its own where you did"
    place = f"feature {column} of {unit} {row - start[m]}"
    raise ValueError(f"example {m}: {place} is {value}; {advice}")


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
    if features.d <= FEW:
        return np.array([v @ features.potentials(unit) ** 2 for unit in np.eye(features.d)])
    rng, root, total = np.random.default_rng(0), np.sqrt(v), np.zeros(features.d)
    for _ in range(PROBES):
        signs = 2.0 * rng.integers(0, 2, len(v)) - 1.0
        total += features.moments(root * signs) ** 2
    return total / PROBES


def power(matrix: Any) -> Any:
    """The squares of a matrix's entries, dense or sparse."""
    return matrix.multiply(matrix) if hasattr(matrix, "multiply") else matrix**2


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

    @cached_property
    def _parts(self) -> list[slice]:
        """Rows that a processor's cache holds: a product with all takes BLAS thrice as long, and
        more threads than were asked for. BLAS has other bits where rows are not one after the
        other in memory.
        """
        step = max(1, CHUNK // max(self.matrix.shape[1], 1))
        return [slice(first, first + step) for first in range(0, len(self.matrix), step)]

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta")
        out = np.empty(len(self.matrix))
        for rows in self._parts:
            np.matmul(np.ascontiguousarray(self.matrix[rows], dtype=float), theta, out=out[rows])
        return out

    def moments(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau")
        out = np.zeros(self.d)
        for rows in self._parts:
            out += tau[rows] @ np.ascontiguousarray(self.matrix[rows], dtype=float)
        return out

    def squares(self, v: Array) -> Array:
        v = as_numbers(v, "v")
        out = np.zeros(self.d)
        for rows in self._parts:
            out += v[rows] @ np.ascontiguousarray(self.matrix[rows], dtype=float) ** 2
        return out

    def each(self, tau: Array) -> Array:
        tau = as_numbers(tau, "tau", len(self.matrix))
        out = np.empty((len(self.offsets) - 1, self.matrix.shape[1]))
        for m, (first, last) in enumerate(pairwise(self.offsets.tolist())):
            block = np.ascontiguousarray(self.matrix[first:last], dtype=float)
            np.matmul(tau[first:last], block, out=out[m])
        return out.ravel()

    def select(self, members: Ints) -> Dense:
        rows = np.asarray(self.matrix[spans(self.offsets, members)])
        return Dense(rows, restart(self.offsets, members))


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if sp.issparse(first):
        return Sparse.of(batch, X)
    return Dense(rows_of(X, batch.offsets, "coordinate", sparse=False), batch.offsets)


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


def _movable(batch: Batch[Any]) -> list[tuple[Structure, Ints]]:
    return [group for group in batch.groups() if group[0].movable]
