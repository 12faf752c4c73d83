"""A factor graph compiled for condensed systems: tables eliminated, variables left.

Unknowns are the changes of every variable's marginals but one state's. A factor's table
follows from those of its variables by a small system of its own, so what couples the graph is
one sparse matrix over variables: 784 unknowns for a binary image of 28 × 28, not 7,616.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mlestruct import FactorGraph
from mlestruct.errors import Unserved
from mlestruct.families.fitting.condensed.sparse import pattern
from mlestruct.native._door import CondensedGraph
from mlestruct.structures.base import Ints, kept
from mlestruct.structures.graph import only_graphs


@kept
def frame(graph: FactorGraph) -> CondensedGraph:
    """O(graph) and one symbolic factorisation.

    A factor's table must add up to 1, and for every state but one of each variable to that state's
    marginal: so many rows. Which states are left out is chosen at every step.
    """
    only_graphs([graph], "implicit fitting")
    if (graph.fixed >= 0).any():
        k = int(np.argmax(graph.fixed >= 0))
        raise Unserved(f"coordinate {k} is fixed; implicit fitting takes free graphs")
    n, scope, scope_start = graph.n_nodes, graph.scope, graph.scope_start
    order, unknowns = np.diff(scope_start), graph.cards - 1
    free = _starts(unknowns)
    blocks = [np.arange(free[i], free[i + 1]) for i in range(n)]
    cliques = [
        np.concatenate([blocks[i] for i in scope[first:last]])
        for first, last in pairwise(scope_start)
    ]
    pairs = [
        np.stack([np.repeat(block, len(block)), np.tile(block, len(block))], axis=1)
        for block in (*blocks, *cliques)
    ]
    at = _starts([len(some) for some in pairs])
    joined = np.concatenate(pairs)
    found, number = pattern(int(free[-1]), joined)
    i, j = joined.T
    found_at = number[i, j] if len(i) else np.zeros(0)  # asked of nothing SciPy answers a matrix
    maps = np.asarray(found_at).ravel().astype(np.int64) - 1
    slot_start = _starts(graph.cards[scope])
    rows = 1 + np.add.reduceat(graph.cards[scope] - 1, scope_start[:-1])
    row = _starts(graph.cards[scope] - 1)[:-1]
    row += 1 - np.repeat(row[scope_start[:-1]], order)
    _, node, slot = graph.below
    return CondensedGraph(
        n,
        graph.n_factors,
        found.direct,
        graph.node_start,
        graph.table_start,
        scope_start,
        scope,
        free,
        _starts(rows),
        _starts(rows**2),
        slot_start,
        slot_start[slot] + node - graph.node_start[scope[slot]],
        _starts(order * np.diff(graph.table_start)),
        _starts([len(clique) for clique in cliques]),
        found.position[_joined(cliques)],
        _joined([r + np.arange(unknowns[i]) for r, i in zip(row, scope, strict=True)]),
        at[: n + 1],
        maps[: at[n]],
        at[n:] - at[n],
        maps[at[n] :],
        found.position,
        found.start,
        found.row,
        found.column,
        found.reach_start,
        found.reach,
    )


def _starts(lengths: Sequence[int] | Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
