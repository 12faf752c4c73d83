"""Paths, flows and b-matchings: sets of arcs or edges with conditions at the nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import refuse_removed
from mlestruct.structures.base import (
    Array,
    Binary,
    Bound,
    Constraints,
    Ints,
    Structure,
    Views,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
    kept,
    refuse,
    refuse_many,
)
from mlestruct.structures.graph_edges import (
    Degrees,
    Edges,
    as_pairs,
    checked_arcs,
    net_outflow,
)
from mlestruct.structures.matching import EdgeSets, Pairs, odd_component


class Paths(Structure):
    """Source-to-sink paths of a DAG; a coordinate is an arc, an outcome the path's arcs in order.

    The views are arcs and the throughput τ_v of every inner node; counting numbers (1, −ρ) at
    ρ = 1 give −Σ τ_e log τ_e + Σ τ_v log τ_v, the exact entropy of the Markov path distribution.

    >>> paths = Paths([(0, 1), (0, 2), (1, 3), (2, 3)], source=0, sink=3)
    >>> paths.decode(paths.encode([1, 3]))
    [1, 3]
    """

    default_oracle = "shortest_path"

    def __init__(
        self,
        arcs: Sequence[tuple[int, int]] | Ints,
        source: int,
        sink: int,
        *,
        fixed: ArrayLike | None = None,
    ) -> None:
        self.arcs = checked_arcs(arcs)
        self.source, self.sink = as_count(source, "source"), as_count(sink, "sink")
        if source == sink:
            raise ValueError(f"source {source} and sink {sink} must be two different nodes")
        self.n_nodes = int(max(self.arcs.max(), source, sink)) + 1
        refuse_many(self.n_nodes)
        self.size = len(self.arcs)
        self.fixed = as_fixed(self.size, fixed)
        self.order = _topological(self.arcs, self.n_nodes)

    def identity(self) -> tuple[bytes, int, int]:
        return self.arcs.tobytes(), self.source, self.sink

    @cached_property
    def inner(self) -> Ints:
        """Nodes other than source and sink that an arc enters."""
        nodes = np.unique(self.arcs[:, 1])
        return nodes[(nodes != self.source) & (nodes != self.sink)]

    @property
    @kept
    def usable(self) -> Ints:
        """The arcs that an allowed path may use, in the topological order of their tails."""
        place = np.empty(self.n_nodes, dtype=np.int64)
        place[self.order] = np.arange(self.n_nodes)
        tail, head = place[self.arcs].T
        usable = self.fixed != 0
        for arc in np.flatnonzero(self.fixed == 1):
            # Every path through this arc crosses its span by it, and by nothing else.
            crosses = (tail < head[arc]) & (head > tail[arc])
            crosses[arc] = False
            usable &= ~crosses
            if place[self.source] > tail[arc] or place[self.sink] < head[arc]:
                usable[:] = False
        chosen = np.flatnonzero(usable)
        return chosen[np.argsort(tail[chosen], kind="stable")]

    def encode(self, outcome: Sequence[int] | Ints) -> Array:
        chosen = as_integers(outcome, "arcs").reshape(-1)
        if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= self.size:
            range_ = f"0..{self.size - 1}"
            raise ValueError(f"a path is a list of arcs in {range_}, got {chosen.tolist()}")
        stops = self.arcs[chosen]
        words = "arc {} does not start where arc {} ends".format
        refuse(stops[:-1, 1] != stops[1:, 0], lambda k: words(*chosen[[k + 1, k]]))
        first, last = stops[0, 0], stops[-1, 1]
        if first != self.source or last != self.sink:
            ends = f"{self.source} to {self.sink}, not from {first} to {last}"
            raise ValueError(f"a path runs from {ends}")
        vector = np.zeros(self.size)
        vector[chosen] = 1.0
        return vector

    def decode(self, vector: ArrayLike) -> list[int]:
        """The arcs of the path, following the largest value out of every node."""
        flow = as_numbers(vector, "vector")
        path, node = [], self.source
        while node != self.sink:
            leaving = np.flatnonzero(self.arcs[:, 0] == node)
            path.append(int(leaving[flow[leaving].argmax()]))
            node = int(self.arcs[path[-1], 1])
        return path

    def views(self) -> Views:
        """Distributions: the arcs out of every node, then every inner node's throughput."""
        n_inner, arc = len(self.inner), np.arange(self.size)
        ones, shape = np.ones(self.size), (self.n_nodes, self.size)
        leaves, enters = (sp.csr_array((ones, (end, arc)), shape=shape) for end in self.arcs.T)
        eye = sp.eye_array(self.size, format="csr")
        C = sp.csr_array(sp.vstack([eye, enters[self.inner]]))
        D = sp.block_diag([leaves.T, sp.eye_array(n_inner)], format="csr")
        over = np.stack([self.inner, self.n_nodes + np.arange(n_inner)], axis=1)
        return Views(C, np.zeros(C.shape[0]), sp.csr_array(D), over)

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        """1 on the arcs out of every node, −ρ on inner nodes; default ρ = 1, the exact entropy."""
        weight = np.broadcast_to(as_numbers(1.0 if rho is None else rho, "rho"), (len(self.inner),))
        return np.concatenate([np.ones(self.n_nodes), -weight])

    def constraints(self) -> Constraints:
        """Flow conservation, one unit out of the source."""
        node = np.arange(self.n_nodes)
        net = (node == self.source).astype(float) - (node == self.sink)
        return Constraints(net_outflow(self.n_nodes, self.arcs), net, net)

    def clamp(self, observed: Sequence[int]) -> Paths:
        """Paths through all the observed arcs."""
        arcs, fixed = as_integers(observed, "arcs").reshape(-1), self.fixed.copy()
        wrong = (arcs < 0) | (arcs >= self.size)
        refuse(wrong, lambda k: f"observed arc {arcs[k]} is not in 0..{self.size - 1}")
        refuse(fixed[arcs] == 0, lambda k: f"observed arc {arcs[k]} is forbidden")
        fixed[arcs] = 1
        return self.refix(fixed)  # type: ignore[return-value]

    def bound(self, counting: Array) -> Bound:
        counting = as_numbers(counting, "counting")
        arcs, inner = counting[: self.n_nodes], counting[self.n_nodes :]
        if (arcs == 1).all() and (inner == -1).all():
            return Bound("exact", "Markov paths on a DAG")
        if (arcs == 1).all() and ((inner >= -1) & (inner <= 0)).all():
            return Bound("upper", "τ_v log τ_v ≤ 0")
        return Bound("none", "no theorem for these counting numbers")

    def impossible(self) -> str | None:
        reached = {self.source}
        for tail, head in self.arcs[self.usable].tolist():  # by their tails' order
            if tail in reached:
                reached.add(head)
        if self.sink in reached:
            return None
        required = np.flatnonzero(self.fixed == 1).tolist()
        through = f" through all required arcs {required}" if required else ""
        return f"no allowed path leads from node {self.source} to node {self.sink}{through}"


def _topological(arcs: Ints, n_nodes: int) -> Ints:
    waiting, order = np.bincount(arcs[:, 1], minlength=n_nodes), list[int]()
    tails, heads = arcs[np.argsort(arcs[:, 0], kind="stable")].T
    leaving = np.split(heads, np.searchsorted(tails, np.arange(1, n_nodes)))
    ready = np.flatnonzero(waiting == 0).tolist()
    while ready:
        order.append(ready.pop())
        for head in leaving[order[-1]].tolist():
            waiting[head] -= 1
            if waiting[head] == 0:
                ready.append(head)
    refuse(waiting > 0, lambda node: f"the arcs hold a cycle through node {node}")
    return np.array(order, dtype=np.int64)


Supply = Mapping[int, int | tuple[int, int]]


class Flow(Binary):
    """Sets of arcs whose net outflow at every node lies between two whole numbers.

    ``supply`` maps a node to its net outflow (arcs used out of it minus arcs used into it), or to
    the lowest and highest allowed; at every other node what enters leaves. An arc carries at most
    one unit: list it twice for two. An outcome is the list of used arcs, by number. Cycles are
    allowed: where the arcs hold one it may be used on its own.

    Tracks that are born and die anywhere, no more than three at a time on these arcs:

    >>> tracks = Flow([(0, 1), (0, 2), (1, 3), (2, 3)], {0: (0, 3), 3: (-3, 0)})
    >>> tracks.decode(tracks.encode([0, 2])).tolist()
    [0, 2]

    The entropy is the sum of the arcs' binary entropies: an upper bound on log Z, and far from it
    for a single unit, where :class:`Paths` is exact.
    """

    default_oracle = "min_cost_flow"

    def __init__(
        self,
        arcs: Iterable[tuple[int, int]] | Ints,
        supply: Supply,
        *,
        n_nodes: int | None = None,
        fixed: ArrayLike | None = None,
    ) -> None:
        self.arcs = checked_arcs(arcs)
        tails, heads = self.arcs.T
        refuse(tails == heads, lambda k: f"arc {k} joins node {tails[k]} to itself")
        nodes = as_integers(list(supply), "nodes with a supply")
        most = max(int(self.arcs.max()), int(nodes.max(initial=0))) + 1
        refuse_many(most)
        self.n_nodes = most if n_nodes is None else as_count(n_nodes, "n_nodes")
        if self.n_nodes < most:
            raise ValueError(f"node {most - 1} is named, but there are {self.n_nodes} nodes")
        self.low, self.high = np.zeros((2, self.n_nodes), dtype=np.int64)
        for node, given in supply.items():
            if node < 0:
                raise ValueError(f"supply names node {node}; nodes are numbered from 0")
            ends = as_numbers([given, given] if np.ndim(given) == 0 else given, "a supply")
            if ends.shape != (2,) or (ends != np.rint(ends)).any() or ends[0] > ends[1]:
                form = "it must be a whole number, or lowest and highest"
                raise ValueError(f"the supply of node {node} is {given}; {form}")
            self.low[node], self.high[node] = ends
        self.size = len(self.arcs)
        self.fixed = as_fixed(self.size, fixed)

    def identity(self) -> tuple[bytes, bytes, bytes]:
        return self.arcs.tobytes(), self.low.tobytes(), self.high.tobytes()

    def encode(self, outcome: ArrayLike) -> Array:
        times = np.bincount(self._arcs(outcome), minlength=self.size)
        if (times > 1).any():
            raise ValueError(f"arc {times.argmax()} is used {times.max()} times")
        out = np.asarray(net_outflow(self.n_nodes, self.arcs) @ times).round().astype(np.int64)
        words = "node {} sends {} units, not {}..{}".format
        wrong = (out < self.low) | (out > self.high)
        refuse(wrong, lambda v: words(v, out[v], self.low[v], self.high[v]))
        return times.astype(float)

    def _arcs(self, listed: ArrayLike) -> Ints:
        used = as_integers(listed, "arcs").reshape(-1)
        wrong = (used < 0) | (used >= self.size)
        refuse(wrong, lambda k: f"there is no arc {used[k]} in 0..{self.size - 1}")
        return used

    def decode(self, vector: ArrayLike) -> Ints:
        """The arcs above ½."""
        return np.flatnonzero(as_numbers(vector, "vector").reshape(-1) > 0.5).astype(np.int64)

    def routes(self, *_: object) -> None:
        """Say what serves in the place of this removed method."""
        refuse_removed("Flow.routes")

    def constraints(self) -> Constraints:
        """Net outflow: with 0 ≤ τ ≤ 1 the whole convex hull (total unimodularity)."""
        net = net_outflow(self.n_nodes, self.arcs)
        return Constraints(net, self.low.astype(float), self.high.astype(float))

    def clamp(self, observed: ArrayLike) -> Flow:
        """Flows that use all the observed arcs."""
        fixed = self.fixed.copy()
        fixed[self._arcs(observed)] = 1
        return self.refix(fixed)  # type: ignore[return-value]

    def impossible(self) -> str | None:
        """A node whose allowed arcs cannot carry its supply; the solver finds deeper reasons."""
        (tails, heads), n, least = self.arcs.T, self.n_nodes, self.fixed == 1
        out, into = (np.bincount(ends[self.fixed != 0], minlength=n) for ends in (tails, heads))
        sent, came = (np.bincount(ends[least], minlength=n) for ends in (tails, heads))
        wrong = (out - came < self.low) | (sent - into > self.high)
        if not wrong.any():
            return None
        v = int(wrong.argmax())
        allowed = f"its allowed arcs carry {sent[v] - into[v]} to {out[v] - came[v]}"
        return f"node {v} must send {self.low[v]} to {self.high[v]} net units, {allowed}"


def after_required(arcs: Ints, fixed: NDArray[Any], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The net outflow left for the free arcs once the required ones are used."""
    used = arcs[fixed == 1]
    n = len(low)
    net = np.bincount(used[:, 0], minlength=n) - np.bincount(used[:, 1], minlength=n)
    return low - net, high - net


class BMatching(EdgeSets, Binary):
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
    graph: Edges

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
        self.fixed = self._pinned(fixed, forbidden, required)

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

    def identity(self) -> Hashable:
        return self.graph.identity(), self.capacity.tobytes(), self.exact.tobytes()

    def encode(self, outcome: Any) -> Array:
        vector = np.bincount(self.graph.index(as_pairs(outcome)), minlength=self.size)
        if (vector > 1).any():
            raise ValueError(f"pair {tuple(self.ends[vector.argmax()].tolist())} is listed twice")
        used = np.bincount(self.ends[vector > 0].ravel(), minlength=self.n_nodes)
        wrong = (used > self.capacity) | (self.exact & (used < self.capacity))
        words, rule = "node {} is in {} pairs, not {} {}".format, ("at most", "exactly")
        refuse(wrong, lambda v: words(v, used[v], rule[int(self.exact[v])], self.capacity[v]))
        return vector.astype(float)

    def decode(self, vector: ArrayLike) -> Ints:
        """The pairs above ½, as (pairs × 2) node numbers."""
        return self.ends[as_numbers(vector, "vector").reshape(-1) > 0.5].astype(np.int64)

    def constraints(self) -> Constraints:
        """The nodes' degrees: all of the convex hull on bipartite graphs, necessary on others."""
        high = self.capacity.astype(float)
        return Degrees(self.graph, np.where(self.exact, high, 0.0), high)

    def clamp(self, observed: Any) -> BMatching:
        """Keep the observed pairs."""
        pairs = as_pairs(observed)
        words = "observed pair ({}, {}) is forbidden".format
        return self._clamped(self.graph.index(pairs), lambda k: words(*pairs[k]))

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
        """A node with fewer pairs than it must have, or an odd part of the graph."""
        degree = np.bincount(self.ends[self.fixed != 0].ravel(), minlength=self.n_nodes)
        short = self.exact & (degree < self.capacity)
        if short.any():
            v = int(short.argmax())
            return f"node {v} needs {self.capacity[v]} pairs and has {degree[v]} allowed"
        if not self.exact.all():
            return None
        return odd_component(self.n_nodes, self.ends[self.fixed != 0], self.capacity)


def _capacities(capacity: ArrayLike, n_nodes: int) -> Ints:
    given = as_numbers(capacity, "capacities")
    if given.ndim and given.shape != (n_nodes,):
        raise ValueError(f"{given.size} capacities for {n_nodes} nodes")
    values = np.broadcast_to(given, (n_nodes,))
    wrong = (values < 0) | (values != np.rint(values))
    refuse(wrong, lambda v: f"node {v} has capacity {values[v]}; use whole numbers ≥ 0")
    return values.astype(np.int64)
