"""Linear maps from weights to scores: potentials Φθ, moments Φᵀτ, and moments per example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph

CHUNK = 1 << 16  # rows of a float32 or memory-mapped matrix upcast at a time


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
        per_entry = np.repeat(weight, np.diff(self.start))
        return np.bincount(self.index, weights=local * per_entry, minlength=d).astype(float)


class Features(Protocol):
    """An adjoint pair: ⟨potentials(θ), τ⟩ = ⟨θ, moments(τ)⟩, rows aligned with a batch.

    Interface: ``d``; ``potentials(theta)`` → flat scores; ``moments(tau)`` → Σ over the batch;
    ``each(tau)`` → every example's own moments on its ``columns``, flat; ``select(members)``.
    """

    @property
    def d(self) -> int: ...
    @property
    def columns(self) -> Columns: ...
    def potentials(self, theta: Array) -> Array: ...
    def moments(self, tau: Array) -> Array: ...
    def each(self, tau: Array) -> Array: ...
    def select(self, members: Ints) -> Features: ...


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
        if array.dtype.kind not in "fiu":
            raise ValueError(f"features have dtype {array.dtype}; expected numbers")
        _refuse_nonfinite(array, batch.offsets)
        kept = array.dtype in (np.dtype(np.float64), np.dtype(np.float32))
        return cls(array if kept else array.astype(float), batch.offsets)

    @property
    def d(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.offsets) - 1)

    def potentials(self, theta: Array) -> Array:
        if self.matrix.dtype == np.float64 and not isinstance(self.matrix, np.memmap):
            return np.asarray(self.matrix @ theta)
        out = np.empty(len(self.matrix))
        for first in range(0, len(out), CHUNK):
            rows = slice(first, first + CHUNK)
            out[rows] = np.asarray(self.matrix[rows], dtype=float) @ theta
        return out

    def moments(self, tau: Array) -> Array:
        out = np.zeros(self.d)
        for first in range(0, len(tau), CHUNK):
            rows = slice(first, first + CHUNK)
            out += tau[rows] @ np.asarray(self.matrix[rows], dtype=float)
        return out

    def each(self, tau: Array) -> Array:
        return _dense_each(self.matrix, self.offsets, tau).ravel()

    def select(self, members: Ints) -> Dense:
        rows = [self.matrix[self.offsets[m] : self.offsets[m + 1]] for m in members]
        return Dense(np.concatenate(rows), _restart(self.offsets, members))


@dataclass(frozen=True)
class Sparse:
    """A scipy.sparse row of features per coordinate; an example's moments stay on its own columns."""

    matrix: sp.csr_array
    offsets: Ints
    columns: Columns = field(repr=False)
    local: Ints = field(repr=False)  # every entry's place among its example's columns

    @classmethod
    def of(cls, batch: Batch[Any], matrix: Any) -> Sparse:
        """From one (coordinates × d) sparse matrix, or a list with one per example."""
        if isinstance(matrix, (list, tuple)):
            matrix = sp.vstack(matrix, format="csr")
        array = sp.csr_array(matrix, dtype=float)
        if array.shape[0] != batch.size:
            raise ValueError(f"features have {array.shape[0]} rows for {batch.size} coordinates")
        if not array.has_canonical_format:
            array = array.copy()  # the user's own arrays stay as they are
            array.sum_duplicates()
        if not np.isfinite(array.data).all():
            entry = int(np.flatnonzero(~np.isfinite(array.data))[0])
            row = int(np.searchsorted(array.indptr, entry, side="right") - 1)
            raise ValueError(f"feature {array.indices[entry]} of row {row} is {array.data[entry]}")
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
        return np.asarray(self.matrix @ theta)

    def moments(self, tau: Array) -> Array:
        return np.asarray(self.matrix.T @ tau)

    def each(self, tau: Array) -> Array:
        weights = self.matrix.data * np.repeat(tau, np.diff(self.matrix.indptr))
        found = np.bincount(self.local, weights=weights, minlength=len(self.columns.index))
        return found.astype(float)

    def select(self, members: Ints) -> Sparse:
        parts = [self.matrix[self.offsets[m] : self.offsets[m + 1]] for m in members]
        return Sparse._with(
            sp.csr_array(sp.vstack(parts, format="csr")), _restart(self.offsets, members)
        )


@dataclass(frozen=True)
class Tied:
    """Weights shared over a labelled graph: node features × states, factor features × tables.

    θ = [node weights (p × K) | factor weights (q × table)], C order; every variable has K states
    and every factor the same table. Never expanded: O(nnz · K) per call.
    """

    nodes: Any
    factors: Any
    node_rows: Ints
    factor_rows: Ints
    node_start: Ints
    factor_start: Ints
    offsets: Ints
    states: int
    table: int

    @classmethod
    def of(cls, batch: Batch[FactorGraph], nodes: Any, factors: Any = None) -> Tied:
        """``nodes`` (variables × p) and ``factors`` (factors × q; default a constant 1), stacked.

        Either may be dense or scipy.sparse, or a list with one matrix per example.
        """
        cards = {int(k) for s in batch.structures for k in s.cards}
        tables = {int(t) for s in batch.structures for t in np.diff(s.table_start)}
        if len(cards) > 1 or len(tables) > 1:
            raise ValueError(f"tied weights need one size of tables, got {cards} and {tables}")
        n_nodes = np.array([s.n_nodes for s in batch.structures])[batch.which]
        n_factors = np.array([s.n_factors for s in batch.structures])[batch.which]
        if factors is None:
            factors = np.ones((n_factors.sum(), 1))
        states, table = cards.pop(), tables.pop() if tables else 0
        node_rows, factor_rows = [], []
        for first, n, f in zip(batch.offsets[:-1], n_nodes, n_factors, strict=True):
            node_rows.append(first + np.arange(n * states))
            factor_rows.append(first + n * states + np.arange(f * table))
        return cls(
            _rows_of(nodes, int(n_nodes.sum()), "node"),
            _rows_of(factors, int(n_factors.sum()), "factor"),
            np.concatenate(node_rows),
            np.concatenate(factor_rows),
            np.concatenate([[0], np.cumsum(n_nodes)]),
            np.concatenate([[0], np.cumsum(n_factors)]),
            batch.offsets,
            states,
            table,
        )

    @property
    def split(self) -> int:
        """Where factor weights start in θ."""
        return int(self.nodes.shape[1]) * self.states

    @property
    def d(self) -> int:
        return self.split + int(self.factors.shape[1]) * self.table

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.offsets) - 1)

    def potentials(self, theta: Array) -> Array:
        out = np.empty(int(self.offsets[-1]))
        out[self.node_rows] = (self.nodes @ theta[: self.split].reshape(-1, self.states)).ravel()
        if self.table:
            pairs = self.factors @ theta[self.split :].reshape(-1, self.table)
            out[self.factor_rows] = pairs.ravel()
        return out

    def moments(self, tau: Array) -> Array:
        node = self.nodes.T @ tau[self.node_rows].reshape(-1, self.states)
        if not self.table:
            return np.asarray(node).ravel()
        pair = self.factors.T @ tau[self.factor_rows].reshape(-1, self.table)
        return np.concatenate([np.asarray(node).ravel(), np.asarray(pair).ravel()])

    def each(self, tau: Array) -> Array:
        out = np.empty((len(self.offsets) - 1, self.d))
        node = tau[self.node_rows].reshape(-1, self.states)
        pair = tau[self.factor_rows].reshape(-1, max(self.table, 1))
        for m in range(len(out)):
            rows = slice(self.node_start[m], self.node_start[m + 1])
            out[m, : self.split] = np.asarray(self.nodes[rows].T @ node[rows]).ravel()
            rows = slice(self.factor_start[m], self.factor_start[m + 1])
            if self.table:
                out[m, self.split :] = np.asarray(self.factors[rows].T @ pair[rows]).ravel()
        return out.ravel()

    def select(self, members: Ints) -> Tied:
        offsets = _restart(self.offsets, members)
        shift = offsets[:-1] - self.offsets[members]
        return Tied(
            _take(self.nodes, self.node_start, members),
            _take(self.factors, self.factor_start, members),
            _moved(self.node_rows, self.node_start * self.states, members, shift),
            _moved(self.factor_rows, self.factor_start * self.table, members, shift),
            _restart(self.node_start, members),
            _restart(self.factor_start, members),
            offsets,
            self.states,
            self.table,
        )


@dataclass(frozen=True)
class Masked:
    """Other features with only some weights allowed; the rest are 0 and not part of θ.

    ``index`` lists the allowed weights of ``inner`` in order. With :meth:`seen` these are the
    weights that an observed outcome uses, which is how CRFsuite counts its parameters.
    """

    inner: Any
    index: Ints

    @classmethod
    def of(cls, inner: Features, allowed: NDArray[np.bool_] | Ints) -> Masked:
        """``allowed`` is a flag per weight of ``inner``, or the allowed weights' numbers."""
        given = np.asarray(allowed)
        index = np.flatnonzero(given) if given.dtype == bool else np.unique(given)
        if given.dtype == bool and len(given) != inner.d:
            raise ValueError(f"{len(given)} flags for {inner.d} weights")
        if len(index) and not 0 <= index[0] <= index[-1] < inner.d:
            raise ValueError(f"allowed weights must be in 0..{inner.d - 1}, got {index[-1]}")
        return cls(inner, index.astype(np.int64))

    @classmethod
    def seen(cls, inner: Features, batch: Batch[Any]) -> Masked:
        """The weights whose moment under the observed outcomes is not zero."""
        if batch.target is None:
            raise ValueError("weights are seen in outcomes, and this batch has none")
        return cls.of(inner, inner.moments(batch.target) != 0)

    @property
    def d(self) -> int:
        return len(self.index)

    @property
    def offsets(self) -> Ints:
        return np.asarray(self.inner.offsets)

    @property
    def columns(self) -> Columns:
        return self._columns[0]

    @cached_property
    def _columns(self) -> tuple[Columns, Ints]:
        """The inner columns that are allowed, and which of the inner entries they are."""
        inner = self.inner.columns
        place = np.minimum(np.searchsorted(self.index, inner.index), max(self.d - 1, 0))
        kept = self.index[place] == inner.index if self.d else np.zeros(len(place), dtype=bool)
        before = np.concatenate([[0], np.cumsum(kept)])
        return Columns(before[inner.start], place[kept]), np.flatnonzero(kept)

    def spread(self, theta: Array) -> Array:
        """All weights of ``inner``, those not allowed 0."""
        full = np.zeros(self.inner.d)
        full[self.index] = theta
        return full

    def gather(self, full: Array) -> Array:
        """The allowed ones of inner weights."""
        return np.asarray(full[self.index])

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.inner.potentials(self.spread(theta)))

    def moments(self, tau: Array) -> Array:
        return self.gather(self.inner.moments(tau))

    def each(self, tau: Array) -> Array:
        return np.asarray(self.inner.each(tau)[self._columns[1]])

    def select(self, members: Ints) -> Masked:
        return Masked(self.inner.select(members), self.index)


@dataclass(frozen=True)
class Functions:
    """A user's own pair, per example: potentials(x, θ) → scores and moments(x, τ) → d numbers."""

    inputs: Sequence[Any]
    d: int
    potentials_of: Callable[[Any, Array], Any]
    moments_of: Callable[[Any, Array], Any]
    offsets: Ints

    @classmethod
    def of(
        cls,
        batch: Batch[Any],
        inputs: Sequence[Any],
        d: int,
        potentials: Callable[[Any, Array], Any],
        moments: Callable[[Any, Array], Any],
    ) -> Functions:
        """Checked on the spot: shapes, and that the two are adjoint to each other."""
        if len(inputs) != len(batch):
            raise ValueError(f"{len(inputs)} inputs for {len(batch)} examples")
        features = cls(list(inputs), d, potentials, moments, batch.offsets)
        rng = np.random.default_rng(0)
        theta, tau = rng.standard_normal(d), rng.random(batch.size)
        scores = features.potentials(theta)
        local = features.each(tau).reshape(-1, d)
        for m in range(len(batch)):
            one, other = scores[batch.coordinates(m)] @ tau[batch.coordinates(m)], local[m] @ theta
            if not np.isclose(one, other, rtol=1e-6, atol=1e-9):
                raise ValueError(
                    f"example {m}: potentials and moments are not adjoint: "
                    f"⟨potentials(θ), τ⟩ = {one:g} but ⟨θ, moments(τ)⟩ = {other:g}"
                )
        return features

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.inputs))

    def potentials(self, theta: Array) -> Array:
        out = np.empty(int(self.offsets[-1]))
        for m, x in enumerate(self.inputs):
            scores = np.asarray(self.potentials_of(x, theta), dtype=float).reshape(-1)
            if len(scores) != self.offsets[m + 1] - self.offsets[m]:
                raise ValueError(f"example {m}: potentials returned {len(scores)} scores")
            out[self.offsets[m] : self.offsets[m + 1]] = scores
        return out

    def moments(self, tau: Array) -> Array:
        return np.asarray(self.each(tau).reshape(-1, self.d).sum(axis=0))

    def each(self, tau: Array) -> Array:
        out = np.empty((len(self.inputs), self.d))
        for m, x in enumerate(self.inputs):
            moments = np.asarray(
                self.moments_of(x, tau[self.offsets[m] : self.offsets[m + 1]]), dtype=float
            )
            if moments.shape != (self.d,):
                raise ValueError(f"example {m}: moments returned shape {moments.shape}")
            out[m] = moments
        return out.ravel()

    def select(self, members: Ints) -> Functions:
        return Functions(
            [self.inputs[m] for m in members],
            self.d,
            self.potentials_of,
            self.moments_of,
            _restart(self.offsets, members),
        )


def as_features(batch: Batch[Any], X: Any) -> Features:
    """Features as they are, scipy.sparse (one or a list), or dense arrays (one or a list)."""
    if hasattr(X, "potentials"):
        return X
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    return Sparse.of(batch, X) if sp.issparse(first) else Dense.of(batch, X)


def with_intercept(array: NDArray[Any]) -> NDArray[Any]:
    """The same features with a constant 1 appended. Never done for you."""
    return np.concatenate([array, np.ones((*array.shape[:-1], 1), dtype=array.dtype)], axis=-1)


@dataclass(frozen=True)
class Scaling:
    """(x − mean) / scale, learned on training features, applied to others. Never done for you."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]]) -> Scaling:
        """Mean and standard deviation over all rows; a constant feature keeps scale 1."""
        rows = np.concatenate([a.reshape(-1, a.shape[-1]) for a in arrays]).astype(float)
        spread = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, array: NDArray[Any]) -> Array:
        return np.asarray((array - self.mean) / self.scale)


def _stack(batch: Batch[Any], matrix: Any) -> NDArray[Any]:
    if not isinstance(matrix, (list, tuple)):
        array = np.asanyarray(matrix)
        return array.reshape(-1, array.shape[-1]) if array.ndim > 2 else array
    if len(matrix) != len(batch):
        raise ValueError(f"features of {len(matrix)} examples for {len(batch)} examples")
    parts: list[NDArray[Any]] = []
    for m, one in enumerate(matrix):
        array = np.asarray(one)
        if array.ndim < 2:
            raise ValueError(f"example {m}: features have shape {array.shape}; expected (…, d)")
        flat = array.reshape(-1, array.shape[-1])
        size = int(batch.offsets[m + 1] - batch.offsets[m])
        if len(flat) != size:
            raise ValueError(f"example {m}: {len(flat)} feature rows for {size} coordinates")
        if parts and flat.shape[1] != parts[0].shape[1]:
            raise ValueError(
                f"example {m} has {flat.shape[1]} features, example 0 has {parts[0].shape[1]}"
            )
        parts.append(flat)
    return np.concatenate(parts)


def _refuse_nonfinite(array: NDArray[Any], offsets: Ints) -> None:
    for first in range(0, len(array), CHUNK):
        wrong = np.argwhere(~np.isfinite(array[first : first + CHUNK]))
        if len(wrong):
            row, column = int(wrong[0, 0]) + first, int(wrong[0, 1])
            m = int(np.searchsorted(offsets, row, side="right") - 1)
            raise ValueError(
                f"example {m}: feature {column} of coordinate {row - offsets[m]} is "
                f"{array[row, column]}"
            )


def _rows_of(matrix: Any, count: int, name: str) -> Any:
    parts = list(matrix) if isinstance(matrix, (list, tuple)) else [matrix]
    array: Any
    if sp.issparse(parts[0]):
        array = sp.csr_array(sp.vstack(parts, format="csr")).astype(float)
        values = array.data
    else:
        array = values = np.concatenate([np.asarray(part, dtype=float) for part in parts])
    if array.ndim != 2 or array.shape[0] != count:
        raise ValueError(f"{name} features have shape {array.shape}; expected {count} rows")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} features hold NaN or infinity")
    return array


def _take(matrix: Any, start: Ints, members: Ints) -> Any:
    rows = np.concatenate([np.arange(start[m], start[m + 1]) for m in members])
    return matrix[rows]


def _moved(rows: Ints, start: Ints, members: Ints, shift: Ints) -> Ints:
    """The members' rows, each moved to where its example now begins."""
    moved = [rows[start[m] : start[m + 1]] + by for m, by in zip(members, shift, strict=True)]
    return np.concatenate(moved)


def _restart(offsets: Ints, members: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(np.diff(offsets)[members])])


@nb.njit(cache=True, nogil=True)
def _dense_each(matrix: NDArray[Any], offsets: Ints, tau: Array) -> Array:
    d = matrix.shape[1]
    out = np.zeros((len(offsets) - 1, d))
    for m in range(len(out)):
        for k in range(offsets[m], offsets[m + 1]):
            if tau[k] != 0.0:
                for j in range(d):
                    out[m, j] += tau[k] * matrix[k, j]
    return out
