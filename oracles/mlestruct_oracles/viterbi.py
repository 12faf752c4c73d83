"""Max-product on forests of factors of any order: exact MAP, batched over the whole dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.kernels import kernel
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.schedule import schedule


@dataclass(frozen=True)
class Viterbi:
    """The best labelling of a forest. O(Σ table sizes · order) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            shut = np.flatnonzero(structure.fixed == 0)
            best = np.empty(len(members))
            _solve(batch.offsets[members], scores, shut, vertices, best, *schedule(structure))
            lost = np.flatnonzero(np.isneginf(best))
            if len(lost):
                why = structure.impossible() or "no labelling is possible"
                raise Infeasible(f"example {members[lost[0]]}: {why}")
            upper[members] = best
        return vertices, upper


@kernel(unrolled=True)
def _solve(
    offsets: Ints, scores: Array, shut: Ints, vertices: Array, best: Array,
    parent: Ints, arity: Ints, table_start: Ints, entries: Ints, agree_start: Ints,
    choice_start: Ints, agree: Ints, node_start: Ints, node_of: Ints,
) -> None:  # fmt: skip
    n_nodes, n_factors = len(node_start) - 1, len(parent)
    size = node_start[n_nodes]
    for f in range(n_factors):
        size += entries[f]
    score = np.empty(size)
    choice = np.empty(choice_start[n_factors], dtype=np.int64)
    state = np.empty(n_nodes, dtype=np.int64)
    for m in range(len(offsets)):
        for k in range(size):
            score[k] = scores[offsets[m] + k]
        for k in shut:
            score[k] = -np.inf
        for f in range(n_factors):
            _gather(
                f, score, choice, parent, arity, table_start, entries, agree_start,
                choice_start, agree, node_start, node_of,
            )  # fmt: skip
        best[m] = 0.0
        state[:] = -1
        for f in range(n_factors - 1, -1, -1):
            up = parent[f]
            if state[up] < 0:
                best[m] += _root_state(up, score, state, node_start)
            entry = choice[choice_start[f] + state[up]]
            vertices[offsets[m] + table_start[f] + entry] = 1.0
            for i in range(arity[f]):
                node = agree[agree_start[f] + entry * arity[f] + i]
                state[node_of[node]] = node - node_start[node_of[node]]
        for v in range(n_nodes):
            if state[v] < 0:
                best[m] += _root_state(v, score, state, node_start)
            vertices[offsets[m] + node_start[v] + state[v]] = 1.0


@kernel
def _root_state(v: int, score: Array, state: Ints, node_start: Ints) -> float:
    """A root takes its best state; returns its score, which is its component's."""
    first = node_start[v]
    state[v] = 0
    for k in range(1, node_start[v + 1] - first):
        if score[first + k] > score[first + state[v]]:
            state[v] = k
    return score[first + state[v]]


@kernel
def _gather(
    f: int, score: Array, choice: Ints,
    parent: Ints, arity: Ints, table_start: Ints, entries: Ints, agree_start: Ints,
    choice_start: Ints, agree: Ints, node_start: Ints, node_of: Ints,
) -> None:  # fmt: skip
    """Add to each parent state the best completion through its factor, and remember which."""
    first, last = node_start[parent[f]], node_start[parent[f] + 1]
    highest = np.empty(last - first)
    highest[:] = -np.inf
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
