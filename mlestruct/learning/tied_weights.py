"""Scores per position from tied weights and back: dense, sparse, or only some weights allowed.

Both kinds offer ``rows_of(nodes)``, a part's attributes as the next take them; ``table(theta)``,
the (K × K) table of transitions; ``scores(theta, nodes, out)``, which fills rows of padded states;
and ``pull(nodes, rows, pair)``, the gradient by θ from those by scores, padded, and by the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.features import Tied
from mlestruct.native._door import SharedWeights, score_positions, sum_positions
from mlestruct.structures.base import Array, Ints, Shorts

EIGHT = 8  # numbers that kernels take side by side


def padded(states: int) -> int:
    """Return the next multiple of eight."""
    return -(-states // EIGHT) * EIGHT


def weights_of(tied: Tied, allowed: Ints | None) -> All | Packed:
    """All weights of tied features, or the allowed ones in order."""
    attributes, states = int(tied.nodes.shape[1]), tied.states
    if allowed is None and not sp.issparse(tied.nodes):
        return All(attributes, states, tied.d)
    return Packed.of(np.arange(tied.d) if allowed is None else allowed, attributes, states)


@dataclass(frozen=True)
class All:
    """Every (attribute, state) has a weight, and every position every attribute."""

    attributes: int
    states: int
    d: int

    def rows_of(self, nodes: Array) -> Array:
        return nodes

    def table(self, theta: Array) -> Array:
        out = np.zeros(self.states**2)
        out[: self.d - self.attributes * self.states] = theta[self.attributes * self.states :]
        return out.reshape(self.states, self.states)

    def scores(self, theta: Array, nodes: Array, out: Array) -> None:
        weights = theta[: self.attributes * self.states].reshape(-1, self.states)
        np.matmul(nodes, weights, out=out[:, : self.states])
        out[:, self.states :] = -np.inf

    def pull(self, nodes: Array, rows: Array, pair: Array) -> Array:
        gradient = np.zeros(self.d)
        split = self.attributes * self.states
        head = gradient[:split].reshape(-1, self.states)
        np.matmul(nodes.T, rows[:, : self.states], out=head)
        gradient[split:] = pair.ravel()[: self.d - split]
        return gradient


class Entries(NamedTuple):
    """A shard's attributes, and its table of whole rows: weights ``many`` are its ``inside``."""

    lists: SharedWeights
    many: Ints
    inside: Ints


@dataclass(frozen=True)
class Packed:
    """Attribute j's weights are ``first[j]:first[j+1]``, for the states in ``label``.

    Attributes with many weights cost whole rows, of a table that a shard has of its own.
    """

    states: int
    d: int
    first: Ints
    label: Shorts
    moves: Ints

    @classmethod
    def of(cls, allowed: Ints, attributes: int, states: int) -> Packed:
        split = attributes * states
        first = np.searchsorted(allowed, np.arange(attributes + 1) * states)
        label = (allowed[: first[-1]] % states).astype(np.int32)
        return cls(states, len(allowed), first, label, allowed[first[-1] :] - split)

    def rows_of(self, nodes: Any) -> Entries:
        csr: Any = sp.csr_array(nodes)
        positions, index = csr.shape[0], csr.indices
        owner = np.repeat(np.arange(positions), np.diff(csr.indptr))
        full = 3 * np.diff(self.first)[index] >= self.states
        common, row = np.unique(index[full], return_inverse=True)
        many, count = self._weights(common)
        inside = np.repeat(np.arange(len(common)), count) * padded(self.states) + self.label[many]
        weight, each = self._weights(index[~full])
        lists = SharedWeights(
            positions,
            self.states,
            padded(self.states),
            len(common),
            self.d,
            _starts(owner[full], positions),
            row.astype(np.int32),
            csr.data[full].astype(float),
            _starts(np.repeat(owner[~full], each), positions),
            weight.astype(np.int32),
            self.label[weight],
            np.repeat(csr.data[~full].astype(float), each),
        )
        return Entries(lists, many, inside)

    def _weights(self, attributes: Ints) -> tuple[Ints, Ints]:
        """The numbers of these attributes' weights, one after the other, and how many each has."""
        count = self.first[attributes + 1] - self.first[attributes]
        before = np.cumsum(count) - count
        return np.arange(count.sum()) + np.repeat(self.first[attributes] - before, count), count

    def table(self, theta: Array) -> Array:
        out = np.zeros(self.states**2)
        out[self.moves] = theta[self.first[-1] :]
        return out.reshape(self.states, self.states)

    def scores(self, theta: Array, nodes: Entries, out: Array) -> None:
        table = np.zeros(nodes.lists.rows * nodes.lists.width)
        table[nodes.inside] = theta[nodes.many]
        score_positions(nodes.lists, theta, table, out)

    def pull(self, nodes: Entries, rows: Array, pair: Array) -> Array:
        gradient, table = np.zeros(self.d), np.zeros(nodes.lists.rows * nodes.lists.width)
        sum_positions(nodes.lists, rows, table, gradient)
        gradient[nodes.many] = table[nodes.inside]
        gradient[self.first[-1] :] = pair.ravel()[self.moves]
        return gradient


def _starts(owner: Ints, rows: int) -> Ints:
    """Where each row's entries begin, and their number."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=rows))])
