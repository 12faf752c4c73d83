"""Weights shared over a labelled graph, and features made of others: shared, left out, weighed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.features.base import NONE, Columns, Features, power, restart, rows_of
from mlestruct.structures.base import Array, Ints, Marks, as_numbers
from mlestruct.structures.batch import Batch, spans
from mlestruct.structures.graph import FactorGraph, only_graphs


@dataclass(frozen=True)
class Tied:
    """Weights shared over a labelled graph: node features × states, factor features × tables.

    θ = [node weights (p × K) | factor weights (q × table)], C order; every variable has K states
    and every factor the same table. Never expanded: O(nnz · K) per call.
    """

    nodes: Any
    factors: Any
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
        only_graphs(batch.structures, "a table of tied weights")
        cards = {int(k) for s in batch.structures for k in s.cards}
        tables = {int(t) for s in batch.structures for t in np.diff(s.table_start)}
        if len(cards) > 1 or len(tables) > 1:
            raise ValueError(f"tied weights need one size of tables, got {cards} and {tables}")
        n_nodes = np.array([s.n_nodes for s in batch.structures])[batch.which]
        n_factors = np.array([s.n_factors for s in batch.structures])[batch.which]
        if factors is None:
            factors = np.ones((n_factors.sum(), 1))
        node_start = np.concatenate([[0], np.cumsum(n_nodes)])
        factor_start = np.concatenate([[0], np.cumsum(n_factors)])
        features = cls(
            rows_of(nodes, node_start, "node"),
            rows_of(factors, factor_start, "factor"),
            node_start,
            factor_start,
            batch.offsets,
            cards.pop(),
            tables.pop() if tables else 0,
        )
        if features.d == 0:
            raise ValueError(NONE)
        return features

    @cached_property
    def split(self) -> int:
        """Where factor weights start in θ."""
        return int(self.nodes.shape[1]) * self.states

    @cached_property
    def d(self) -> int:
        return self.split + int(self.factors.shape[1]) * self.table

    @property
    def columns(self) -> Columns:
        return Columns.all(self.d, len(self.offsets) - 1)

    def potentials(self, theta: Array) -> Array:
        theta = as_numbers(theta, "theta", self.d)
        out, is_node = np.empty(int(self.offsets[-1])), self._is_node
        out[is_node] = (self.nodes @ theta[: self.split].reshape(-1, self.states)).ravel()
        if self.table:
            pair = theta[self.split :].reshape(-1, self.table)
            out[~is_node] = (self.factors @ pair).ravel()
        return out

    @cached_property
    def _is_node(self) -> Marks:
        """Which coordinates are variables' and no factors'."""
        parts = np.diff(self.node_start) * self.states, np.diff(self.factor_start) * self.table
        kinds = np.tile([True, False], len(self.offsets) - 1)
        return np.repeat(kinds, np.stack(parts, axis=1).ravel())

    def squares(self, v: Array) -> Array:
        return replace(self, nodes=power(self.nodes), factors=power(self.factors)).moments(v)

    def tables(self, tau: Array) -> tuple[Array, Array]:
        """Flat coordinates as (variables × states) and (factors × configurations)."""
        is_node = self._is_node
        return tau[is_node].reshape(-1, self.states), tau[~is_node].reshape(-1, max(self.table, 1))

    def moments(self, tau: Array) -> Array:
        node, pair = self.tables(as_numbers(tau, "tau", int(self.offsets[-1])))
        found = np.asarray(self.nodes.T @ node).ravel()
        if not self.table:
            return found
        return np.concatenate([found, np.asarray(self.factors.T @ pair).ravel()])

    def each(self, tau: Array) -> Array:
        tau, out = (
            as_numbers(tau, "tau", int(self.offsets[-1])),
            np.empty((len(self.offsets) - 1, self.d)),
        )
        node, pair = self.tables(tau)
        for m, row in enumerate(out):
            own = slice(*self.node_start[m : m + 2])
            row[: self.split] = np.asarray(self.nodes[own].T @ node[own]).ravel()
            if self.table:
                own = slice(*self.factor_start[m : m + 2])
                row[self.split :] = np.asarray(self.factors[own].T @ pair[own]).ravel()
        return out.ravel()

    def select(self, members: Ints) -> Tied:
        return Tied(
            self.nodes[spans(self.node_start, members)],
            self.factors[spans(self.factor_start, members)],
            restart(self.node_start, members),
            restart(self.factor_start, members),
            restart(self.offsets, members),
            self.states,
            self.table,
        )


def per_table(batch: Batch[FactorGraph], nodes: Any, factors: Any = None) -> Weighed:
    """Every entry of a table scores alike: node features · p weights, factor features · q weights.

    For the coefficients of fitted entropies, one per variable and factor; tied features with a
    weight per state are one per configuration. ``nodes`` (variables × p) and ``factors``
    (factors × q; default a constant) are stacked.
    """
    counts = np.array([s.n_nodes + s.n_factors for s in batch.structures])[batch.which]
    starts = np.concatenate([[0], np.cumsum(counts)])
    tables = [s.table_of for s in batch.structures]
    row = [tables[k] + start for k, start in zip(batch.which, starts, strict=False)]
    tied = replace(Tied.of(batch, nodes, factors), states=1, table=1, offsets=starts)
    return Weighed(tied, np.concatenate(row), np.ones(batch.size), batch.offsets, starts)


@dataclass(frozen=True)
class Shared:
    """Other features in ``d`` weights: inner weight i is ``theta[place[i]]``, and 0 where −1.

    Inner weights that share one are of different coordinates. Made by :meth:`of` from a matrix, by
    :meth:`only` from the inner weights that are allowed, which is how CRFsuite counts parameters
    if these are those that an observed outcome uses (:meth:`seen`).
    """

    inner: Any
    place: Ints
    d: int

    @classmethod
    def of(cls, inner: Any, spread: Any) -> Shared:
        """From a 0/1 matrix (inner weights × weights) with at most a single 1 in each row."""
        rows = sp.csr_array(spread)
        place = np.full(rows.shape[0], -1, dtype=np.int64)
        filled = np.diff(rows.indptr) == 1
        if rows.shape[0] != inner.d or (rows.data != 1).any() or filled.sum() != rows.nnz:
            raise ValueError(f"shared weights need a 0/1 row for each of {inner.d} inner weights")
        place[filled] = rows.indices
        return cls(inner, place, rows.shape[1])

    @classmethod
    def only(cls, inner: Any, allowed: Marks | Ints) -> Shared:
        """Some inner weights: ``allowed`` is a flag for each, or the allowed weights' numbers."""
        index = np.unique(np.arange(inner.d)[allowed])
        place = np.full(inner.d, -1, dtype=np.int64)
        place[index] = np.arange(len(index))
        return cls(inner, place, len(index))

    @classmethod
    def seen(cls, inner: Features, batch: Batch[Any]) -> Shared:
        """The weights whose moment under what is observed of the outcomes is not zero."""
        if batch.target is None:
            raise ValueError("weights are seen in outcomes, and this batch has none")
        return cls.only(inner, inner.moments(np.nan_to_num(batch.target)) != 0)

    @cached_property
    def index(self) -> Ints | None:
        """The allowed inner weights, in the order of the weights; None if any is shared."""
        index = np.flatnonzero(self.place >= 0)
        return index if np.array_equal(self.place[index], np.arange(self.d)) else None

    @property
    def offsets(self) -> Ints:
        return np.asarray(self.inner.offsets)

    @property
    def columns(self) -> Columns:
        return self._columns[0]

    @cached_property
    def _columns(self) -> tuple[Columns, Ints, Ints]:
        """Every example's own weights; inner moments that count, and their places there."""
        inner, d = self.inner.columns, max(self.d, 1)
        example = np.repeat(np.arange(len(inner.start) - 1), np.diff(inner.start))
        place = self.place[inner.index]
        kept = np.flatnonzero(place >= 0)
        used, local = np.unique(example[kept] * d + place[kept], return_inverse=True)
        start = np.searchsorted(used, np.arange(len(inner.start)) * d)
        return Columns(start, used % d), kept, local

    def spread(self, theta: Array) -> Array:
        """All weights of ``inner``."""
        return np.append(as_numbers(theta, "theta"), 0.0)[self.place]

    def gather(self, full: Array) -> Array:
        """Sums of what inner weights have, over those that share one."""
        kept = self.place >= 0
        full = as_numbers(full, "full")[kept]
        return np.bincount(self.place[kept], weights=full, minlength=self.d).astype(float)

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.inner.potentials(self.spread(theta)))

    def moments(self, tau: Array) -> Array:
        return self.gather(self.inner.moments(tau))

    def squares(self, v: Array) -> Array | None:
        found = self.inner.squares(v)
        return None if found is None else self.gather(found)

    def each(self, tau: Array) -> Array:
        columns, kept, local = self._columns
        found = self.inner.each(tau)[kept]
        return np.bincount(local, weights=found, minlength=len(columns.index)).astype(float)

    def select(self, members: Ints) -> Shared:
        return Shared(self.inner.select(members), self.place, self.d)


@dataclass(frozen=True)
class Weighed:
    """Coordinate k scores ``weight[k]`` times the inner features' row ``row[k]``."""

    inner: Features
    row: Ints
    weight: Array
    offsets: Ints
    starts: Ints
    """Where every example's inner rows begin."""

    @property
    def d(self) -> int:
        return self.inner.d

    @property
    def columns(self) -> Columns:
        return self.inner.columns

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.weight * self.inner.potentials(theta)[self.row])

    def moments(self, tau: Array) -> Array:
        return self.inner.moments(self.sums(tau))

    def squares(self, v: Array) -> Array | None:
        return self.inner.squares(self.sums(self.weight * v))

    def each(self, tau: Array) -> Array:
        return self.inner.each(self.sums(tau))

    def sums(self, tau: Array) -> Array:
        """Weighed sums over the coordinates of every inner row."""
        tau, count = self.weight * as_numbers(tau, "tau"), int(self.starts[-1])
        return np.bincount(self.row, weights=tau, minlength=count).astype(float)

    def select(self, members: Ints) -> Weighed:
        flat, starts = spans(self.offsets, members), restart(self.starts, members)
        sizes = np.diff(self.offsets)[members]
        row = self.row[flat] - np.repeat(self.starts[members] - starts[:-1], sizes)
        offsets = restart(self.offsets, members)
        return Weighed(self.inner.select(members), row, self.weight[flat], offsets, starts)


def weighed(batch: Batch[Any], features: Features) -> tuple[Batch[Any], Features]:
    """Bias and features with the weights of nodes and factors; the same where all count alike."""
    weight = batch.counts
    if weight is None:
        return batch, features
    row, offsets = np.arange(batch.size), batch.offsets
    return replace(batch, bias=batch.bias * weight), Weighed(
        features, row, weight, offsets, offsets
    )
