"""The edges of an undirected graph as coordinates: listed, or all of a complete graph's."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.native._door import pairs_sums
from mlestruct.structures.base import (
    Array,
    Constraints,
    Ints,
    as_count,
    as_integers,
    refuse,
)

ROWS = 64  # nodes whose pairs are a matrix at a time


def symmetric(flat: Array, n: int) -> Array:
    """The list of pairs as an (n × n) matrix, zero on the diagonal."""
    table = np.empty((n, n))
    for first in range(0, n, ROWS):
        block = np.empty((min(ROWS, n - first), n - first))
        unfold(flat, first, n, block)
        last = first + len(block)
        block[:, : len(block)] += block[:, : len(block)].T
        table[first:last, first:] = block
        table[first:, first:last] = block.T
    return table


def fold(block: Array, first: int, n: int, flat: Array) -> None:
    """Rows ``first``, … of a symmetric matrix, from column ``first`` on, into the list of pairs."""
    start = first * (2 * n - first - 1) // 2
    for i, row in enumerate(block):
        end = start + n - first - i - 1
        flat[start:end] = row[i + 1 :]
        start = end


def unfold(flat: Array, first: int, n: int, block: Array) -> None:
    """The list of pairs back as those rows, zero up to the diagonal."""
    start = first * (2 * n - first - 1) // 2
    for i, row in enumerate(block):
        end = start + n - first - i - 1
        row[: i + 1] = 0.0
        row[i + 1 :] = flat[start:end]
        start = end


class Edges:
    """Coordinate k is the k-th listed edge; of a complete graph, the k-th pair (u, v) with u < v.

    A complete graph is known by its number of nodes alone; its 2.9 million edges at n = 2,400 are
    only listed (once) when somebody asks for their ``ends``.
    """

    def __init__(self, n_nodes: int, edges: ArrayLike | None) -> None:
        self.n_nodes = as_count(n_nodes, "the number of nodes", least=2)
        self.complete = edges is None
        if edges is None:
            self.count = self.n_nodes * (self.n_nodes - 1) // 2
        else:
            self.ends = checked_edges(self.n_nodes, edges).astype(np.int32)
            self.count = len(self.ends)
            if self.count == 0:
                raise ValueError("a graph needs at least one edge, got none")

    def identity(self) -> Hashable:
        return self.n_nodes, None if self.complete else self.ends.tobytes()

    @cached_property
    def ends(self) -> NDArray[np.int32]:
        """(edges × 2) node numbers, in the order of the coordinates."""
        n, pairs = self.n_nodes, np.empty((self.count, 2), dtype=np.int32)
        low = np.arange(n - 1)
        pairs[:, 0] = np.repeat(low.astype(np.int32), n - 1 - low)
        pairs[:, 1] = np.arange(self.count, dtype=np.int32)
        before = (self.place(low, low + 1) - low - 1).astype(np.int32)
        pairs[:, 1] -= np.repeat(before, n - 1 - low)
        return pairs

    @cached_property
    def incidence(self) -> sp.csr_array:
        """(nodes × edges)."""
        column = np.repeat(np.arange(self.count, dtype=np.int32), 2)
        return sp.csr_array(
            (np.ones(2 * self.count), (self.ends.reshape(-1), column)),
            shape=(self.n_nodes, self.count),
        )

    @cached_property
    def degree(self) -> Ints:
        if self.complete:
            return np.full(self.n_nodes, self.n_nodes - 1)
        return np.bincount(self.ends.ravel(), minlength=self.n_nodes)

    def degrees(self, rows: Array) -> Array:
        """Σ of every node's edges, for each row of edge values. O(rows · edges)."""
        n = self.n_nodes
        if self.complete:
            out = np.empty((len(rows), n))
            for row, sums in zip(rows, out, strict=True):
                pairs_sums(n, row, sums)
            return out
        low, high = self.ends.T
        found = [np.bincount(low, row, n) + np.bincount(high, row, n) for row in rows]
        return np.array(found, dtype=float).reshape(-1, n)

    @cached_property
    def sides(self) -> Ints | None:
        """0 or 1 for every node such that each edge joins a 0 and a 1; None where that fails."""
        if self.complete and self.n_nodes > 2:
            return None
        from scipy.sparse.csgraph import connected_components

        n, (u, v) = self.n_nodes, self.ends.T  # in the double cover a bipartite graph falls in two
        tails, heads = np.concatenate([u, u + n]), np.concatenate([v + n, v])
        cover = sp.csr_array((np.ones(len(tails)), (tails, heads)), shape=(2 * n, 2 * n))
        _, label = connected_components(cover, directed=False)
        return None if (label[:n] == label[n:]).any() else (label[:n] > label[n:]).astype(np.int64)

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        codes = _code(self.n_nodes, self.ends.astype(np.int64))
        order = np.argsort(codes, kind="stable")
        return codes[order], order

    def index(self, pairs: ArrayLike) -> Ints:
        """The coordinate of every pair, in either direction; refuses what is no edge, by name."""
        ends = as_pairs(pairs)
        low, high = np.sort(ends).T
        wrong = (low < 0) | (high >= self.n_nodes) | (low == high)
        nodes = f"is no pair of two nodes in 0..{self.n_nodes - 1}"
        refuse(wrong, lambda k: f"{_named(ends[k])} {nodes}")
        place = self.place(low, high)
        if not self.complete:
            missing = (np.sort(self.ends[place]) != np.sort(ends)).any(axis=1)
            refuse(missing, lambda k: f"{_named(ends[k])} is not an edge of the graph")
        return place

    def place(self, low: Ints, high: Ints) -> Ints:
        """The coordinates of edges (low, high), low < high, that the graph is known to have."""
        if self.complete:
            return np.asarray(low * (2 * self.n_nodes - low - 1) // 2 + high - low - 1)
        codes, order = self._sorted
        found = np.searchsorted(codes, low * self.n_nodes + high)
        return np.asarray(order[np.minimum(found, self.count - 1)])

    def nodes_of(self, index: Ints) -> tuple[Ints, Ints]:
        """The two nodes of each of these coordinates."""
        if not self.complete:
            return self.ends[index, 0].astype(np.int64), self.ends[index, 1].astype(np.int64)
        every = np.arange(self.n_nodes)
        low = np.searchsorted(self.place(every, every + 1), index, side="right") - 1
        return low, index - self.place(low, low + 1) + low + 1


def as_pairs(pairs: Any) -> Ints:
    """A list of pairs of whole numbers as an (edges × 2) array."""
    ends = as_integers(pairs if isinstance(pairs, np.ndarray) else list(pairs), "node numbers")
    if ends.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(f"expected pairs of node numbers, got an array of shape {ends.shape}")
    return ends


def checked_arcs(arcs: Any) -> Ints:
    """At least one pair of nodes, numbered from 0."""
    pairs, words = as_pairs(arcs), "arcs are pairs of nodes numbered from 0"
    if len(pairs) == 0:
        raise ValueError(f"{words}, got none")
    refuse((pairs < 0).any(axis=1), lambda k: f"{words}; arc {k} is {_named(pairs[k])}")
    return pairs


def net_outflow(n_nodes: int, arcs: Ints) -> sp.csr_array:
    """(nodes × arcs): 1 where an arc leaves, −1 where it enters."""
    column, sign = np.repeat(np.arange(len(arcs)), 2), np.tile([1.0, -1.0], len(arcs))
    return sp.csr_array((sign, (arcs.ravel(), column)), shape=(n_nodes, len(arcs)))


def checked_edges(n_nodes: int, edges: Any) -> Ints:
    """Edges between two different nodes that there are, each once."""
    ends = as_pairs(edges)
    wrong = ((ends < 0) | (ends >= n_nodes)).any(axis=1)
    refuse(wrong, lambda k: f"edge {k} is {_named(ends[k])}; there are {n_nodes} nodes")
    loops = ends[:, 0] == ends[:, 1]
    refuse(loops, lambda k: f"edge {k} joins node {ends[k, 0]} to itself")
    _, first, counts = np.unique(_code(n_nodes, ends), return_index=True, return_counts=True)
    refuse(counts > 1, lambda k: f"edge {_named(ends[first[k]])} is listed twice")
    return ends


class CompleteBipartite:
    """The complete bipartite graph: coordinate row·columns + column, columns after the rows."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns, self.n_nodes = rows, columns, rows + columns

    def nodes_of(self, index: Ints) -> tuple[Ints, Ints]:
        """The two nodes of each of these coordinates."""
        return index // self.columns, self.rows + index % self.columns

    @property
    def ends(self) -> Ints:
        """(edges × 2) node numbers, in the order of the coordinates."""
        return np.stack(self.nodes_of(np.arange(self.rows * self.columns)), axis=1)

    @property
    def incidence(self) -> sp.csr_array:
        """(nodes × edges)."""
        place = self.ends.ravel(), np.repeat(np.arange(self.rows * self.columns), 2)
        return sp.csr_array((np.ones(len(place[0])), place))

    def degrees(self, points: Array) -> Array:
        """Σ of every node's edges, for each row of edge values."""
        tables = points.reshape(-1, self.rows, self.columns)
        return np.concatenate([tables.sum(axis=2), tables.sum(axis=1)], axis=1)

    def index(self, pairs: Ints) -> Ints:
        """The coordinates of pairs (row, column); refuses those outside of the table."""
        wrong = ((pairs < 0) | (pairs >= (self.rows, self.columns))).any(axis=1)
        outside = f"is outside {self.rows} × {self.columns}"
        refuse(wrong, lambda k: f"pair {tuple(pairs[k].tolist())} {outside}")
        return np.asarray(pairs @ (self.columns, 1))


class Degrees(Constraints):
    """Limits on the nodes' degrees; the rows are listed where they are asked for."""

    def __init__(self, graph: Edges | CompleteBipartite, low: Array, high: float | Array) -> None:
        self.graph, self.lo, self.hi = graph, low, np.broadcast_to(high, low.shape)

    @property
    def A(self) -> sp.csr_array:  # type: ignore[override]
        return self.graph.incidence

    def slack(self, tau: Array) -> Array:
        """Largest violation of a node's limits, for every point. O(edges) each."""
        degree = self.graph.degrees(tau.reshape(-1, tau.shape[-1]))
        worst = np.maximum(self.lo - degree, degree - self.hi).max(axis=1)
        return np.asarray(worst).reshape(tau.shape[:-1])


def _code(n_nodes: int, ends: Ints) -> Ints:
    return np.asarray(ends.min(axis=1) * n_nodes + ends.max(axis=1))


def _named(pair: Ints) -> str:
    return f"({pair[0]}, {pair[1]})"
