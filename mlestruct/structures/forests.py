"""In which order messages run through a forest, and the middle of its labellings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.native._door import ForestShape, forest_labels, forest_marginals
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph

ENTRIES = 1 << 26  # of tables in one native call, which nothing interrupts


@kept
def forest_order(structure: FactorGraph) -> tuple[Ints, Ints]:
    """Factors from the leaves up, and the variable that each of them reports to. O(graph).

    Breadth-first from the last variable of every component, reversed.
    """
    if not structure.is_forest:
        raise ValueError(
            "exact messages need a graph without cycles (and no two factors sharing two variables)"
        )
    touching: list[list[int]] = [[] for _ in range(structure.n_nodes)]
    scope = structure.scope.tolist()
    members = [scope[a:b] for a, b in pairwise(structure.scope_start)]
    for factor, variables in enumerate(members):
        for variable in variables:
            touching[variable].append(factor)
    parent, reached = dict[int, int](), set[int]()
    for root in reversed(range(structure.n_nodes)):
        queue = [] if root in reached else [root]
        for variable in queue:
            reached.add(variable)
            for factor in touching[variable]:
                if factor not in parent:
                    parent[factor] = variable
                    queue.extend(v for v in members[factor] if v != variable)
    found = np.array([*parent.items()], dtype=np.int64).reshape(-1, 2)[::-1]
    return found[:, 0].copy(), found[:, 1].copy()


@kept
def forest_shape(structure: FactorGraph) -> ForestShape:
    """Return the structure as the kernels of forests read it."""
    g, order = structure, forest_order(structure)
    starts = g.node_start, g.table_start, g.scope_start, g.scope
    return ForestShape(g.n_nodes, g.n_factors, *starts, *order)


def sweep(batch: Batch[FactorGraph], scores: Array, out: Array, best: bool) -> Array:
    """Write marginals, or the best labellings, to ``out``; return log Z, or the best scores.

    Coordinates that are fixed to 0 score −∞.
    """
    kernel, value, asked = forest_labels if best else forest_marginals, np.empty(len(batch)), scores
    for structure, members in batch.groups():
        closed = np.flatnonzero(structure.fixed == 0)
        if len(closed):
            asked = scores.copy() if asked is scores else asked
            asked[batch.offsets[members][:, None] + closed] = -np.inf
        found, together = np.empty(len(members)), max(1, ENTRIES // structure.size)
        for start in range(0, len(members), together):
            some = slice(start, start + together)
            at, part = batch.offsets[members[some]], found[some]
            kernel(forest_shape(structure), len(at), at, len(asked), asked, out, part)
        lost = np.flatnonzero(~np.isfinite(found))
        if len(lost):
            why = structure.impossible() or "no labelling has a finite score"
            raise Infeasible(f"example {members[lost[0]]}: {why}")
        value[members] = found
    return value
