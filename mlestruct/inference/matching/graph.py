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
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.bipartite import BipartiteMatching
from mlestruct.structures.matching import Matching

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
    strict: NDArray[np.bool_]
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
    free = structure.fixed == -1
    taken = np.bincount(
        np.r_[tail[structure.fixed == 1], head[structure.fixed == 1]], minlength=nodes
    )
    strict[taken > 0] = False
    live, strict = _alive(structure, tail, head, free, strict)
    base = (structure.fixed == 1).astype(float)
    forced = live & _only(tail, head, live, strict)
    base[forced] = 1.0
    done = np.bincount(np.r_[tail[forced], head[forced]], minlength=nodes) + taken > 0
    live &= ~forced
    used = np.bincount(np.r_[tail[live], head[live]], minlength=nodes) > 0
    return _arrange(structure, tail, head, live, strict & used & ~done, base)


def _complete(nodes: int, strict: NDArray[np.bool_]) -> Layout:
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
    structure: AnyMatching, tail: Any, head: Any, free: Any, strict: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Edges and slacks that some fractional matching uses; a node whose slack is dead is strict.

    An edge that no perfect matching uses has τ = 0, and scaling would approach it only as 1/k.
    """
    plain = isinstance(structure, BipartiteMatching) and structure.interior() is not None
    if plain or not strict.any():
        return free.copy(), strict
    if isinstance(structure, BipartiteMatching):
        rows, columns = tail[free], head[free] - structure.rows
        left, right = strict[: structure.rows].nonzero()[0], np.arange(structure.columns)
        busy = structure.fixed.reshape(structure.shape) == 1
        right = right[~busy.any(axis=0)]
        alone = np.repeat(structure.rows + np.arange(len(right) - len(left)), len(right))
        pairs = np.r_[rows, alone], np.r_[columns, np.tile(right, len(right) - len(left))]
        ok = _used(*pairs, structure.rows + len(right) - len(left), structure.columns,
                   np.r_[left, np.unique(alone)], structure)  # fmt: skip
        live = free.copy()
        live[free] = ok[: len(rows)]
        slack = np.zeros(structure.columns, dtype=bool)
        slack[pairs[1][len(rows) :][ok[len(rows) :]]] = True
        strict = strict.copy()
        strict[structure.rows + right[~slack[right]]] = True
        return live, strict
    rows, columns = np.r_[tail[free], head[free]], np.r_[head[free], tail[free]]
    ok = _used(rows, columns, len(strict), len(strict), strict.nonzero()[0], structure)
    live = free.copy()
    live[free] = ok[: len(ok) // 2]
    return live, strict


def _used(
    row: Any, column: Any, rows: int, columns: int, need: Any, structure: AnyMatching
) -> NDArray[np.bool_]:
    """The (row, column) pairs in some matching that saturates the rows in ``need``.

    Dulmage and Mendelsohn: pairs on a cycle that alternates with one such matching.
    """
    graph = sp.csr_array((np.ones(len(row)), (row, column)), shape=(rows, columns))
    mate = maximum_bipartite_matching(graph, perm_type="column")  # each row's column
    if (mate[need] < 0).any():
        raise Infeasible(structure.impossible() or "no matching saturates every node")
    owner = np.full(columns, -1)
    owner[mate[mate >= 0]] = np.flatnonzero(mate >= 0)
    turn = sp.csr_array((np.ones(len(row)), (row, owner[column])), shape=(rows, rows))
    _, label = connected_components(turn, directed=True, connection="strong")
    return np.asarray(label[row] == label[owner[column]])


def _only(tail: Any, head: Any, live: Any, strict: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Edges that are some saturated node's only one."""
    degree = np.bincount(np.r_[tail[live], head[live]], minlength=len(strict))
    single = strict & (degree == 1)
    return np.asarray(single[tail] | single[head])


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
