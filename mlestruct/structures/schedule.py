"""In which order messages run through a forest: leaves first, back from the roots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Ints, kept
from mlestruct.structures.graph import FactorGraph


class Schedule(NamedTuple):
    """Factors from the leaves up, each with its parent variable and where its entries lie."""

    parent: Ints  # the variable each factor reports to
    arity: Ints
    table_start: Ints
    entries: Ints
    agree_start: Ints  # where a factor's entries start in ``agree``
    choice_start: Ints  # where its best entry per parent state is kept
    agree: Ints  # node coordinates of every entry, ``arity`` per entry
    node_start: Ints
    node_of: Ints  # the variable of a node coordinate


@kept
def schedule(structure: FactorGraph) -> Schedule:
    """Breadth-first from one root per component, reversed. O(graph)."""
    if not structure.is_forest:
        raise ValueError(
            "exact messages need a graph without cycles (and no two factors sharing two variables)"
        )
    touching: list[list[int]] = [[] for _ in range(structure.n_nodes)]
    start, scope = structure.scope_start.tolist(), structure.scope.tolist()
    for factor in range(structure.n_factors):
        for variable in scope[start[factor] : start[factor + 1]]:
            touching[variable].append(factor)
    found, parent = [], np.zeros(structure.n_factors, dtype=np.int64)
    seen_node, seen_factor = [False] * structure.n_nodes, [False] * structure.n_factors
    for root in range(structure.n_nodes):
        queue = [] if seen_node[root] else [root]
        seen_node[root] = True
        for variable in queue:
            for factor in touching[variable]:
                if seen_factor[factor]:
                    continue
                seen_factor[factor] = True
                found.append(factor)
                members = scope[start[factor] : start[factor + 1]]
                parent[factor] = variable
                fresh = [v for v in members if not seen_node[v]]
                for v in fresh:
                    seen_node[v] = True
                queue.extend(fresh)
    order = np.array(found[::-1], dtype=np.int64)
    _, agree, _ = structure.below
    arity, entries = np.diff(structure.scope_start), np.diff(structure.table_start)
    agree_start = np.concatenate([[0], np.cumsum(entries * arity)])
    return Schedule(
        parent[order],
        arity[order],
        structure.table_start[order],
        entries[order],
        agree_start[order],
        np.concatenate([[0], np.cumsum(structure.cards[parent[order]])]),
        agree,
        structure.node_start,
        structure.table_of[: structure.node_start[-1]],
    )
