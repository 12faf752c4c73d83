"""Planar Ising models without field: the best cut is an even subgraph of the dual, by matching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, one_by_one, pin
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.ising import Ising
from mlestruct_oracles.blossom import perfect_matching


class DualGraph(NamedTuple):
    """The faces on both sides of every edge, and how many there are."""

    sides: Ints
    faces: int


@dataclass(frozen=True)
class PlanarIsing:
    """The best labelling of a planar graph of agreement scores, proved by the matching's duals.

    Edges that disagree cross every face's border an even number of times. Start from those with
    negative score; faces that see an odd number of them are paired by shortest paths in the dual,
    at the least total |score| (Bieche, Maynard, Rammal and Uhry 1980). With k odd faces of f:
    k shortest-path trees, O(k f log f), and one dense matching, O(k³) at worst.
    """

    polytope: str = HULL

    def many(self, batch: Batch[Ising], scores: Array) -> Answers:
        return one_by_one(batch, scores, self._ready)

    def _ready(self, graph: Ising) -> Callable[[Array], tuple[Array, float]]:
        planar, forced = dual(graph), graph.fixed == 1

        def heaviest(given: Array) -> tuple[Array, float]:
            score = pin(graph, given)
            vertex, bound = best_cut(planar, score)
            if (vertex[forced] != 1).any() or (vertex[graph.fixed == 0] != 0).any():
                raise Infeasible("fixed edges of a cycle disagree an odd number of times")
            return vertex, float(bound - score[forced].sum() + given[forced].sum())

        return heaviest


@kept
def dual(graph: Ising) -> DualGraph:
    """Faces of a planar embedding; a bridge has one face on both sides. O(n)."""
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(graph.n))
    drawn.add_edges_from(graph.edges.tolist())
    planar, embedding = nx.check_planarity(drawn)
    if not planar:
        raise ValueError(
            "the graph is not planar; use a FactorGraph with QPBO, or CP-SAT for exact answers"
        )
    face: dict[tuple[int, int], int] = {}
    count = 0
    for half in embedding.edges():
        if half in face:
            continue
        around = embedding.traverse_face(*half)
        face.update(dict.fromkeys(zip(around, [*around[1:], around[0]], strict=True), count))
        count += 1
    sides = [(face[u, v], face[v, u]) for u, v in graph.edges.tolist()]
    return DualGraph(np.array(sides, dtype=np.int64).reshape(-1, 2), count)


def best_cut(planar: DualGraph, score: Array) -> tuple[Array, float]:
    """Which edges agree in the best labelling, and a bound on its score."""
    apart = score < 0
    odd = np.flatnonzero(np.bincount(planar.sides[apart].ravel(), minlength=planar.faces) % 2)
    bound = float(score[~apart].sum()) + 1e-15 * float(np.abs(score).sum())
    if len(odd):
        edge_at, graph = _shortest_edges(planar, np.abs(score))
        from scipy.sparse.csgraph import dijkstra

        reach, before = dijkstra(graph, directed=False, indices=odd, return_predecessors=True)
        between = np.minimum(reach[:, odd], reach[:, odd].T)  # symmetric to the last bit
        pairing = perfect_matching(-between)
        bound += pairing.upper
        for i, j in enumerate(pairing.partner.tolist()):
            if i < j:
                _flip_path(apart, before[i], int(odd[i]), int(odd[j]), edge_at)
    return np.where(apart, 0.0, 1.0), bound


def _shortest_edges(planar: DualGraph, length: Array) -> tuple[dict[tuple[int, int], int], Any]:
    """The dual graph without loops, the shortest of parallel edges, and which edge that is."""
    low, high = planar.sides.min(axis=1), planar.sides.max(axis=1)
    order = np.lexsort((length, high, low))
    order = order[low[order] != high[order]]
    pair = np.stack([low[order], high[order]], axis=1)
    first = np.ones(len(order), dtype=bool)
    first[1:] = (pair[1:] != pair[:-1]).any(axis=1)
    kept, ends = order[first], pair[first]
    graph = sp.csr_array((length[kept], (ends[:, 0], ends[:, 1])), shape=(planar.faces,) * 2)
    return {(a, b): int(e) for (a, b), e in zip(ends.tolist(), kept, strict=True)}, graph


def _flip_path(
    apart: Any, before: Ints, start: int, stop: int, edge_at: dict[tuple[int, int], int]
) -> None:
    while stop != start:
        previous = int(before[stop])
        edge = edge_at[min(previous, stop), max(previous, stop)]
        apart[edge] = not apart[edge]
        stop = previous
