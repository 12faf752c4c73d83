"""Max-product on forests of factors of any order: exact MAP, batched over the whole dataset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints
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


@dataclass(frozen=True)
class Viterbi:
    """The best labelling of a forest. O(Σ table sizes · order) per example, GIL released."""

    polytope: str = HULL
    _schedules: dict[Any, Schedule] = field(default_factory=dict, repr=False)

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            plan = self.schedule(structure)
            shut = np.flatnonzero(structure.fixed == 0)
            best = np.empty(len(members))
            _solve(batch.offsets[members], scores, shut, vertices, best, *plan)
            lost = np.flatnonzero(np.isneginf(best))
            if len(lost):
                why = structure.impossible() or "no labelling is possible"
                raise Infeasible(f"example {members[lost[0]]}: {why}")
            upper[members] = best
        return vertices, upper

    def perturbable(self, batch: Batch[FactorGraph]) -> None:
        return None

    def schedule(self, structure: FactorGraph) -> Schedule:
        key = structure.identity()
        if key not in self._schedules:
            self._schedules[key] = schedule(structure)
        return self._schedules[key]


def schedule(structure: FactorGraph) -> Schedule:
    """Breadth-first from one root per component, reversed. O(graph)."""
    if not structure.is_forest:
        raise ValueError(
            "Viterbi needs a graph without cycles (and no two factors sharing two variables)"
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


@nb.njit(cache=True, nogil=True)
def _solve(
    offsets, scores, shut, vertices, best,
    parent, arity, table_start, entries, agree_start, choice_start, agree, node_start, node_of,
):  # fmt: skip
    n_nodes, n_factors = len(node_start) - 1, len(parent)
    size = node_start[n_nodes] + entries.sum()
    score = np.empty(size)
    choice = np.empty(choice_start[n_factors], dtype=np.int64)
    state = np.empty(n_nodes, dtype=np.int64)
    for m in range(len(offsets)):
        score[:] = scores[offsets[m] : offsets[m] + size]
        for k in shut:
            score[k] = -np.inf
        for f in range(n_factors):
            _gather(
                f,
                score,
                choice,
                parent,
                arity,
                table_start,
                entries,
                agree_start,
                choice_start,
                agree,
                node_start,
                node_of,
            )
        best[m] = 0.0
        state[:] = -1
        for f in range(n_factors - 1, -1, -1):
            up = parent[f]
            if state[up] < 0:
                best[m] += _settle(up, score, state, node_start)
            entry = choice[choice_start[f] + state[up]]
            vertices[offsets[m] + table_start[f] + entry] = 1.0
            for i in range(arity[f]):
                node = agree[agree_start[f] + entry * arity[f] + i]
                state[node_of[node]] = node - node_start[node_of[node]]
        for v in range(n_nodes):
            if state[v] < 0:
                best[m] += _settle(v, score, state, node_start)
            vertices[offsets[m] + node_start[v] + state[v]] = 1.0


@nb.njit(cache=True, nogil=True)
def _settle(v, score, state, node_start):
    """A root takes its best state; returns its score, which is its component's."""
    first = node_start[v]
    state[v] = np.argmax(score[first : node_start[v + 1]])
    return score[first + state[v]]


@nb.njit(cache=True, nogil=True)
def _gather(
    f,
    score,
    choice,
    parent,
    arity,
    table_start,
    entries,
    agree_start,
    choice_start,
    agree,
    node_start,
    node_of,
):
    """Add to each parent state the best completion through its factor, and remember which."""
    first, last = node_start[parent[f]], node_start[parent[f] + 1]
    highest = np.full(last - first, -np.inf)
    choice[choice_start[f] : choice_start[f + 1]] = 0
    width = arity[f]
    for entry in range(entries[f]):
        value, up = score[table_start[f] + entry], 0
        for i in range(width):
            node = agree[agree_start[f] + entry * width + i]
            if node_of[node] == parent[f]:
                up = node - first
            else:
                value += score[node]
        if value > highest[up]:
            highest[up] = value
            choice[choice_start[f] + up] = entry
    for k in range(last - first):
        score[first + k] += highest[k]
