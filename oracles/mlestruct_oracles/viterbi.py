"""Max-product on forests of factors of any order: exact MAP, batched over the whole dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.forests import forest_order
from mlestruct.structures.graph import FactorGraph
from mlestruct_oracles.native._door import FactorForest, viterbi_solve

ENTRIES = 1 << 26  # of tables in one native call, which nothing interrupts


@dataclass(frozen=True)
class Viterbi:
    """The best labelling of a forest. O(Σ table sizes · order) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            forest, best = _forest(structure), np.empty(len(members))
            together = max(1, ENTRIES // structure.size)
            for start in range(0, len(members), together):
                some = slice(start, start + together)
                offsets = batch.offsets[members[some]]
                viterbi_solve(
                    forest, len(offsets), offsets, batch.size, scores, vertices, best[some]
                )
            lost = np.flatnonzero(np.isneginf(best))
            if len(lost):
                why = structure.impossible() or "no labelling is possible"
                raise Infeasible(f"example {members[lost[0]]}: {why}")
            upper[members] = best
        return vertices, upper


@kept
def _forest(structure: FactorGraph) -> FactorForest:
    """The structure as the kernel reads it. O(graph)."""
    factors, shut = structure.n_factors, np.flatnonzero(structure.fixed == 0)
    starts = structure.node_start, structure.scope_start, structure.scope, structure.table_start
    order = forest_order(structure)
    return FactorForest(structure.n_nodes, factors, len(shut), *starts, shut, *order)
