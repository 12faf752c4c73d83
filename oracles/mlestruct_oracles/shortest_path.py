"""The best source-to-sink path of a DAG, by one sweep in topological order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.kernels import kernel
from mlestruct.oracle import HULL, Answers, pin
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.paths import Paths


@dataclass(frozen=True)
class ShortestPath:
    """The heaviest path, scores of any sign. O(arcs) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[Paths], scores: Array) -> Answers:
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            by_rank = _arcs_in_order(structure)
            pinned = (structure.fixed >= 0).any()
            for m in members:
                part = batch.coordinates(int(m))
                score = pin(structure, scores[part]) if pinned else scores[part]
                answer = vertices[part]
                if not _solve(
                    score, structure.arcs, by_rank, structure.source, structure.sink, answer
                ):
                    raise Infeasible(f"example {m}: {structure.impossible()}")
                if pinned and not structure.contains(answer):
                    raise Infeasible(f"example {m}: {structure.impossible()}")
                upper[m] = scores[part][answer != 0].sum()
        return vertices, upper

    def perturbable(self, batch: Batch[Paths]) -> None:
        return None


def _arcs_in_order(structure: Paths) -> Ints:
    rank = np.empty(structure.n_nodes, dtype=np.int64)
    rank[structure.order] = np.arange(structure.n_nodes)
    return np.argsort(rank[structure.arcs[:, 0]], kind="stable").astype(np.int64)


@kernel
def _solve(score: Array, arcs: Ints, order: Ints, source: int, sink: int, answer: Array) -> bool:
    n = max(arcs.max(), source, sink) + 1
    best = np.full(n, -np.inf)
    came = np.full(n, -1, dtype=np.int64)
    best[source] = 0.0
    for e in order:
        tail, head = arcs[e, 0], arcs[e, 1]
        if best[tail] > -np.inf and best[tail] + score[e] > best[head]:
            best[head] = best[tail] + score[e]
            came[head] = e
    if came[sink] < 0:
        return False
    node = sink
    while node != source:
        answer[came[node]] = 1.0
        node = arcs[came[node], 0]
    return True
