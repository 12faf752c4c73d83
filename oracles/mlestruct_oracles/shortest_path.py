"""The best source-to-sink path of a DAG, by one sweep in topological order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.networks import Paths
from mlestruct_oracles.native._door import AcyclicGraph, shortest_path_solve


@dataclass(frozen=True)
class ShortestPath:
    """The heaviest path, scores of any sign. O(arcs) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[Paths], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for paths, members in batch.groups():
            graph, best = _graph(paths), np.empty(len(members))
            given = len(members), batch.offsets[members], batch.size, scores
            lost = shortest_path_solve(graph, *given, vertices, best)
            if lost >= 0:
                why = paths.impossible() or "no path is allowed"
                raise Infeasible(f"example {members[lost]}: {why}")
            upper[members] = best
        return vertices, upper


@kept
def _graph(paths: Paths) -> AcyclicGraph:
    order = paths.usable
    sizes = paths.n_nodes, len(paths.arcs), len(order)
    return AcyclicGraph(*sizes, paths.source, paths.sink, np.ascontiguousarray(paths.arcs), order)
