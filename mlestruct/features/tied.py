"""Weights shared over a labelled graph: features of variables and factors × their states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mlestruct.features.base import NONE, Columns, power, restart, rows_of
from mlestruct.features.weighed import Weighed
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
