"""Where the messages of a factor graph lie in flat arrays, and which entries they may use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Array, Flags, Ints
from mlestruct.structures.graph import FactorGraph


class Plan(NamedTuple):
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
    open: Flags  # entries that a locally consistent point may use
    counts: Array  # c_α of every factor
    whole: Array  # c_i + Σ c_α of every node


class Pairs(NamedTuple):
    """The same for binary pairwise graphs, in the order in which nodes read their messages."""

    start: Ints
    neighbour: Ints
    opposite: Ints  # the position of the message the other way
    table: Ints  # first entry of the edge's table
    second: Flags  # whether this node is the second of the edge's scope
    weight: Array  # c_α


def plan(structure: FactorGraph, counting: Array) -> Plan:
    """O(graph)."""
    n, scope, scope_start = structure.n_nodes, structure.scope, structure.scope_start
    cards = structure.cards[scope]
    owner = np.repeat(np.arange(structure.n_factors), np.diff(scope_start))
    count = counting[n:]
    return Plan(
        structure.node_start,
        structure.table_start,
        scope_start,
        scope,
        owner,
        np.concatenate([[0], np.cumsum(cards)]),
        _strides(cards, scope_start),
        np.searchsorted(np.sort(scope), np.arange(n + 1)),
        np.argsort(scope, kind="stable"),
        consistent(structure).astype(np.int8),
        np.ascontiguousarray(count),
        counting[:n] + np.bincount(scope, weights=count[owner], minlength=n),
    )


def pairs(full: Plan) -> Pairs | None:
    """None unless every variable has two states, every factor two variables, and all are open."""
    n = len(full.node_start) - 1
    binary = (np.diff(full.node_start) == 2).all() and (np.diff(full.scope_start) == 2).all()
    if not binary or not full.open.all() or n == 0:
        return None
    position = np.empty(len(full.around), dtype=np.int64)
    position[full.around] = np.arange(len(full.around))
    factor = full.owner[full.around]
    return Pairs(
        full.start,
        full.scope[full.around ^ 1],
        position[full.around ^ 1],
        full.table_start[factor],
        (full.around % 2).astype(np.int8),
        full.counts[factor],
    )


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
