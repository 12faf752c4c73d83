"""The best source-to-sink path of a DAG, by one sweep in topological order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.kernels import kernel
from mlestruct.oracle import HULL, Answers, one_by_one
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.paths import Paths


@dataclass(frozen=True)
class ShortestPath:
    """The heaviest path, scores of any sign. O(arcs) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[Paths], scores: Array) -> Answers:
        return one_by_one(batch, scores, lambda paths: partial(_heaviest, paths))


def _heaviest(paths: Paths, score: Array) -> tuple[Array, float]:
    vertex = np.zeros(paths.size)
    if not _solve(score, paths.arcs, paths.usable, paths.source, paths.sink, vertex):
        raise Infeasible("no path is allowed")
    return vertex, float(score[vertex != 0].sum())


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
