"""Matchings: of rows to columns, or of the nodes of any graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import (
    Array,
    Bound,
    Constraints,
    Flags,
    Folded,
    Ints,
    Structure,
    Views,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
    refuse,
)
from mlestruct.structures.graph_edges import (
    CompleteBipartite,
    Degrees,
    Edges,
    as_pairs,
)

Kind = Literal["perfect", "one_sided", "partial"]
Pairs = Iterable[tuple[int, int]]


class EdgeSets(Structure):
    """Sets of a graph's edges, with at most ``capacity`` of them at a node."""

    graph: Edges | CompleteBipartite
    n_nodes: int
    capacity: Any = 1

    @property
    def ends(self) -> NDArray[Any]:
        """(edges × 2) node numbers."""
        return self.graph.ends

    def nodes_of(self, pairs: Any) -> tuple[Any, Any]:
        """The two nodes of each of these coordinates; columns come after the rows."""
        return self.graph.nodes_of(pairs)

    def incidence(self) -> sp.csr_array:
        """(nodes × edges)."""
        return self.graph.incidence

    def _pinned(self, fixed: ArrayLike | None, forbidden: Pairs, required: Pairs) -> Flags:
        """A user's fixed coordinates, and what required ones forbid."""
        flags = as_fixed(self.size, fixed)
        for given, flag in ((forbidden, 0), (required, 1)):
            pairs = as_pairs(given)
            chosen = self.graph.index(pairs)
            for pair in pairs[flags[chosen] == 1 - flag][:1].tolist():
                raise ValueError(f"pair {tuple(pair)} is both required and forbidden")
            flags[chosen] = flag
        return self._spread(flags)

    def _spread(self, fixed: Flags) -> Flags:
        """Nodes that required edges fill have no other edge. O(edges)."""
        if (fixed == 1).any() or np.ndim(self.capacity):
            taken = np.bincount(self.ends[fixed == 1].ravel(), minlength=self.n_nodes)
            refuse(taken > self.capacity, lambda v: self._crowded(v, taken[v]))
            fixed[(taken == self.capacity)[self.ends].any(axis=1) & (fixed < 0)] = 0
        return fixed

    def _crowded(self, node: int, taken: int) -> str:
        return f"node {node} has {taken} required pairs"

    def _clamped(self, places: Ints, words: Callable[[int], str]) -> Self:
        """The same structure with these coordinates required, none of which is forbidden."""
        fixed = self.fixed.copy()
        refuse(fixed[places] == 0, words)
        fixed[places] = 1
        return self.refix(self._spread(fixed))  # type: ignore[return-value]


class OneToOne(EdgeSets):
    """Edges among nodes, at most one at each; the ``optional`` nodes may stay single."""

    kind: Any

    @property
    def optional(self) -> Ints:
        raise NotImplementedError

    @property
    def movable(self) -> bool:
        return self.kind != "partial"

    def views(self) -> Views:
        """Edges, their complements, and the slack 1 − Σ τ of each vertex that may stay single.

        Distributions: every edge's {τ, 1−τ}, then every vertex's {its edges, its slack}; so
        c = (1 − ρ_u − ρ_v, ρ_v) gives the matching entropies of MLE-Struct.
        """
        n, touching, single = self.size, self.incidence(), self.optional
        eye, alone = sp.eye_array(n, format="csr"), sp.eye_array(self.n_nodes, format="csr")[single]
        D = sp.block_array([[eye, touching.T], [eye, None], [None, alone]], format="csr")
        ends = sp.coo_array(sp.csr_array(touching.T))
        return Views(
            sp.csr_array(sp.vstack([eye, -eye, -touching[single]])),
            np.repeat([0.0, 1.0], [n, n + len(single)]),
            sp.csr_array(D),
            np.stack([n + ends.col, ends.row], axis=1).astype(np.int64),
        )

    def constraints(self) -> Constraints:
        """The nodes' degrees; odd sets of a general graph are left to the oracle."""
        low = np.ones(self.n_nodes)
        low[self.optional] = 0.0
        return Degrees(self.graph, low, 1.0)

    def folded(self, counting: Array) -> Folded:
        """The coefficients of those views, without listing them where all nodes count alike."""
        edge, rho = np.split(as_numbers(counting, "counting"), [self.size])
        single = self.optional[rho[self.optional] != 0]
        slack = self.incidence()[single] if len(single) else sp.csr_array((0, self.size))
        both = 1.0 - self.counting(rho)[: self.size]  # ρ_u + ρ_v
        return Folded(edge + both, edge.copy(), -slack, np.ones(len(single)), rho[single])

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """c = 1 − ρ_u − ρ_v on edges and ρ_v on vertices; default ρ = ½."""
        given = as_numbers(0.5 if rho is None else rho, "rho")
        out = np.empty(self.size + self.n_nodes)
        out[self.size :] = given
        one = given.ndim == 0 or np.ptp(given) == 0
        both = 2.0 * given.flat[0] if one else self.incidence().T @ out[self.size :]
        out[: self.size] = 1.0 - both
        return out

    def convex(self, counting: Array) -> bool:
        """Concave for every ρ in [0, 1]^V on any graph (theorem of the MLE-Struct paper)."""
        counting = as_numbers(counting, "counting")
        rho = counting[self.size :]
        return bool(((rho >= 0) & (rho <= 1)).all() and np.allclose(counting, self.counting(rho)))

    def bound(self, counting: Array) -> Bound:
        """An upper bound where no edge's counting number is negative; else none known."""
        counting = as_numbers(counting, "counting")
        if not np.allclose(counting, self.counting(counting[self.size :])):
            return Bound("none", "counting numbers of no known theorem")
        if counting.min() >= -1e-12:
            return Bound("upper", "Shearer: ρ_u + ρ_v ≤ 1 on every edge")
        return Bound("none", "no theorem for this ρ")


class BipartiteMatching(OneToOne):
    """Matchings of rows to columns; coordinate row·columns + column is that pair.

    ``perfect``: everyone is matched. ``one_sided``: every row is, columns at most once.
    ``partial``: at most once on both sides. An outcome is each row's column, −1 for none.

    >>> BipartiteMatching(2, 3, "one_sided").encode([2, 0]).reshape(2, 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    default_oracle = "assignment"
    shape: tuple[int, int]

    def __init__(
        self,
        rows: int,
        columns: int | None = None,
        kind: Kind = "perfect",
        *,
        forbidden: Pairs = (),
        required: Pairs = (),
        fixed: ArrayLike | None = None,
    ) -> None:
        rows = as_count(rows, "rows", least=1)
        columns = rows if columns is None else as_count(columns, "columns", least=1)
        if kind not in ("perfect", "one_sided", "partial"):
            raise ValueError(f"kind is perfect, one_sided or partial, not {kind!r}")
        if kind == "perfect" and rows != columns:
            raise ValueError(f"a perfect matching is square, got {rows} × {columns}: use one_sided")
        if kind == "one_sided" and rows > columns:
            raise ValueError(f"{rows} rows cannot each have one of {columns} columns")
        self.rows, self.columns, self.kind = rows, columns, kind
        self.shape, self.size, self.n_nodes = (rows, columns), rows * columns, rows + columns
        self.graph = CompleteBipartite(rows, columns)
        self.fixed = self._pinned(fixed, forbidden, required)

    def identity(self) -> tuple[int, int, str]:
        return self.rows, self.columns, self.kind

    def _crowded(self, node: int, taken: int) -> str:
        end = f"row {node}" if node < self.rows else f"column {node - self.rows}"
        return f"{end} has two required pairs"

    @property
    def optional(self) -> Ints:
        """The nodes (rows, then columns) that may stay single."""
        start = {"perfect": self.n_nodes, "one_sided": self.rows, "partial": 0}
        return np.arange(start[self.kind], self.n_nodes)

    def encode(self, outcome: ArrayLike) -> Array:
        partner = as_integers(outcome, "columns")
        if partner.shape == self.shape:
            partner = _chosen(partner)
        if partner.shape != (self.rows,):
            raise ValueError(
                f"an outcome names a column for each of {self.rows} rows, or is a 0/1 table, got "
                f"shape {partner.shape}"
            )
        matched = np.flatnonzero(partner >= 0)
        vector, own = np.zeros(self.size), partner[matched]
        fits = (
            partner.min() >= (-1 if self.kind == "partial" else 0) and partner.max() < self.columns
        )
        if not fits or (len(own) > 1 and np.diff(np.sort(own)).min() == 0):
            self._refuse(partner)
        vector[matched * self.columns + own] = 1.0
        return vector

    def _refuse(self, partner: Ints) -> None:
        """Raise what is wrong with a list of columns."""
        wrong = (partner < -1) | (partner >= self.columns)
        refuse(wrong, lambda row: f"row {row} has column {partner[row]} of {self.columns}")
        counts = np.bincount(partner[partner >= 0], minlength=self.columns)
        refuse(
            counts > 1,
            lambda column: (
                f"column {column} is matched by rows {np.flatnonzero(partner == column).tolist()}"
            ),
        )
        refuse(partner < 0, lambda row: f"row {row} is not matched")

    def decode(self, vector: ArrayLike) -> Ints:
        table = as_numbers(vector, "vector").reshape(self.shape)
        best = table.argmax(axis=1)
        taken = table[np.arange(self.rows), best]
        single = 1.0 - table.sum(axis=1) if self.kind == "partial" else np.zeros(self.rows)
        return np.where(taken > np.maximum(single, 0.0), best, -1)

    def clamp(self, observed: ArrayLike) -> BipartiteMatching:
        """Keep the pairs of observed rows; a row marked −1 is unknown."""
        partner = as_integers(observed, "columns")
        inside = (partner >= -1) & (partner < self.columns)
        if partner.shape != (self.rows,) or not inside.all():
            raise ValueError("observed must hold a column or −1 (unknown) for every row")
        known = np.flatnonzero(partner >= 0)
        words = "observed pair ({}, {}) is forbidden".format
        places = known * self.columns + partner[known]
        return self._clamped(places, lambda k: words(known[k], partner[known[k]]))

    def levelled(self, scores: Array) -> Array:
        """Of perfect matchings less row and column means, which every outcome has alike."""
        scores = as_numbers(scores, "scores")
        if self.kind != "perfect" or (self.fixed >= 0).any():
            return super().levelled(scores)
        square = scores.reshape(len(scores), self.rows, self.columns, -1)
        for _ in range(2):  # what is left of a large mean is a mean
            square = square - square.mean(axis=1, keepdims=True)
            square = square - square.mean(axis=2, keepdims=True)
        return np.asarray(square.reshape(scores.shape))

    def loss(self, vertex: Array) -> tuple[Array, float]:
        """Rows with the wrong column, no column counting as one."""
        vertex = as_numbers(vertex, "vertex")
        matched = vertex.reshape(self.shape).sum(axis=1) > 0.5
        return np.where(np.repeat(matched, self.columns), -vertex, 1.0), float(matched.sum())

    @property
    def parts(self) -> int:
        return self.rows

    def gain(self, tau: Array) -> Array:
        """Expected right rows: a pair against staying single, where that is allowed."""
        tau = as_numbers(tau, "tau")
        table = tau.reshape(self.shape)
        single = np.maximum(1.0 - table.sum(axis=1), 0.0) if self.kind == "partial" else 0.0
        return np.asarray(table - np.reshape(single, (-1, 1))).reshape(-1)

    def interior(self) -> Array | None:
        full = self.kind == "perfect" and self.rows > 1
        roomy = self.kind == "one_sided" and self.rows < self.columns
        if (self.fixed >= 0).any() or not (full or roomy or self.kind == "partial"):
            return None  # some view is dead: no column of a square one-sided matching stays single
        share = 1.0 / self.columns if self.kind != "partial" else 0.5 / max(self.shape)
        return np.full(self.size, share)

    def bound(self, counting: Array) -> Bound:
        general, rho = super().bound(counting), as_numbers(counting, "counting")[self.size :]
        if general.kind == "upper" or not self.convex(counting):
            return general
        hypertree = 0.5 * (1 + 1 / self.rows) + 1e-12
        if self.kind == "perfect" and np.ptp(rho) == 0 and rho[0] <= hypertree:
            return Bound("upper", "acyclic hypertree: ρ ≤ ½(1 + 1/n)")
        if self.kind in ("perfect", "partial") and (rho == 1).all():
            return Bound("lower", "Bethe on bipartite matchings")
        return general

    def impossible(self) -> str | None:
        """A set of rows with too few columns (Hall), or the same the other way round."""
        allowed = self.fixed.reshape(self.shape) != 0
        sides = (allowed, "rows", "columns"), (allowed.T, "columns", "rows")
        for graph, some, others in sides[: {"perfect": 2, "one_sided": 1, "partial": 0}[self.kind]]:
            witness = hall_violator(graph)
            if witness is not None:
                members, neighbours = witness
                return f"{some} {members} have only {others} {neighbours} between them"
        return None


def hall_violator(allowed: Any) -> tuple[list[int], list[int]] | None:
    """Rows that together can use fewer columns than they are, and those columns."""
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = sp.csr_array(allowed)
    column_of = maximum_bipartite_matching(graph, perm_type="column")
    single = np.flatnonzero(column_of < 0)
    if len(single) == 0:
        return None
    row_of = np.full(graph.shape[1], -1)
    row_of[column_of[column_of >= 0]] = np.flatnonzero(column_of >= 0)
    rows, more = np.zeros(len(allowed), dtype=bool), np.arange(len(allowed)) == single[0]
    while (more != rows).any():
        rows = more
        columns = np.flatnonzero(allowed[rows].any(axis=0))
        more = rows.copy()
        more[row_of[columns]] = True
    return np.flatnonzero(rows).tolist(), columns.tolist()


def _chosen(table: Ints) -> Ints:
    """The column of every row of a 0/1 table, −1 where there is none."""
    columns, flat = table.shape[1], table.ravel()
    wrong = (flat != 0) & (flat != 1)
    refuse(wrong, lambda k: f"pair {divmod(k, columns)} is {flat[k]}; it is 0 or 1")
    counts = table.sum(axis=1)
    refuse(counts > 1, lambda row: f"row {row} is matched to {counts[row]} columns")
    return np.where(counts == 1, table.argmax(axis=1), -1)


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
        self.graph: Edges = Edges(n_nodes, edges)
        self.n_nodes, self.kind = self.graph.n_nodes, kind
        self.size = self.graph.count
        self.fixed = self._pinned(fixed, forbidden, required)

    def identity(self) -> Hashable:
        return self.kind, self.graph.identity()

    def encode(self, outcome: Any) -> Array:
        chosen = self.graph.index(self._pairs(outcome))
        used = np.bincount(self.ends[chosen].ravel(), minlength=self.n_nodes)
        if used.max() > 1:
            raise ValueError(f"node {used.argmax()} is in {used.max()} pairs")
        if self.kind == "perfect":
            refuse(used == 0, lambda v: f"node {v} is not matched")
        vector = np.zeros(self.size)
        vector[chosen] = 1.0
        return vector

    def _pairs(self, outcome: Any) -> Ints:
        """Pairs as they are, or those that a list of partners states twice."""
        mate, n = as_integers(outcome, "partners and pairs"), self.n_nodes
        if mate.ndim != 1 or len(mate) == 0:
            return as_pairs(mate)
        if len(mate) != n:
            raise ValueError(f"an outcome is pairs, or a partner for each of {n} nodes")
        node = np.arange(n)
        wrong = (mate < -1) | (mate >= n) | (mate == node)
        refuse(wrong, lambda v: f"node {v} has partner {mate[v]} of {n} nodes")
        wrong = (mate >= 0) & (mate[mate] != node)
        refuse(wrong, lambda v: f"node {v} has partner {mate[v]}, whose partner is {mate[mate[v]]}")
        return np.stack([node, mate], axis=1)[mate > node]

    def decode(self, vector: ArrayLike) -> Ints:
        """Each node's partner over an edge above ½, −1 without one: always a matching."""
        used = self.ends[np.flatnonzero(as_numbers(vector, "vector").reshape(-1) > 0.5)]
        partner = np.full(self.n_nodes, -1, dtype=np.int64)
        partner[used[:, 0]], partner[used[:, 1]] = used[:, 1], used[:, 0]
        return partner

    @property
    def optional(self) -> Ints:
        """The nodes that may stay single."""
        return np.arange(self.n_nodes if self.kind == "partial" else 0)

    @property
    def odd(self) -> bool:  # type: ignore[override]
        return self.graph.sides is None

    def bound(self, counting: Array) -> Bound:
        """Upper where ρ_u + ρ_v ≤ 1. Bethe is below on bipartite graphs only, hull or not."""
        counting = as_numbers(counting, "counting")
        general = super().bound(counting)
        bethe = (counting[: self.size] == -1).all() and (counting[self.size :] == 1).all()
        if bethe and not self.odd:
            return Bound("lower", "Bethe on bipartite matchings")
        return general

    def in_hull(self, tau: ArrayLike, tol: float = 1e-8) -> NDArray[np.bool_]:
        """True where degrees and odd sets fit: proven, or by the least odd cut."""
        from mlestruct.structures.odd_sets import in_hull

        rows = as_numbers(tau, "tau")
        return in_hull(self, rows.reshape(-1, self.size), tol).reshape(rows.shape[:-1])

    def clamp(self, observed: Any) -> Matching:
        """Keep the observed pairs (or partners; −1 is unknown); the other nodes stay open."""
        chosen = self.graph.index(self._pairs(observed))
        words = "observed pair ({}, {}) is forbidden".format
        return self._clamped(chosen, lambda k: words(*self.ends[chosen[k]]))

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
