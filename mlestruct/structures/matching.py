"""Matchings: of rows to columns, or of the nodes of any graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Literal

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
)
from mlestruct.structures.graph_edges import Edges, as_pairs

Kind = Literal["perfect", "one_sided", "partial"]
Pairs = Iterable[tuple[int, int]]


class OneToOne(Structure):
    """Edges among nodes, at most one at each; the ``optional`` nodes may stay single."""

    n_nodes: int
    kind: Any

    @property
    def optional(self) -> Ints:
        raise NotImplementedError

    def incidence(self) -> sp.csr_array:
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
        return Constraints(self.incidence(), low, np.ones(self.n_nodes))

    def folded(self, counting: Array) -> Folded:
        """The coefficients of those views, without listing them where all nodes count alike."""
        counting = as_numbers(counting, "counting")
        edge, rho = np.split(counting, [self.size])
        single = self.optional
        slack = self.incidence()[single] if len(single) else sp.csr_array((0, self.size))
        used = rho[single] != 0
        return Folded(
            edge + self._at_ends(rho),
            edge.copy(),
            sp.csr_array(-slack[used]),
            np.ones(int(used.sum())),
            rho[single][used],
        )

    def _at_ends(self, rho: Array) -> Array | float:
        """ρ_u + ρ_v of every edge."""
        return 2.0 * float(rho[0]) if np.ptp(rho) == 0 else np.asarray(self.incidence().T @ rho)

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """c = 1 − ρ_u − ρ_v on edges and ρ_v on vertices; default ρ = ½."""
        given = as_numbers(0.5 if rho is None else rho, "rho")
        weight = np.broadcast_to(given, (self.n_nodes,))
        out = np.empty(self.size + self.n_nodes)
        out[: self.size] = 1.0 - self._at_ends(weight)
        out[self.size :] = weight
        return out

    def convex(self, counting: Array) -> bool:
        """Concave for every ρ in [0, 1]^V on any graph (theorem of the MLE-Struct paper)."""
        counting = as_numbers(counting, "counting")
        rho = counting[self.size :]
        return bool(((rho >= 0) & (rho <= 1)).all()) and self._is_matching_entropy(counting)

    def _is_matching_entropy(self, counting: Array) -> bool:
        edge, rho = np.split(counting, [self.size])
        expected = 1.0 - self._at_ends(rho)
        if np.ndim(expected) == 0:
            edge = np.array([edge.min(), edge.max()])
        return bool(np.allclose(edge, expected))

    def bound(self, counting: Array) -> Bound:
        """An upper bound where no edge's counting number is negative; else none known."""
        counting = as_numbers(counting, "counting")
        if not self._is_matching_entropy(counting):
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
        self.size, self.n_nodes = rows * columns, rows + columns
        flags = as_fixed(self.size, fixed)
        for pairs, flag in ((forbidden, 0), (required, 1)):
            for pair in as_pairs(pairs).tolist():
                place = self.index(*pair)
                if flags[place] == 1 - flag:
                    raise ValueError(f"pair {tuple(pair)} is both required and forbidden")
                flags[place] = flag
        self.fixed = self._spread(flags) if (flags == 1).any() else flags

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    def identity(self) -> tuple[int, int, str]:
        return self.rows, self.columns, self.kind

    def index(self, row: int, column: int) -> int:
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            raise ValueError(f"pair ({row}, {column}) is outside {self.rows} × {self.columns}")
        return row * self.columns + column

    def nodes_of(self, pairs: Any) -> tuple[Any, Any]:
        """The two nodes of each of these coordinates; columns come after the rows."""
        return pairs // self.columns, self.rows + pairs % self.columns

    def _spread(self, fixed: Flags) -> Flags:
        """A required pair forbids every other pair of its row and column."""
        table = fixed.reshape(self.shape)
        required = np.argwhere(table == 1)
        for axis, side in ((0, "row"), (1, "column")):
            ends, counts = np.unique(required[:, axis], return_counts=True)
            if (counts > 1).any():
                raise ValueError(f"{side} {ends[counts.argmax()]} has two required pairs")
        for row, column in required:
            table[row, :] = 0
            table[:, column] = 0
            table[row, column] = 1
        return fixed

    def incidence(self) -> sp.csr_array:
        """(rows + columns) × pairs."""
        pair = np.arange(self.size)
        ends = np.stack(self.nodes_of(pair))
        return sp.csr_array(
            (np.ones(2 * self.size), (ends.ravel(), np.tile(pair, 2))),
            shape=(self.n_nodes, self.size),
        )

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
        if (partner < -1).any() or (partner >= self.columns).any():
            row = int(np.flatnonzero((partner < -1) | (partner >= self.columns))[0])
            raise ValueError(f"row {row} has column {partner[row]} of {self.columns}")
        counts = np.bincount(partner[matched], minlength=self.columns)
        if (counts > 1).any():
            column = counts.argmax()
            raise ValueError(
                f"column {column} is matched by rows {np.flatnonzero(partner == column).tolist()}"
            )
        if self.kind != "partial" and len(matched) < self.rows:
            raise ValueError(f"row {int(np.flatnonzero(partner < 0)[0])} is not matched")
        vector = np.zeros(self.size)
        vector[matched * self.columns + partner[matched]] = 1.0
        return vector

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
        fixed = self.fixed.copy()
        known = np.flatnonzero(partner >= 0)
        pairs = known * self.columns + partner[known]
        shut = known[fixed[pairs] == 0]
        if len(shut):
            raise ValueError(f"observed pair {(int(shut[0]), int(partner[shut[0]]))} is forbidden")
        fixed[pairs] = 1
        return self.refix(self._spread(fixed))  # type: ignore[return-value]

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
        counting = as_numbers(counting, "counting")
        general = super().bound(counting)
        if general.kind == "upper" or not self._is_matching_entropy(counting):
            return general
        rho = counting[self.size :]
        hypertree = 0.5 * (1 + 1 / self.rows)
        if self.kind == "perfect" and (rho <= hypertree + 1e-12).all() and np.ptp(rho) == 0:
            return Bound("upper", "acyclic hypertree: ρ ≤ ½(1 + 1/n)")
        if self.kind in ("perfect", "partial") and (rho == 1).all():
            return Bound("lower", "Bethe on bipartite matchings")
        return general

    def impossible(self) -> str | None:
        """A set of rows with too few columns (Hall), or the same the other way round."""
        allowed = self.fixed.reshape(self.shape) != 0
        must = {"perfect": (allowed, allowed.T), "one_sided": (allowed,), "partial": ()}
        for graph, (some, others) in zip(
            must[self.kind], (("rows", "columns"), ("columns", "rows")), strict=False
        ):
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
    rows, columns = {int(single[0])}, set[int]()
    frontier = list(rows)
    while frontier:
        row = frontier.pop()
        for column in np.flatnonzero(allowed[row]).tolist():
            if column not in columns:
                columns.add(column)
                rows.add(int(row_of[column]))
                frontier.append(int(row_of[column]))
    return sorted(rows), sorted(columns)


def _chosen(table: Ints) -> Ints:
    """The column of every row of a 0/1 table, −1 where there is none."""
    wrong = np.argwhere((table != 0) & (table != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(f"pair ({row}, {column}) is {table[row, column]}; it is 0 or 1")
    counts = table.sum(axis=1)
    if (counts > 1).any():
        raise ValueError(f"row {counts.argmax()} is matched to {counts.max()} columns")
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

    def _off(self, point: Array) -> Array:
        """How far the nodes' degrees are off, for points along the leading axes. O(edges) each."""
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
