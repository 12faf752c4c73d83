"""How many labellings of a forest use each entry: the middle of what is possible, in one pass."""

from __future__ import annotations

import numpy as np

from mlestruct.structures.base import Array, Ints, Marks
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.schedule import schedule

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
