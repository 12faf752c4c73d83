"""b-matchings: sets of edges with at most, or exactly, a given number at every node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import (
    Array,
    Binary,
    Constraints,
    Flags,
    Ints,
    as_count,
    as_fixed,
    as_numbers,
)
from mlestruct.structures.bipartite import Pairs
from mlestruct.structures.flow import cut_witness
from mlestruct.structures.graph_edges import Edges, as_pairs
from mlestruct.structures.matching import odd_component


class BMatching(Binary):
    """Sets of edges with ``capacity`` of them at a node (one number or a list), each used once.

    ``exact`` says (once, or per node) that the capacity must be filled. Without ``edges`` the graph
    is complete. An outcome is a list of pairs. The entropy is the sum of the edges' binary
    entropies, an upper bound on log Z: b-matchings have no Bethe entropy that separates, so
    ``rho`` is refused.

    >>> teams = BMatching.bipartite(2, 3, row_capacity=2)
    >>> teams.decode(teams.encode([(0, 2), (1, 3), (0, 4)])).tolist()
    [[0, 2], [0, 4], [1, 3]]
    """

    default_oracle = "b_matching"

    def __init__(
        self,
        n_nodes: int,
        edges: ArrayLike | None = None,
        capacity: ArrayLike = 1,
        exact: ArrayLike = False,
        *,
        forbidden: Pairs = (),
        required: Pairs = (),
        fixed: ArrayLike | None = None,
    ) -> None:
        self.graph = Edges(n_nodes, edges)
        self.n_nodes, self.size = self.graph.n_nodes, self.graph.count
        self.capacity = _capacities(capacity, self.n_nodes)
        if np.shape(exact) not in ((), (self.n_nodes,)):
            raise ValueError(f"exact has shape {np.shape(exact)} for {self.n_nodes} nodes")
        self.exact = np.broadcast_to(as_numbers(exact, "exact") != 0, (self.n_nodes,)).copy()
        flags = self.graph.fix(as_fixed(self.size, fixed), forbidden, required)
        self.fixed = self._spread(flags)

    @classmethod
    def bipartite(
        cls,
        rows: int,
        columns: int,
        row_capacity: ArrayLike = 1,
        column_capacity: ArrayLike = 1,
        **rest: Any,
    ) -> BMatching:
        """Every row with every column; rows are nodes 0..rows−1, columns the nodes after them."""
        rows, columns = as_count(rows, "rows", least=1), as_count(columns, "columns", least=1)
        row, column = np.divmod(np.arange(rows * columns), columns)
        capacity = np.concatenate(
            [_capacities(row_capacity, rows), _capacities(column_capacity, columns)]
        )
        return cls(rows + columns, np.stack([row, rows + column], axis=1), capacity, **rest)

    @property
    def ends(self) -> NDArray[np.int32]:
        """(edges × 2) node numbers."""
        return self.graph.ends

    def identity(self) -> Hashable:
        return self.graph.identity(), self.capacity.tobytes(), self.exact.tobytes()

    def _spread(self, fixed: Flags) -> Flags:
        """A node that its required edges fill has no other edge."""
        taken = np.bincount(self.ends[fixed == 1].ravel(), minlength=self.n_nodes)
        over = np.flatnonzero(taken > self.capacity)
        if len(over):
            v = int(over[0])
            raise ValueError(f"node {v} has {taken[v]} required pairs, capacity {self.capacity[v]}")
        full = (taken == self.capacity)[self.ends].any(axis=1)
        fixed[full & (fixed < 0)] = 0
        return fixed

    def encode(self, outcome: Any) -> Array:
        vector = np.bincount(self.graph.index(as_pairs(outcome)), minlength=self.size)
        if (vector > 1).any():
            raise ValueError(f"pair {tuple(self.ends[vector.argmax()].tolist())} is listed twice")
        used = np.bincount(self.ends[vector > 0].ravel(), minlength=self.n_nodes)
        wrong = np.flatnonzero((used > self.capacity) | (self.exact & (used < self.capacity)))
        if len(wrong):
            v = int(wrong[0])
            rule = "exactly" if self.exact[v] else "at most"
            raise ValueError(f"node {v} is in {used[v]} pairs, not {rule} {self.capacity[v]}")
        return vector.astype(float)

    def decode(self, vector: ArrayLike) -> Ints:
        """The pairs above ½, as (pairs × 2) node numbers."""
        return self.ends[as_numbers(vector, "vector").reshape(-1) > 0.5].astype(np.int64)

    def incidence(self) -> sp.csr_array:
        """(nodes × edges)."""
        return self.graph.incidence

    def constraints(self) -> Constraints:
        """The nodes' degrees: all of the convex hull on bipartite graphs, necessary on others."""
        high = self.capacity.astype(float)
        return Constraints(self.incidence(), np.where(self.exact, high, 0.0), high)

    def clamp(self, observed: Any) -> BMatching:
        """Keep the observed pairs."""
        fixed = self.fixed.copy()
        fixed[self.graph.index(as_pairs(observed))] = 1
        return self.refix(self._spread(fixed))  # type: ignore[return-value]

    def as_flow(self) -> tuple[Ints, Ints, Ints] | None:
        """Bipartite graphs: arcs from one side to the other, lowest and highest net outflow."""
        side = self.graph.sides
        if side is None:
            return None
        swapped = side[self.ends[:, 0]] == 1
        arcs = np.where(swapped[:, None], self.ends[:, ::-1], self.ends).astype(np.int64)
        least = np.where(self.exact, self.capacity, 0)
        low = np.where(side == 0, least, -self.capacity)
        return arcs, low, np.where(side == 0, self.capacity, -least)

    def impossible(self) -> str | None:
        """A node, or (on bipartite graphs) a set of nodes, with fewer pairs than it must have."""
        degree = np.bincount(self.ends[self.fixed != 0].ravel(), minlength=self.n_nodes)
        short = np.flatnonzero(self.exact & (degree < self.capacity))
        if len(short):
            v = int(short[0])
            return f"node {v} needs {self.capacity[v]} pairs and has {degree[v]} allowed"
        flow, sides = self.as_flow(), self.graph.sides
        if flow is None or sides is None:
            return self._odd_component()
        found = cut_witness(flow[0], self.fixed, *flow[1:])
        if found is None:
            return None
        side = 0 if found.sends else 1
        needy = [v for v in found.nodes if sides[v] == side]
        givers = [v for v in found.nodes if sides[v] != side]
        return (
            f"nodes {needy} need {found.need - found.have} pairs more than nodes {givers} and "
            f"the {found.have} allowed pairs with other nodes can give"
        )

    def _odd_component(self) -> str | None:
        if not self.exact.all():
            return None
        return odd_component(self.n_nodes, self.ends[self.fixed != 0], self.capacity)


def _capacities(capacity: ArrayLike, n_nodes: int) -> Ints:
    given = as_numbers(capacity, "capacities")
    if given.ndim and given.shape != (n_nodes,):
        raise ValueError(f"{given.size} capacities for {n_nodes} nodes")
    values = np.broadcast_to(given, (n_nodes,))
    wrong = np.flatnonzero((values < 0) | (values != np.rint(values)))
    if len(wrong):
        raise ValueError(f"node {wrong[0]} has capacity {values[wrong[0]]}; use whole numbers ≥ 0")
    return values.astype(np.int64)
