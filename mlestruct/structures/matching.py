"""Matchings of a general graph: perfect, or with nodes that stay single."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import (
    Array,
    Bound,
    Flags,
    Ints,
    as_fixed,
    as_integers,
    as_numbers,
)
from mlestruct.structures.bipartite import OneToOne, Pairs
from mlestruct.structures.graph_edges import Edges, as_pairs


class Matching(OneToOne):
    """Sets of edges without a common node; coordinate k is the k-th edge, in the order listed.

    ``perfect``: every node is matched. ``partial``: nodes may stay single. Without ``edges`` the
    graph is complete, its pairs u < v in lexicographic order. An outcome is a list of pairs, or
    each node's partner (−1: single): a flat list of ``n_nodes`` numbers is read as partners.

    ``contains`` checks the nodes' degrees. The convex hull of the matchings also has an inequality
    for every odd set of nodes; an oracle over the hull (the default one) respects those, and
    ``in_hull`` checks them.

    >>> students = Matching(4)
    >>> students.decode(students.encode([(0, 2), (3, 1)])).tolist()
    [2, 3, 0, 1]
    """

    default_oracle = "blossom"

    def __init__(
        self,
        n_nodes: int,
        edges: ArrayLike | None = None,
        kind: Literal["perfect", "partial"] = "perfect",
        *,
        forbidden: Pairs = (),
        required: Pairs = (),
        fixed: ArrayLike | None = None,
    ) -> None:
        if kind not in ("perfect", "partial"):
            raise ValueError(f"kind is perfect or partial, not {kind!r}")
        self.graph = Edges(n_nodes, edges)
        self.n_nodes, self.kind = self.graph.n_nodes, kind
        self.size = self.graph.count
        self.fixed = self._spread(self.graph.fix(as_fixed(self.size, fixed), forbidden, required))

    @property
    def ends(self) -> NDArray[np.int32]:
        """(edges × 2) node numbers."""
        return self.graph.ends

    def nodes_of(self, pairs: Any) -> tuple[Any, Any]:
        """The two nodes of each of these coordinates."""
        return self.graph.nodes_of(pairs)

    def identity(self) -> Hashable:
        return self.kind, self.graph.identity()

    def _spread(self, fixed: Flags) -> Flags:
        """A required edge forbids every other edge at its two nodes. O(edges)."""
        required = np.flatnonzero(fixed == 1)
        if len(required) == 0:
            return fixed
        taken = np.bincount(self.ends[required].ravel(), minlength=self.n_nodes)
        if (taken > 1).any():
            raise ValueError(f"node {taken.argmax()} has {taken.max()} required pairs")
        fixed[(taken[self.ends] > 0).any(axis=1)] = 0
        fixed[required] = 1
        return fixed

    def encode(self, outcome: Any) -> Array:
        chosen = self.graph.index(self._pairs(outcome))
        used = np.bincount(self.ends[chosen].ravel(), minlength=self.n_nodes)
        if (used > 1).any():
            raise ValueError(f"node {used.argmax()} is in {used.max()} pairs")
        if self.kind == "perfect" and (used == 0).any():
            raise ValueError(f"node {used.argmin()} is not matched")
        vector = np.zeros(self.size)
        vector[chosen] = 1.0
        return vector

    def _pairs(self, outcome: Any) -> Ints:
        """Pairs as they are, or those of a list of partners."""
        given = as_integers(outcome, "partners and pairs")
        return partners_to_pairs(given, self.n_nodes) if given.ndim == 1 else as_pairs(given)

    def decode(self, vector: ArrayLike) -> Ints:
        """Each node's partner over an edge above ½, −1 without one: always a matching."""
        used = self.ends[np.flatnonzero(as_numbers(vector, "vector").reshape(-1) > 0.5)]
        partner = np.full(self.n_nodes, -1, dtype=np.int64)
        partner[used[:, 0]], partner[used[:, 1]] = used[:, 1], used[:, 0]
        return partner

    def incidence(self) -> sp.csr_array:
        """(nodes × edges)."""
        return self.graph.incidence

    @property
    def optional(self) -> Ints:
        """The nodes that may stay single."""
        return np.arange(self.n_nodes if self.kind == "partial" else 0)

    def bound(self, counting: Array) -> Bound:
        """Upper where ρ_u + ρ_v ≤ 1. Bethe is below on bipartite graphs only, hull or not."""
        counting = as_numbers(counting, "counting")
        general = super().bound(counting)
        bethe = (counting[: self.size] == -1).all() and (counting[self.size :] == 1).all()
        if bethe and self.graph.sides is not None:
            return Bound("lower", "Bethe on bipartite matchings")
        return general

    def violation(self, point: Array) -> Array:
        """How far the nodes' degrees are off, for points along the leading axes. O(edges) each."""
        point = as_numbers(point, "point")
        degree = self.graph.degrees(point.reshape(-1, self.size))
        off = degree - 1.0 if self.kind == "partial" else np.abs(degree - 1.0)
        return np.asarray(off.max(axis=1)).reshape(point.shape[:-1])

    def in_hull(self, tau: ArrayLike, tol: float = 1e-8) -> NDArray[np.bool_]:
        """True where degrees and odd sets fit: proven, or by the least odd cut."""
        from mlestruct.structures.odd_sets import in_hull

        rows = as_numbers(tau, "tau")
        return in_hull(self, rows.reshape(-1, self.size), tol).reshape(rows.shape[:-1])

    def clamp(self, observed: Any) -> Matching:
        """Keep the observed pairs (or partners; −1 is unknown); the other nodes stay open."""
        chosen = self.graph.index(self._pairs(observed))
        shut = chosen[self.fixed[chosen] == 0]
        if len(shut):
            raise ValueError(f"observed pair {tuple(self.ends[shut[0]].tolist())} is forbidden")
        fixed = self.fixed.copy()
        fixed[chosen] = 1
        return self.refix(self._spread(fixed))  # type: ignore[return-value]

    def loss(self, vertex: Array) -> tuple[Array, float]:
        """Pairs of ``vertex`` that are missing; and invented pairs, where nodes may be single."""
        vertex = as_numbers(vertex, "vertex")
        return super().loss(vertex) if self.kind == "partial" else (-vertex, float(vertex.sum()))

    @property
    def parts(self) -> int:
        return self.n_nodes // 2 if self.kind == "perfect" else 2 * (self.n_nodes // 2)

    def interior(self) -> Array | None:
        """The uniform point, known inside every odd-set inequality too."""
        if (self.fixed >= 0).any():
            return None
        if self.kind == "partial":
            return np.full(self.size, 0.4 / self.graph.degree.max())
        if self.graph.complete and self.n_nodes % 2 == 0 and self.n_nodes > 2:
            return np.full(self.size, 1.0 / (self.n_nodes - 1))
        return None

    def impossible(self) -> str | None:
        """An odd component of the allowed graph; deeper reasons are the oracle's to name."""
        if self.kind == "partial":
            return None
        if self.n_nodes % 2:
            return f"{self.n_nodes} nodes cannot all be paired: nodes 0..{self.n_nodes - 1} are odd"
        if self.graph.complete and not (self.fixed == 0).any():
            return None
        return odd_component(self.n_nodes, self.ends[self.fixed != 0])


def partners_to_pairs(partner: NDArray[Any], n_nodes: int) -> Ints:
    """The pairs that a list of partners states twice; refuses one that is not mutual."""
    if len(partner) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if len(partner) != n_nodes:
        raise ValueError(f"an outcome is pairs, or a partner for each of {n_nodes} nodes")
    mate, node = as_integers(partner, "partners"), np.arange(n_nodes)
    wrong = np.flatnonzero((mate < -1) | (mate >= n_nodes) | (mate == node))
    if len(wrong):
        raise ValueError(f"node {wrong[0]} has partner {mate[wrong[0]]} of {n_nodes} nodes")
    jilted = np.flatnonzero((mate >= 0) & (mate[mate] != node))
    if len(jilted):
        v = int(jilted[0])
        raise ValueError(f"node {v} has partner {mate[v]}, whose partner is {mate[mate[v]]}")
    return np.stack([node, mate], axis=1)[mate > node]


def odd_component(
    n_nodes: int, ends: NDArray[np.int32], need: ArrayLike | None = None
) -> str | None:
    """Names nodes with allowed edges only among themselves that need an odd number of ends."""
    from scipy.sparse.csgraph import connected_components

    graph = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_nodes, n_nodes))
    _, label = connected_components(graph, directed=False)
    odd = np.flatnonzero(np.bincount(label, weights=need) % 2)
    if len(odd) == 0:
        return None
    members = np.flatnonzero(label == odd[0]).tolist()
    if len(members) == 1:
        return f"node {members[0]} has no allowed edge"
    return f"nodes {members} have allowed edges only among themselves, for an odd number of ends"
