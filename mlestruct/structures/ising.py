"""Two-state graphs without fields: which neighbours agree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import (
    Array,
    Binary,
    Bound,
    Ints,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
)
from mlestruct.structures.graph_edges import checked_edges
from mlestruct.structures.spanning_trees import components, edge_appearance


class Ising(Binary):
    """Labellings of two-state nodes up to a flip of each component; 1 where an edge's ends agree.

    One coordinate per edge, so any score is an Ising model without field. Over planar graphs the
    best labelling is a matching. The entropy is Σ ρ H(agreement): concave,
    and above the exact one where ρ is at least every edge's share of spanning trees.

    >>> Ising(3, [(0, 1), (1, 2)]).encode([0, 0, 1]).tolist()
    [1.0, 0.0]
    """

    def __init__(
        self, n: int, edges: Sequence[tuple[int, int]] | Ints, *, fixed: ArrayLike | None = None
    ) -> None:
        self.n = as_count(n, "the number of nodes", least=1)
        self.edges = checked_edges(n, edges)
        self.component = components(n, self.edges)
        self.size = len(self.edges)
        self.fixed = as_fixed(self.size, fixed)

    default_oracle = "planar_ising"

    def identity(self) -> tuple[int, bytes]:
        return self.n, self.edges.tobytes()

    def encode(self, outcome: ArrayLike) -> Array:
        states = as_integers(outcome, "states")
        if states.shape != (self.n,) or not np.isin(states, (0, 1)).all():
            raise ValueError(f"an outcome is a state 0 or 1 for each of {self.n} nodes")
        return (states[self.edges[:, 0]] == states[self.edges[:, 1]]).astype(float)

    def decode(self, vector: ArrayLike) -> Ints:
        """States along a spanning tree; the first node of every component is in state 0."""
        from scipy.sparse.csgraph import breadth_first_order

        agree = as_numbers(vector, "vector") > 0.5
        weight = np.where(agree, 1.0, 2.0)
        graph = sp.csr_array((weight, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n, self.n))
        both = sp.csr_array(graph + graph.T)
        states = np.zeros(self.n, dtype=np.int64)
        for root in np.unique(self.component, return_index=True)[1]:
            order, parent = breadth_first_order(both, root, directed=False)
            for v in order[1:]:
                states[v] = states[parent[v]] ^ (both[v, parent[v]] == 2.0)
        return states

    @cached_property
    def _trees(self) -> Array:
        return edge_appearance(self.n, self.edges)

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """ρ for every edge; default: its chance to be in a random spanning tree."""
        given = self._trees if rho is None else as_numbers(rho, "rho")
        return np.array(np.broadcast_to(given, (self.size,)))

    def bound(self, counting: Array) -> Bound:
        """The edges of any spanning tree determine the outcome, so Σ of their entropies is ≥ H."""
        counting = as_numbers(counting, "counting")
        if (counting == 1).all() and not self._cyclic:
            return Bound("exact", "the edges of a forest are independent")
        if (counting >= self._trees - 1e-12).all():
            return Bound("upper", "edges count at least their share of spanning trees")
        return Bound("none", "no theorem for these edge counts")

    def contains(self, tau: ArrayLike, tol: float = 1e-9) -> NDArray[np.bool_]:
        """Every cycle's inequality: an even number of its edges disagree. n shortest paths."""
        points = as_numbers(tau, "tau")
        inside = super().contains(points, tol)
        if not self._cyclic or not inside.any():
            return inside
        flat, good = points.reshape(-1, self.size), inside.reshape(-1).copy()
        for k in np.flatnonzero(good):
            good[k] = self._shortest_odd_walk(flat[k]) >= 1.0 - tol
        return good.reshape(inside.shape)

    @cached_property
    def _cyclic(self) -> bool:
        return self.size > self.n - len(np.unique(self.component))

    def _shortest_odd_walk(self, tau: Array) -> float:
        """Least Σ (disagreement on straight, agreement on crossing edges) that crosses oddly."""
        from scipy.sparse.csgraph import dijkstra

        i, j = self.edges.T
        agree = np.clip(tau, 0.0, 1.0) + 1e-15  # an explicit zero is no edge
        apart = np.clip(1.0 - tau, 0.0, 1.0) + 1e-15
        tails, heads = np.r_[i, i + self.n, i, j], np.r_[j, j + self.n, j + self.n, i + self.n]
        lengths = np.r_[apart, apart, agree, agree]
        graph = sp.csr_array((lengths, (tails, heads)), shape=(2 * self.n, 2 * self.n))
        nodes = np.arange(self.n)
        reach = dijkstra(graph, directed=False, indices=nodes)
        return float(reach[nodes, nodes + self.n].min(initial=np.inf))

    def interior(self) -> Array | None:
        """Independent fair coins, when nothing is fixed."""
        return np.full(self.size, 0.5) if (self.fixed < 0).all() else None
