"""Scores per position from tied weights and back: dense, sparse, or only some weights allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numba as nb
import numpy as np
import scipy.sparse as sp

from mlestruct.features import Tied
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
    first = np.searchsorted(allowed, np.arange(attributes + 1) * states)
    label = (allowed[: first[-1]] % states).astype(np.int32)
    return Packed(attributes, states, len(allowed), first, label, allowed[first[-1] :] - tied.split)


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
    """Attribute j's weights are ``first[j]:first[j+1]``, for the states in ``label``."""

    attributes: int
    states: int
    d: int
    first: Ints
    label: Any
    moves: Ints

    def table(self, theta: Array) -> Array:
        out = np.zeros(self.states**2)
        out[self.moves] = theta[self.first[-1] :]
        return out.reshape(self.states, self.states)

    def scores(self, theta: Array, nodes: Any, out: Array) -> None:
        csr: Any = sp.csr_array(nodes)
        _packed_times(csr.indptr, csr.indices, csr.data, self.first, self.label, theta, out)

    def pull(self, nodes: Any, rows: Array, pair: Array) -> Array:
        gradient = np.zeros(self.d)
        csr: Any = sp.csr_array(nodes)
        _packed_gather(csr.indptr, csr.indices, csr.data, self.first, self.label, rows, gradient)
        gradient[self.first[-1] :] = pair.ravel()[self.moves]
        return gradient


@nb.njit(cache=True, nogil=True)
def _times(indptr: Ints, indices: Ints, data: Array, weights: Array, out: Array) -> None:
    for i in range(len(out)):
        row = out[i]
        row[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x, w = data[e], weights[indices[e]]
            for k in range(len(row)):
                row[k] += x * w[k]


@nb.njit(cache=True, nogil=True)
def _gather(indptr: Ints, indices: Ints, data: Array, rows: Array, out: Array) -> None:
    for i in range(len(rows)):
        row = rows[i]
        for e in range(indptr[i], indptr[i + 1]):
            x, g = data[e], out[indices[e]]
            for k in range(len(row)):
                g[k] += x * row[k]


@nb.njit(cache=True, nogil=True)
def _packed_times(
    indptr: Ints, indices: Ints, data: Array, first: Ints, label: Ints, theta: Array, out: Array
) -> None:
    for i in range(len(out)):
        row = out[i]
        row[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x = data[e]
            for w in range(first[indices[e]], first[indices[e] + 1]):
                row[label[w]] += x * theta[w]


@nb.njit(cache=True, nogil=True)
def _packed_gather(
    indptr: Ints, indices: Ints, data: Array, first: Ints, label: Ints, rows: Array, out: Array
) -> None:
    for i in range(len(rows)):
        row = rows[i]
        for e in range(indptr[i], indptr[i + 1]):
            x = data[e]
            for w in range(first[indices[e]], first[indices[e] + 1]):
                out[w] += x * row[label[w]]
