"""Where the messages of a factor graph lie in flat arrays, and which entries they may use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Array, Flags, Ints
from mlestruct.structures.graph import FactorGraph


class MessagePlan(NamedTuple):
    """One message per slot (a variable in a factor's scope); slots in the order of ``scope``."""

    node_start: Ints
    table_start: Ints
    scope_start: Ints
    scope: Ints
    owner: Ints  # the factor of a slot
    place: Ints  # where a slot's message starts
    stride: Ints  # of the slot's state in its factor's table
    start: Ints  # slots around node i are around[start[i]:start[i + 1]]
    around: Ints
    near_start: Ints  # nodes that share a factor with node i are near[near_start[i]:…]
    near: Ints
    open: Flags  # entries that a locally consistent point may use
    counts: Array  # c_α of every factor
    whole: Array  # c_i + Σ c_α of every node


class PairMessages(NamedTuple):
    """The same for graphs of pairs, message by message in the order in which nodes read them."""

    near_start: Ints
    near: Ints
    node_start: Ints
    into: Ints  # where the message starts
    back: Ints  # and the one the other way
    ahead: Ints  # where the neighbour's states start, and how many they are
    others: Ints
    entry: Ints  # the edge's table, entry + row · own state + column · neighbour's
    row: Ints
    column: Ints
    weight: Array  # c_α
    whole: Array
    open: Flags


class BinaryMessages(NamedTuple):
    """The same for binary variables."""

    near_start: Ints
    near: Ints
    opposite: Ints  # the position of the message the other way
    table: Ints  # first entry of the edge's table
    second: Flags  # whether this node is the second of the edge's scope
    weight: Array  # c_α
    whole: Array


def plan(structure: FactorGraph, counting: Array) -> MessagePlan:
    """O(graph)."""
    n, scope, scope_start = structure.n_nodes, structure.scope, structure.scope_start
    cards = structure.cards[scope]
    owner = np.repeat(np.arange(structure.n_factors), np.diff(scope_start))
    count = counting[n:]
    near_start, near = _neighbours(structure)
    return MessagePlan(
        structure.node_start,
        structure.table_start,
        scope_start,
        scope,
        owner,
        np.concatenate([[0], np.cumsum(cards)]),
        _strides(cards, scope_start),
        np.searchsorted(np.sort(scope), np.arange(n + 1)),
        np.argsort(scope, kind="stable"),
        near_start,
        near,
        consistent(structure).astype(np.int8),
        np.ascontiguousarray(count),
        counting[:n] + np.bincount(scope, weights=count[owner], minlength=n),
    )


def special(structure: FactorGraph, full: MessagePlan) -> BinaryMessages | PairMessages | None:
    """The layout of a faster kernel, for graphs of pairs that forbid no pair of states."""
    if len(full.around) == 0 or not structure.is_pairwise or not boxes(structure, full):
        return None
    return _pairs(full) if (structure.cards == 2).all() and full.open.all() else _edges(full)


def boxes(structure: FactorGraph, full: MessagePlan) -> bool:
    """Whether every table is open wherever all its nodes' states are: at most states are fixed."""
    entry, node, _ = structure.below
    shut = np.zeros(structure.size, dtype=bool)
    shut[entry[full.open[node] == 0]] = True
    inside = slice(int(structure.node_start[-1]), None)
    return np.array_equal(full.open[inside] == 0, shut[inside])


def _pairs(full: MessagePlan) -> BinaryMessages:
    position = np.empty(len(full.around), dtype=np.int64)
    position[full.around] = np.arange(len(full.around))
    factor = full.owner[full.around]
    return BinaryMessages(
        full.start,
        full.scope[full.around ^ 1],
        position[full.around ^ 1],
        full.table_start[factor],
        (full.around % 2).astype(np.int8),
        full.counts[factor],
        full.whole,
    )


def _edges(full: MessagePlan) -> PairMessages:
    other, factor = full.around ^ 1, full.owner[full.around]
    near = full.scope[other]
    return PairMessages(
        full.start,
        near,
        full.node_start,
        full.place[full.around],
        full.place[other],
        full.node_start[near],
        np.diff(full.node_start)[near],
        full.table_start[factor] - full.table_start[0],
        full.stride[full.around],
        full.stride[other],
        full.counts[factor],
        full.whole,
        full.open,
    )


def _neighbours(structure: FactorGraph) -> tuple[Ints, Ints]:
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


def _strides(cards: Ints, scope_start: Ints) -> Ints:
    stride = np.ones(len(cards), dtype=np.int64)
    last = np.zeros(len(cards), dtype=bool)
    last[scope_start[1:] - 1] = True
    for s in range(len(cards) - 2, -1, -1):
        stride[s] = 1 if last[s] else stride[s + 1] * cards[s + 1]
    return stride


def consistent(structure: FactorGraph) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Entries left by arc consistency: each agrees with open states, each state is supported."""
    alive = structure.fixed != 0
    alive &= ~structure.closed()
    if alive.all():
        return np.asarray(alive)
    entry, node, slot = structure.below
    width = int(structure.cards.max(initial=1))
    support = slot * width + node - structure.node_start[structure.scope[slot]]
    while True:
        living = np.bincount(support[alive[entry]], minlength=len(structure.scope) * width)
        dying = np.zeros(structure.size, dtype=bool)
        dying[node[living[support] == 0]] = True
        dying[entry[~alive[node]]] = True
        if not (alive & dying).any():
            return np.asarray(alive)
        alive &= ~dying
