"""Scores per position from tied weights and back: dense, sparse, or only some weights allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from mlestruct.features import Tied
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints


class Weights(Protocol):
    """θ as scores per position and one table of transitions, without temporaries.

    Interface: ``table(theta)`` → (K × K); ``scores(theta, nodes, out)`` fills (positions × K);
    ``pull(nodes, rows, pair)`` → the gradient by θ from those by scores and by the table.
    """

    def table(self, theta: Array) -> Array: ...
    def scores(self, theta: Array, nodes: Any, out: Array) -> None: ...
    def pull(self, nodes: Any, rows: Array, pair: Array) -> Array: ...


def weights_of(tied: Tied, allowed: Ints | None) -> Weights:
    """All weights of tied features, or the allowed ones in order."""
    attributes, states = int(tied.nodes.shape[1]), tied.states
    if allowed is None:
        return All(attributes, states, tied.d)
    return Packed.of(allowed, attributes, states)


@dataclass(frozen=True)
class All:
    """Every (attribute, state) has a weight."""

    attributes: int
    states: int
    d: int

    def table(self, theta: Array) -> Array:
        out = np.zeros(self.states**2)
        out[: self.d - self.attributes * self.states] = theta[self.attributes * self.states :]
        return out.reshape(self.states, self.states)

    def scores(self, theta: Array, nodes: Any, out: Array) -> None:
        weights = theta[: self.attributes * self.states].reshape(-1, self.states)
        if not isinstance(nodes, np.ndarray):
            _times(nodes.indptr, nodes.indices, nodes.data, np.ascontiguousarray(weights), out)
        else:
            np.matmul(nodes, weights, out=out)

    def pull(self, nodes: Any, rows: Array, pair: Array) -> Array:
        gradient = np.zeros(self.d)
        split = self.attributes * self.states
        head = gradient[:split].reshape(-1, self.states)
        if not isinstance(nodes, np.ndarray):
            _gather(nodes.indptr, nodes.indices, nodes.data, rows, head)
        else:
            np.matmul(nodes.T, rows, out=head)
        gradient[split:] = pair.ravel()[: self.d - split]
        return gradient


@dataclass(frozen=True)
class Packed:
    """Attribute j's weights are ``first[j]:first[j+1]``, for the states in ``label``.

    Attributes with many weights also have a ``row`` of a small dense table, so that the attributes
    met most often cost whole rows: ``inside`` are the table's places of the weights in ``many``.
    """

    states: int
    d: int
    first: Ints
    label: Any
    moves: Ints
    row: Ints
    many: Ints
    inside: Ints

    @classmethod
    def of(cls, allowed: Ints, attributes: int, states: int) -> Packed:
        split = attributes * states
        first = np.searchsorted(allowed, np.arange(attributes + 1) * states)
        nodes = allowed[: first[-1]]
        full = 3 * np.diff(first) >= states
        row = np.where(full, np.cumsum(full) - 1, -1)
        owner = nodes // states
        many = np.flatnonzero(full[owner])
        inside = row[owner[many]] * states + nodes[many] % states
        label, moves = (nodes % states).astype(np.int32), allowed[first[-1] :] - split
        return cls(states, len(allowed), first, label, moves, row, many, inside)

    def table(self, theta: Array) -> Array:
        out = np.zeros(self.states**2)
        out[self.moves] = theta[self.first[-1] :]
        return out.reshape(self.states, self.states)

    @property
    def _rows(self) -> Array:
        return np.zeros((int(self.row.max(initial=-1)) + 1, self.states))

    def scores(self, theta: Array, nodes: Any, out: Array) -> None:
        csr: Any = sp.csr_array(nodes)
        dense, packing = self._rows, (self.first, self.label, self.row)
        dense.ravel()[self.inside] = theta[self.many]
        _packed_times(csr.indptr, csr.indices, csr.data, *packing, theta, dense, out)

    def pull(self, nodes: Any, rows: Array, pair: Array) -> Array:
        gradient, dense = np.zeros(self.d), self._rows
        csr: Any = sp.csr_array(nodes)
        packing = (self.first, self.label, self.row)
        _packed_gather(csr.indptr, csr.indices, csr.data, *packing, rows, dense, gradient)
        gradient[self.many] = dense.ravel()[self.inside]
        gradient[self.first[-1] :] = pair.ravel()[self.moves]
        return gradient


@kernel
def _times(indptr: Ints, indices: Ints, data: Array, weights: Array, out: Array) -> None:
    for i in range(len(out)):
        row = out[i]
        row[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x, w = data[e], weights[indices[e]]
            for k in range(len(row)):
                row[k] += x * w[k]


@kernel
def _gather(indptr: Ints, indices: Ints, data: Array, rows: Array, out: Array) -> None:
    for i in range(len(rows)):
        row = rows[i]
        for e in range(indptr[i], indptr[i + 1]):
            x, g = data[e], out[indices[e]]
            for k in range(len(row)):
                g[k] += x * row[k]


@kernel
def _packed_times(
    indptr: Ints,
    indices: Ints,
    data: Array,
    first: Ints,
    label: Ints,
    row: Ints,
    theta: Array,
    dense: Array,
    out: Array,
) -> None:
    for i in range(len(out)):
        score = out[i]
        score[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x, j = data[e], indices[e]
            if row[j] >= 0:
                w = dense[row[j]]
                for k in range(len(score)):
                    score[k] += x * w[k]
            else:
                for n in range(first[j], first[j + 1]):
                    score[label[n]] += x * theta[n]


@kernel
def _packed_gather(
    indptr: Ints,
    indices: Ints,
    data: Array,
    first: Ints,
    label: Ints,
    row: Ints,
    rows: Array,
    dense: Array,
    out: Array,
) -> None:
    for i in range(len(rows)):
        mean = rows[i]
        for e in range(indptr[i], indptr[i + 1]):
            x, j = data[e], indices[e]
            if row[j] >= 0:
                g = dense[row[j]]
                for k in range(len(mean)):
                    g[k] += x * mean[k]
            else:
                for n in range(first[j], first[j + 1]):
                    out[n] += x * mean[label[n]]
