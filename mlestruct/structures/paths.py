"""Paths through a directed graph without cycles (unit flows from source to sink)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlestruct.structures.base import (
    Array,
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
    refuse_many,
)
from mlestruct.structures.graph_edges import checked_arcs, net_outflow


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
            raise ValueError(
                f"a path is a list of arcs in 0..{self.size - 1}, got {chosen.tolist()}"
            )
        stops = self.arcs[chosen]
        broken = np.flatnonzero(stops[:-1, 1] != stops[1:, 0])
        if len(broken):
            first, second = chosen[broken[0] : broken[0] + 2]
            raise ValueError(f"arc {second} does not start where arc {first} ends")
        if stops[0, 0] != self.source or stops[-1, 1] != self.sink:
            raise ValueError(
                f"a path runs from {self.source} to {self.sink}, "
                f"not from {stops[0, 0]} to {stops[-1, 1]}"
            )
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

    def _entering(self) -> sp.csr_array:
        row = np.searchsorted(self.inner, self.arcs[:, 1])
        enters = np.isin(self.arcs[:, 1], self.inner)
        return sp.csr_array(
            (np.ones(enters.sum()), (row[enters], np.flatnonzero(enters))),
            shape=(len(self.inner), self.size),
        )

    def views(self) -> Views:
        """Distributions: the arcs out of every node, then every inner node's throughput."""
        eye = sp.eye_array(self.size, format="csr")
        C = sp.csr_array(sp.vstack([eye, self._entering()]))
        n_inner = len(self.inner)
        tail = np.arange(self.size), self.arcs[:, 0]
        leaves = sp.csr_array((np.ones(self.size), tail), shape=(self.size, self.n_nodes))
        D = sp.block_diag([leaves, sp.eye_array(n_inner)], format="csr")
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
        arcs = as_integers(observed, "arcs").reshape(-1)
        wrong = arcs[(arcs < 0) | (arcs >= self.size)]
        if len(wrong):
            raise ValueError(f"observed arc {wrong[0]} is not in 0..{self.size - 1}")
        shut = arcs[self.fixed[arcs] == 0]
        if len(shut):
            raise ValueError(f"observed arc {shut[0]} is forbidden")
        fixed = self.fixed.copy()
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
        usable = self.arcs[self.fixed != 0]
        reached = np.zeros(self.n_nodes, dtype=bool)
        reached[self.source] = True
        for node in self.order:
            if reached[node]:
                reached[usable[usable[:, 0] == node, 1]] = True
        if not reached[self.sink]:
            return f"no allowed path leads from node {self.source} to node {self.sink}"
        required = np.flatnonzero(self.fixed == 1).tolist()
        return f"no path uses all required arcs {required}" if required else None


def _topological(arcs: Ints, n_nodes: int) -> Ints:
    waiting = np.bincount(arcs[:, 1], minlength=n_nodes)
    leaving: list[list[int]] = [[] for _ in range(n_nodes)]
    for tail, head in arcs.tolist():
        leaving[tail].append(head)
    ready = np.flatnonzero(waiting == 0).tolist()
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for head in leaving[node]:
            waiting[head] -= 1
            if waiting[head] == 0:
                ready.append(head)
    if len(order) < n_nodes:
        raise ValueError(f"the arcs hold a cycle through node {int(np.flatnonzero(waiting)[0])}")
    return np.array(order, dtype=np.int64)
