"""Where the messages of a factor graph lie in flat arrays, and which entries they may use."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from mlestruct.native._door import BinaryMessages, MessageGraph, PairMessages
from mlestruct.structures.base import Array, Ints, Marks
from mlestruct.structures.graph import FactorGraph

EIGHT = 8  # numbers that kernels take together


def plan(structure: FactorGraph, counting: Array) -> MessageGraph:
    """Lay out one message per slot, a variable in a factor's scope, in the order of ``scope``."""
    n, scope, scope_start = structure.n_nodes, structure.scope, structure.scope_start
    owner = np.repeat(np.arange(structure.n_factors), np.diff(scope_start))
    count = counting[n:]
    return MessageGraph(
        n,
        structure.n_factors,
        len(scope),
        structure.node_start,
        structure.table_start,
        scope_start,
        scope,
        owner,
        np.concatenate([[0], np.cumsum(structure.cards[scope])]),
        structure.strides,
        np.searchsorted(np.sort(scope), np.arange(n + 1)),
        np.argsort(scope, kind="stable"),
        *neighbours(structure),
        consistent(structure).astype(np.int8),
        np.ascontiguousarray(count),
        counting[:n] + np.bincount(scope, weights=count[owner], minlength=n),
        counting[structure.table_of],
    )


def special(
    structure: FactorGraph, full: MessageGraph
) -> tuple[PairMessages | None, BinaryMessages | None]:
    """The layout of a faster kernel, for graphs of pairs that forbid no pair of states."""
    if len(full.around) == 0 or not structure.is_pairwise or not boxes(structure, full):
        return None, None
    binary = (structure.cards == 2).all() and full.open.all()
    return (None, _binary(full)) if binary else (_edges(full), None)


def boxes(structure: FactorGraph, full: MessageGraph) -> bool:
    """Whether every table is open wherever all its nodes' states are: at most states are fixed."""
    entry, node, _ = structure.below
    shut = np.zeros(structure.size, dtype=bool)
    shut[entry[full.open[node] == 0]] = True
    inside = slice(int(structure.node_start[-1]), None)
    return np.array_equal(full.open[inside] == 0, shut[inside])


def _binary(full: MessageGraph) -> BinaryMessages:
    other, factor = full.around ^ 1, full.owner[full.around]
    n, degree = len(full.whole), np.diff(full.start)
    order = np.argsort(levels(full.start, full.scope[other]), kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    row = _starts(-(-degree[order] // EIGHT) * EIGHT)
    node = full.scope[full.around]
    at = row[rank[node]] + np.arange(len(node)) - full.start[node]
    place = np.empty(len(node), dtype=np.int64)
    place[full.around] = at
    near_start = _starts(degree[order])

    def padded(values: Any, empty: Any) -> Any:
        out = np.full(row[-1], empty, dtype=np.asarray(values).dtype)
        out[at] = values
        return out

    used = np.argsort(at, kind="stable")
    return BinaryMessages(
        n,
        int(row[-1]),
        near_start,
        rank[full.scope[other[used]]],
        order,
        row,
        padded(rank[full.scope[other]], 0),
        padded(place[other], 0),
        padded(full.place[full.around], -1),
        padded(full.table_start[factor], 0),
        padded((full.around % 2).astype(np.int8), 0),
        padded(full.counts[factor], 0.0),
        full.whole[order],
    )


def levels(start: Ints, near: Ints) -> list[int]:
    """One more than the highest level of the neighbours that come before; a kernel saves less than
    compiling it takes.
    """
    found: list[int] = []
    first, around = start.tolist(), near.tolist()
    for i in range(len(first) - 1):
        before = [found[j] for j in around[first[i] : first[i + 1]] if j < i]
        found.append(1 + max(before, default=-1))
    return found


def _edges(full: MessageGraph) -> PairMessages:
    other, factor = full.around ^ 1, full.owner[full.around]
    cards = np.diff(full.node_start)
    padded = -(-cards // EIGHT) * EIGHT
    sent = np.diff(full.start) * cards  # by each node's messages, one after the other
    begin = _starts(-(-sent // EIGHT) * EIGHT)
    near = full.scope[full.around]
    into = begin[near] + cards[near] * (np.arange(len(near)) - full.start[near])
    position = np.empty(len(other), dtype=np.int64)
    position[full.around] = np.arange(len(other))
    tables = _starts(cards[full.scope[::2]] * padded[full.scope[1::2]])
    return PairMessages(
        len(cards),
        len(tables) - 1,
        len(near),
        full.start,
        full.scope[other],
        cards,
        _starts(padded),
        np.append(into, begin[-1]),
        into[position[other]],
        tables,
        tables[factor],
        (full.around % 2).astype(np.int8),
        full.counts[factor],
        full.whole,
    )


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)])


def neighbours(structure: FactorGraph) -> tuple[Ints, Ints]:
    """Every other node of every factor around a node, by node."""
    order = np.diff(structure.scope_start)
    each = np.repeat(order, order)
    first = np.repeat(structure.scope_start[:-1], order)
    node = np.repeat(structure.scope, each)
    within = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
    near = structure.scope[np.repeat(first, each) + within]
    node, near = node[node != near], near[node != near]
    by_node = np.argsort(node, kind="stable")
    return np.searchsorted(node[by_node], np.arange(structure.n_nodes + 1)), near[by_node]


def consistent(structure: FactorGraph) -> Marks:
    """Entries left by arc consistency."""
    alive = ~structure.closed()
    return alive if alive.all() else deque(structure.thinned(), maxlen=1).pop()
