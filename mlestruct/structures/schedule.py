"""In which order messages run through a forest, and how many labellings use each entry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.structures.base import Array, Ints, Marks, kept
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


LEAST = 1e-9  # a smaller share of the labellings is no middle


def uniform(structure: FactorGraph) -> Array | None:
    """Every entry's share of the labellings: 0 exactly where none uses it. O(tables · order).

    None where there is no labelling, or where some entry's share is too small to stand for it.
    """
    plan = schedule(structure)
    score = np.where(structure.closed(), -np.inf, 0.0)
    values: list[tuple[int, Ints, Marks, Array]] = []
    for f, parent in enumerate(plan.parent):
        size = plan.arity[f] * plan.entries[f]
        agree = plan.agree[plan.agree_start[f] : plan.agree_start[f] + size]
        nodes = agree.reshape(-1, plan.arity[f])
        up = plan.node_of[nodes] == parent
        value = score[plan.table_start[f] : plan.table_start[f] + plan.entries[f]]
        value = value + np.where(up, 0.0, score[nodes]).sum(axis=1)
        message = _log_sums(value, nodes[up], score.size)
        reached = np.unique(nodes[up])
        score[reached] += message[reached]
        with np.errstate(invalid="ignore"):  # −∞ − −∞ where nothing is possible
            values.append((f, nodes, up, value - message[nodes[up]]))
    log = np.full(structure.size, -np.inf)
    total = np.full(structure.node_start[-1], np.nan)
    for f, nodes, up, value in reversed(values):
        _root(plan.parent[f], structure, score, total)
        share = np.where(np.isnan(value), -np.inf, value) + total[nodes[up]]
        log[plan.table_start[f] : plan.table_start[f] + len(share)] = share
        for child in np.unique(plan.node_of[nodes[~up]]):
            first, last = structure.node_start[child], structure.node_start[child + 1]
            place = nodes[plan.node_of[nodes] == child]
            with np.errstate(divide="ignore"):
                total[first:last] = np.log(np.bincount(place - first, np.exp(share), last - first))
    for v in range(structure.n_nodes):
        _root(v, structure, score, total)
    log[: len(total)] = total
    possible = np.maximum.reduceat(total, structure.node_start[:-1]) > -np.inf
    some = log[log > -np.inf]
    return np.exp(log) if possible.all() and some.min() >= np.log(LEAST) else None


def _log_sums(value: Array, place: Ints, size: int) -> Array:
    """log Σ exp of the values at each place; −∞ where there is none."""
    top = np.full(size, -np.inf)
    np.maximum.at(top, place, value)
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.bincount(place, np.exp(value - safe[place]), size)) + safe)


def _root(v: int, structure: FactorGraph, score: Array, total: Array) -> None:
    """A variable that no factor has reached is its component's root."""
    here = slice(structure.node_start[v], structure.node_start[v + 1])
    if np.isnan(total[here]).any():
        mass = np.logaddexp.reduce(score[here])
        total[here] = score[here] - mass if mass > -np.inf else -np.inf
