"""The part of a matching that is left to infer: live edges, row by row, and nodes to saturate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from mlestruct.errors import Infeasible
from mlestruct.native._door import MatchingGraph
from mlestruct.structures.base import Array, Ints, Marks
from mlestruct.structures.matching import BipartiteMatching, Matching

AnyMatching = BipartiteMatching | Matching


@dataclass(frozen=True)
class Layout:
    """Live edges sorted by tail, then head; τ of every other coordinate is known: ``base``.

    Edges of tail u are ptr[u]:ptr[u+1]; ``edge`` holds their coordinates (None: all, in order).
    ``strict`` nodes are saturated, others may stay single. A fractional degree vector with every
    live edge positive exists. On ``two_sided`` graphs every tail is on one side, every head on
    the other. ``component`` numbers the nodes' connected components.
    """

    ptr: Ints
    head: NDArray[np.int32]
    edge: Ints | None
    strict: Marks
    base: Array | None
    component: Ints
    two_sided: bool
    table: tuple[int, int] | None

    @property
    def nodes(self) -> int:
        return len(self.strict)

    @property
    def live(self) -> int:
        return len(self.head)

    @cached_property
    def native(self) -> MatchingGraph:
        """The arrays as kernels take them; it points to them, and is neither copied nor pickled."""
        rows, columns = self.table or (0, 0)
        return MatchingGraph(self.nodes, self.live, self.ptr, self.head, self.strict,
                             self.component, self.two_sided, rows, columns)  # fmt: skip

    def gather(self, rows: Array) -> Array:
        return np.ascontiguousarray(rows if self.edge is None else rows[:, self.edge])

    def spread(self, live: Array) -> Array:
        """Every coordinate's τ, from the live edges'."""
        if self.edge is None:
            return live
        assert self.base is not None
        out = np.tile(self.base, (len(live), 1))
        out[:, self.edge] = live
        return out


def layout(structure: AnyMatching) -> Layout:
    """What is left of the structure once dead and forced edges are known. O(edges · √nodes)."""
    nodes = structure.n_nodes
    strict = np.ones(nodes, dtype=bool)
    strict[structure.optional] = False
    whole = isinstance(structure, Matching) and structure.graph.complete
    if whole and not (structure.fixed >= 0).any():
        return _complete(nodes, strict)
    tail, head = _ends(structure)
    free, base = structure.fixed == -1, (structure.fixed == 1).astype(float)
    strict &= _degree(base, tail, head, nodes) == 0
    live, strict = _alive(structure, tail, head, free, strict)
    single = strict & (_degree(live, tail, head, nodes) == 1)
    base[live & (single[tail] | single[head])] = 1.0  # some saturated node's only edge
    live &= base == 0
    done = _degree(base, tail, head, nodes) > 0
    used = _degree(live, tail, head, nodes) > 0
    return _arrange(structure, tail, head, live, strict & used & ~done, base)


def _degree(weight: Any, tail: Any, head: Any, nodes: int) -> Any:
    """What the edges of every node weigh together."""
    ends = np.r_[tail, head]
    return np.bincount(ends, weights=np.r_[weight, weight], minlength=nodes)


def _complete(nodes: int, strict: Marks) -> Layout:
    """All pairs u < v, without listing their ends."""
    degree = np.arange(nodes - 1, -1, -1)
    ptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    head = np.arange(ptr[-1], dtype=np.int32)
    head -= np.repeat((ptr[:-1] - np.arange(nodes) - 1).astype(np.int32), degree)
    zeros = np.zeros(nodes, dtype=np.int64)
    if nodes == 2 and strict.all():
        return Layout(np.zeros(3, np.int64), head[:0], np.zeros(0, np.int64), strict & False,
                      np.ones(1), zeros, True, None)  # fmt: skip
    return Layout(ptr, head, None, strict, None, zeros, nodes == 2, None)


def _ends(structure: AnyMatching) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(structure, BipartiteMatching):
        return structure.nodes_of(np.arange(structure.size, dtype=np.int32))
    tail, head = structure.ends.T
    sides = structure.graph.sides
    swap = tail > head if sides is None else sides[tail] == 1
    return np.where(swap, head, tail), np.where(swap, tail, head)


def _alive(
    structure: AnyMatching, tail: Any, head: Any, free: Marks, strict: Marks
) -> tuple[Marks, Marks]:
    """Edges and slacks that some fractional matching uses; a node whose slack is dead is strict.

    An edge that no perfect matching uses has τ = 0, and scaling would approach it only as 1/k.
    Fractional matchings are the symmetric mixtures of perfect matchings of two copies of the nodes,
    where a node's slack joins its copies. Dulmage and Mendelsohn: such a matching uses the pairs
    that lie on a cycle which alternates with any one of them.
    """
    plain = isinstance(structure, BipartiteMatching) and structure.interior() is not None
    if plain or not strict.any():
        return free.copy(), strict
    nodes = len(strict)
    alone = np.flatnonzero(~strict)
    row = np.r_[tail[free], head[free], alone]
    column = np.r_[head[free], tail[free], alone]
    graph = sp.csr_array((np.ones(len(row)), (row, column)), shape=(nodes, nodes))
    mate = maximum_bipartite_matching(graph, perm_type="column")  # each row's column
    if (mate < 0).any():
        raise Infeasible(structure.impossible() or "no matching saturates every node")
    owner = np.argsort(mate)
    turn = sp.csr_array((np.ones(len(row)), (row, owner[column])), shape=(nodes, nodes))
    _, label = connected_components(turn, directed=True, connection="strong")
    used = label[row] == label[owner[column]]
    live, strict = free.copy(), strict.copy()
    live[free] = used[: np.sum(free)]
    strict[alone[~used[2 * np.sum(free) :]]] = True
    return live, strict


def _arrange(
    structure: AnyMatching, tail: Any, head: Any, live: Any, strict: Any, base: Array
) -> Layout:
    kept = np.flatnonzero(live)
    kept = kept[np.lexsort((head[kept], tail[kept]))]
    nodes, t, h = len(strict), tail[kept], head[kept]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(t, minlength=nodes))]).astype(np.int64)
    graph = sp.csr_array((np.ones(len(t)), (t, h)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=False)
    two_sided = isinstance(structure, BipartiteMatching) or structure.graph.sides is not None
    whole = len(kept) == structure.size and bool((np.diff(kept) == 1).all())
    table = None
    if whole and isinstance(structure, BipartiteMatching):
        table = structure.rows, structure.columns
    return Layout(
        ptr,
        h.astype(np.int32),
        None if whole else kept,
        strict,
        None if whole else base,
        component.astype(np.int64),
        two_sided,
        table,
    )
