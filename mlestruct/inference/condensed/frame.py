"""A factor graph compiled for condensed systems: tables eliminated, variables left.

Unknowns are the changes of every variable's marginals but one state's. A factor's table
follows from those of its variables by a small system of its own, so what couples the graph is
one sparse matrix over variables: 784 unknowns for a binary image of 28 × 28, not 7,616.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mlestruct.inference.condensed.sparse import Pattern, pattern
from mlestruct.structures.base import Ints
from mlestruct.structures.graph import FactorGraph


class Frame(NamedTuple):
    """Where everything lies.

    A factor has a row per state of its first variable, and per state but one of each other
    one: what its table must add up to. Which state is left out is chosen by :func:`condense`.
    """

    node_start: Ints
    table_start: Ints
    scope_start: Ints
    scope: Ints
    free: Ints  # a variable's unknowns are free[i]:free[i + 1]
    row_start: Ints  # a factor's rows
    square: Ints  # where its rows × rows inverse is kept
    before: Ints  # a slot's first row
    entry_state: Ints  # the state of every slot in each table entry
    entry_at: Ints  # where a factor's begin
    node_at: Ints  # values that a variable's unknowns × unknowns add to
    node_map: Ints
    factor_at: Ints  # the same for a factor's
    factor_map: Ints
    pattern: Pattern


def frame(graph: FactorGraph, nodes: Ints | None = None) -> Frame:
    """O(graph) and one symbolic factorisation; ``nodes`` frees only these, the others stay."""
    n, scope, scope_start = graph.n_nodes, graph.scope, graph.scope_start
    order, unknowns = np.diff(scope_start), graph.cards - 1
    if nodes is not None:
        unknowns = np.where(np.isin(np.arange(n), nodes), unknowns, 0)
    free = np.concatenate([[0], np.cumsum(unknowns)])
    blocks = [np.arange(free[i], free[i + 1]) for i in range(n)]
    cliques = [
        np.concatenate([blocks[i] for i in scope[first:last]])
        for first, last in pairwise(scope_start)
    ]
    pairs = [_square(block) for block in (*blocks, *cliques)]
    at = np.concatenate([[0], np.cumsum([len(some) for some in pairs])])
    joined = np.concatenate(pairs)
    found, number = pattern(int(free[-1]), joined)
    maps = np.asarray(number[joined[:, 0], joined[:, 1]]).ravel().astype(np.int64) - 1
    before, counts = _rows(graph)
    _, node, slot = graph.below
    return Frame(
        graph.node_start,
        graph.table_start,
        scope_start,
        scope,
        free,
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([[0], np.cumsum(counts**2)]),
        before,
        node - graph.node_start[scope[slot]],
        np.concatenate([[0], np.cumsum(order * np.diff(graph.table_start))]),
        at[: n + 1],
        maps[: at[n]],
        at[n:] - at[n],
        maps[at[n] :],
        found,
    )


def _square(block: Ints) -> Ints:
    """All ordered pairs."""
    return np.stack([np.repeat(block, len(block)), np.tile(block, len(block))], axis=1)


def _rows(graph: FactorGraph) -> tuple[Ints, Ints]:
    """Where every slot's rows start in its factor, and how many rows each factor has."""
    first, order = graph.scope_start[:-1], np.diff(graph.scope_start)
    rows = graph.cards[graph.scope] - 1
    rows[first] += 1
    before = np.cumsum(rows) - rows
    counts = np.add.reduceat(rows, first) if len(first) else order
    return before - np.repeat(before[first], order), counts
