"""Matchings of general graphs by networkx: the reference that others are tested against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, attained, one_by_one
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.matching import Matching


@dataclass(frozen=True)
class NetworkxMatching:
    """The heaviest matching in pure Python. O(n³) per example and slow; holds the GIL."""

    polytope: str = HULL

    def many(self, batch: Batch[Matching], scores: Array) -> Answers:
        return one_by_one(batch, scores, lambda structure: partial(_heaviest, structure))


def _heaviest(structure: Matching, score: Array) -> tuple[Array, float]:
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
        raise Infeasible(f"the largest matching leaves node(s) {single.tolist()} single")
    return vertex, attained(score, vertex)
