"""Matchings of general graphs by networkx: the reference that others are tested against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, attained
from mlestruct.structures.base import Array
from mlestruct.structures.matching import Matching


@dataclass(frozen=True)
class NetworkxMatching:
    """The heaviest matching in pure Python. O(n³) per example and slow; holds the GIL."""

    polytope: str = HULL

    def many(self, batch: Batch[Matching], scores: Array) -> Answers:
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for m in range(len(batch)):
            structure, part = batch.structure(m), batch.coordinates(m)
            vertices[part] = _heaviest(structure, scores[part], m)
            upper[m] = attained(scores[part], vertices[part])
        return vertices, upper

    def perturbable(self, batch: Batch[Matching]) -> None:
        return None


def _heaviest(structure: Matching, score: Array, example: int) -> Array:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(structure.n_nodes))
    for k in np.flatnonzero(structure.fixed < 0).tolist():
        u, v = structure.ends[k].tolist()
        graph.add_edge(u, v, weight=float(score[k]))
    perfect = structure.kind == "perfect"
    pairs = list(networkx.max_weight_matching(graph, maxcardinality=perfect))
    vertex: Array = (structure.fixed == 1).astype(float)
    vertex[structure.graph.index(pairs)] = 1.0
    single = np.flatnonzero(structure.incidence() @ vertex == 0)
    if perfect and len(single):  # networkx returns the largest matching without a word
        why = f"the largest matching leaves node(s) {single.tolist()} single"
        raise Infeasible(f"example {example}: {structure.impossible() or why}")
    return vertex
