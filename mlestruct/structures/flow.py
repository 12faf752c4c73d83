"""Flows of several units over arcs that carry one unit each: tracks, disjoint paths, transports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import (
    Array,
    Binary,
    Constraints,
    Ints,
    as_count,
    as_fixed,
    as_integers,
    as_numbers,
    refuse_many,
)
from mlestruct.structures.graph_edges import checked_arcs, net_outflow

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
        loops = np.flatnonzero(self.arcs[:, 0] == self.arcs[:, 1])
        if len(loops):
            raise ValueError(f"arc {loops[0]} joins node {self.arcs[loops[0], 0]} to itself")
        nodes = as_integers(list(supply), "nodes with a supply")
        most = max(int(self.arcs.max()), int(nodes.max(initial=0))) + 1
        refuse_many(most)
        self.n_nodes = most if n_nodes is None else as_count(n_nodes, "n_nodes")
        if self.n_nodes < most:
            raise ValueError(f"node {most - 1} is named, but there are {self.n_nodes} nodes")
        self.low, self.high = _net_outflow(supply, self.n_nodes)
        self.size = len(self.arcs)
        self.fixed = as_fixed(self.size, fixed)

    def identity(self) -> tuple[bytes, bytes, bytes]:
        return self.arcs.tobytes(), self.low.tobytes(), self.high.tobytes()

    def encode(self, outcome: ArrayLike) -> Array:
        used = self._arcs(outcome)
        times = np.bincount(used, minlength=self.size)
        if (times > 1).any():
            raise ValueError(f"arc {times.argmax()} is used {times.max()} times")
        out = np.asarray(net_outflow(self.n_nodes, self.arcs) @ times).round().astype(np.int64)
        wrong = np.flatnonzero((out < self.low) | (out > self.high))
        if len(wrong):
            v = int(wrong[0])
            raise ValueError(f"node {v} sends {out[v]} units, not {self.low[v]}..{self.high[v]}")
        return times.astype(float)

    def _arcs(self, listed: ArrayLike) -> Ints:
        used = as_integers(listed, "arcs").reshape(-1)
        wrong = used[(used < 0) | (used >= self.size)]
        if len(wrong):
            raise ValueError(f"there is no arc {wrong[0]} in 0..{self.size - 1}")
        return used

    def decode(self, vector: ArrayLike) -> Ints:
        """The arcs above ½."""
        return np.flatnonzero(as_numbers(vector, "vector").reshape(-1) > 0.5).astype(np.int64)

    def routes(self, vector: ArrayLike) -> list[list[int]]:
        """The arcs above ½ as walks of nodes: from each that sends a unit to one that receives it.

        What is left are cycles, each a walk that ends where it began. Where walks cross at a node,
        one of the ways to split them is chosen.
        """
        leaving: list[list[int]] = [[] for _ in range(self.n_nodes)]
        entering = np.zeros(self.n_nodes, dtype=np.int64)
        for tail, head in self.arcs[self.decode(vector)[::-1]].tolist():
            leaving[tail].append(head)
            entering[head] += 1
        starts = [v for v, ways in enumerate(leaving) for _ in range(len(ways) - entering[v])]
        walks = [_walk(leaving, v) for v in starts]
        for v, ways in enumerate(leaving):
            while ways:
                walks.append(_walk(leaving, v))
        return walks

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
        """A set of nodes that must send (or receive) more than its arcs carry (Hoffman)."""
        found = cut_witness(self.arcs, self.fixed, self.low, self.high)
        if found is None:
            return None
        does, moves = ("send", "leave") if found.sends else ("receive", "enter")
        return (
            f"nodes {found.nodes} must {does} at least {found.need} net units beside the required "
            f"arcs, but only {found.have} allowed arcs {moves} them"
        )


def _walk(leaving: list[list[int]], node: int) -> list[int]:
    """Follow and use up arcs until none leaves."""
    walk = [node]
    while leaving[walk[-1]]:
        walk.append(leaving[walk[-1]].pop())
    return walk


def _net_outflow(supply: Supply, n_nodes: int) -> tuple[Ints, Ints]:
    low, high = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    for node, given in supply.items():
        if node < 0:
            raise ValueError(f"supply names node {node}; nodes are numbered from 0")
        ends = as_numbers([given, given] if np.ndim(given) == 0 else given, "a supply")
        if ends.shape != (2,) or (ends != np.rint(ends)).any() or ends[0] > ends[1]:
            raise ValueError(
                f"the supply of node {node} is {given}; it must be a whole number, or lowest and "
                "highest"
            )
        low[node], high[node] = ends
    return low, high


class Cut(NamedTuple):
    """Nodes that must send (or receive) ``need`` units over the ``have`` arcs there are."""

    nodes: list[int]
    sends: bool
    need: int
    have: int


def cut_witness(arcs: Ints, fixed: NDArray[np.int8], low: Ints, high: Ints) -> Cut | None:
    """Hoffman's circulation theorem: nodes whose arcs cannot carry their supply, or None.

    A maximum flow from lowest supplies, with one extra node that hands out what is optional; where
    it does not exhaust them, the nodes still reached are the witness.
    """
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    n = len(low)
    low, high = after_required(arcs, fixed, low, high)
    free = arcs[fixed < 0]
    given = np.append(low, -low.sum())
    node, source, sink = np.arange(n + 1), n + 1, n + 2
    tails = np.concatenate([free[:, 0], np.full(n, n), np.full(n + 1, source), node])
    heads = np.concatenate([free[:, 1], node[:n], node, np.full(n + 1, sink)])
    room = np.concatenate(
        [np.ones(len(free)), high - low, np.maximum(given, 0), np.maximum(-given, 0)]
    )
    network = sp.csr_array((room.astype(np.int32), (tails, heads)), shape=(n + 3, n + 3))
    flow = maximum_flow(network, source, sink)
    if flow.flow_value == np.maximum(given, 0).sum():
        return None
    left = sp.csr_array(network - flow.flow)
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    inside = np.zeros(n + 3, dtype=bool)
    inside[reached] = True
    crossing = int((inside[free[:, 0]] & ~inside[free[:, 1]]).sum())
    sends = not inside[n]
    members = np.flatnonzero(inside[:n] == sends)
    need = low[members].sum() if sends else -high[members].sum()
    return Cut(members.tolist(), sends, int(need), crossing)


def after_required(arcs: Ints, fixed: NDArray[Any], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The net outflow left for the free arcs once the required ones are used."""
    used = arcs[fixed == 1]
    n = len(low)
    net = np.bincount(used[:, 0], minlength=n) - np.bincount(used[:, 1], minlength=n)
    return low - net, high - net
