"""In which order messages run through a forest, and the middle of its labellings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mlestruct.native._door import ForestShape, forest_marginals
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.graph import FactorGraph

LEAST = 1e-9  # a smaller share of the labellings is no middle


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
    """Each factor from the leaves up with its parent variable, whose states come first."""
    (swept, above), start = forest_order(structure), structure.scope_start
    arity, entries = np.diff(start), np.diff(structure.table_start)
    rank, parent = np.empty((2, len(swept)), dtype=np.int64)
    rank[swept], parent[swept] = np.arange(len(swept)), above
    entry, node, slot = structure.below
    factor_of = structure.table_of[entry] - structure.n_nodes
    slot_of_parent = np.flatnonzero(structure.scope == np.repeat(parent, arity))
    turn = (slot - slot_of_parent[factor_of]) % arity[factor_of]
    agree = node[np.lexsort((turn, entry, rank[factor_of]))]
    starts = np.concatenate([[0], np.cumsum((entries * arity)[swept])])
    choices = np.concatenate([[0], np.cumsum(structure.cards[above])])
    return ForestShape(
        len(swept),
        structure.n_nodes,
        len(agree),
        above,
        arity[swept],
        structure.table_start[swept],
        entries[swept],
        starts[:-1],
        choices,
        agree,
        structure.node_start,
        structure.table_of[: structure.node_start[-1]],
    )


def uniform(structure: FactorGraph) -> Array | None:
    """Every entry's share of the labellings: 0 exactly where none uses it. O(tables · order).

    None where there is no labelling, or where some entry's share is too small to stand for it.
    """
    score = np.where(structure.closed(), -np.inf, 0.0)
    share, log_count = np.empty(structure.size), np.empty(1)
    first = np.zeros(1, dtype=np.int64)
    forest_marginals(forest_shape(structure), 1, first, len(score), score, share, log_count)
    possible = np.isfinite(log_count[0]) and share[share > 0].min() >= LEAST
    return share if possible else None
