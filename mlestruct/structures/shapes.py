"""Labelled graphs of common shape: chains, trees, grids, skip-chains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mlestruct.structures.base import Ints, as_count
from mlestruct.structures.graph import FactorGraph


def chain(length: int, states: int) -> FactorGraph:
    """A sequence of ``length`` variables, each pair of neighbours a factor."""
    length = as_count(length, "length")
    return tree([(i, i + 1) for i in range(length - 1)], [states] * length)


def tree(edges: Iterable[tuple[int, int]], cards: Sequence[int]) -> FactorGraph:
    """A pairwise graph without cycles."""
    graph = FactorGraph(cards, list(edges))
    if not graph.is_forest:
        raise ValueError("the edges of a tree hold no cycle")
    return graph


def grid(rows: int, columns: int, states: int = 2) -> FactorGraph:
    """A rows × columns grid, node r·columns + c; horizontal edges row by row, then vertical."""
    rows, columns = as_count(rows, "rows"), as_count(columns, "columns")
    node, across, down = grid_edges(rows, columns)
    return FactorGraph([states] * len(node.ravel()), np.concatenate([across, down]))


def grid_edges(rows: int, columns: int) -> tuple[Ints, Ints, Ints]:
    """The nodes of a grid (rows × columns), its edges to the right row by row, and those down."""
    node = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    return node, across, np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)


def skip_chain(length: int, states: int, skips: Iterable[tuple[int, int]]) -> FactorGraph:
    """A chain with extra edges between positions i and j, such as two mentions of one name."""
    length = as_count(length, "length")
    steps = [(i, i + 1) for i in range(length - 1)]
    return FactorGraph([states] * length, [*steps, *skips])
