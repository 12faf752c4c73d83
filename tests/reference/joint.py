"""The scores of all labellings of a small graph, as one table."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, Ints

DIMENSIONS = 32  # NumPy's, before 2.0


def joint_scores(graph: FactorGraph, score: ArrayLike) -> Array:
    """The score of every labelling, as a table with one axis per variable."""
    values = np.asarray(score, dtype=float)
    count = float(np.prod(graph.cards.astype(float)))
    if count > 1 << 24:
        raise ValueError(f"{count:.3g} labellings are too many for a table")
    if graph.n_nodes > DIMENSIONS:
        raise ValueError(f"a table over {graph.n_nodes} variables has too many axes for NumPy")
    joint = np.zeros(tuple(graph.cards))
    for scope, entries in _tables(graph):
        joint += _spread_table(values[entries], scope, graph.cards)
    return joint


def _tables(graph: FactorGraph) -> list[tuple[list[int], slice]]:
    nodes = [
        ([i], slice(int(graph.node_start[i]), int(graph.node_start[i + 1])))
        for i in range(graph.n_nodes)
    ]
    factors = [
        (
            graph.scope[graph.scope_start[f] : graph.scope_start[f + 1]].tolist(),
            slice(int(graph.table_start[f]), int(graph.table_start[f + 1])),
        )
        for f in range(graph.n_factors)
    ]
    return nodes + factors


def _spread_table(table: Array, scope: list[int], cards: Ints) -> Array:
    """A factor's table with its axes in variable order and length 1 elsewhere."""
    shape = np.ones(len(cards), dtype=np.int64)
    shape[scope] = cards[scope]
    return table.reshape(tuple(cards[scope])).transpose(np.argsort(scope)).reshape(tuple(shape))
