"""Exact marginals of forests of factors of any order, by one sweep up and one down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba as nb
import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.errors import Infeasible
from mlestruct.inference.messages import Beliefs
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.schedule import Schedule, schedule


@dataclass(frozen=True)
class ForwardBackward:
    """log Z and τ of labelled forests under the Bethe entropy, which is exact there.

    O(Σ table sizes · order) per example, batched over the dataset in one compiled call.
    """

    _schedules: dict[Any, Schedule] = field(default_factory=dict, repr=False)

    @classmethod
    def serve(cls, entropy: Entropy) -> ForwardBackward | None:
        """Forests with ρ = 1."""
        for structure, counting in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not (isinstance(structure, FactorGraph) and structure.is_forest):
                return None
            if not np.array_equal(counting, structure.counting(1.0)):
                return None
        return cls()

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """Exact log Z and marginals; nothing to keep for the next call."""
        tau, log_z = np.zeros(batch.size), np.zeros(len(batch))
        for structure, members in batch.groups():
            key = structure.identity()
            if key not in self._schedules:
                self._schedules[key] = schedule(structure)
            shut = np.flatnonzero(structure.fixed == 0)
            part = np.empty(len(members))
            _sweep(batch.offsets[members], scores, shut, tau, part, *self._schedules[key])
            lost = np.flatnonzero(~np.isfinite(part))
            if len(lost):
                why = structure.impossible() or "no labelling has a finite score"
                raise Infeasible(f"example {members[lost[0]]}: {why}")
            log_z[members] = part
        return Beliefs(log_z, tau)


@nb.njit(cache=True, nogil=True)
def _sweep(
    offsets, scores, shut, tau, log_z,
    parent, arity, table_start, entries, agree_start, choice_start, agree, node_start, node_of,
):  # fmt: skip
    n_nodes, n_factors = len(node_start) - 1, len(parent)
    size = node_start[n_nodes] + entries.sum()
    score = np.empty(size)  # node entries grow into what reaches them from below
    total = np.empty(node_start[n_nodes])  # log-marginals of nodes
    message = np.empty(choice_start[n_factors])
    reached = np.empty(n_nodes, dtype=np.bool_)
    for m in range(len(offsets)):
        first = offsets[m]
        score[:] = scores[first : first + size]
        for k in shut:
            score[k] = -np.inf
        for f in range(n_factors):
            _up(f, score, message, parent, arity, table_start, entries, agree_start, choice_start, agree, node_start, node_of)  # fmt: skip
        log_z[m] = 0.0
        reached[:] = False
        for f in range(n_factors - 1, -1, -1):
            if not reached[parent[f]]:
                log_z[m] += _root(parent[f], score, total, node_start, reached)
            _down(f, first, score, total, message, tau, reached, parent, arity, table_start, entries, agree_start, choice_start, agree, node_start, node_of)  # fmt: skip
        for v in range(n_nodes):
            if not reached[v]:
                log_z[m] += _root(v, score, total, node_start, reached)
        for k in range(node_start[n_nodes]):
            tau[first + k] = np.exp(total[k])


@nb.njit(cache=True, nogil=True)
def _root(v, score, total, node_start, reached):
    """Normalise a root's belief; its normaliser is its component's log Z."""
    first, last = node_start[v], node_start[v + 1]
    top = score[first:last].max()
    mass = 0.0
    for k in range(first, last):
        mass += np.exp(score[k] - top)
    norm = top + np.log(mass)
    for k in range(first, last):
        total[k] = score[k] - norm
    reached[v] = True
    return norm


@nb.njit(cache=True, nogil=True)
def _entry(f, entry, score, parent, arity, table_start, agree_start, agree, node_of):
    """An entry's score with its children's messages, and the parent state it agrees with."""
    value, up = score[table_start[f] + entry], 0
    for i in range(arity[f]):
        node = agree[agree_start[f] + entry * arity[f] + i]
        if node_of[node] == parent[f]:
            up = node
        else:
            value += score[node]
    return value, up


@nb.njit(cache=True, nogil=True)
def _up(f, score, message, parent, arity, table_start, entries, agree_start, choice_start, agree, node_start, node_of):  # fmt: skip
    """Message of a factor to its parent, scaled by its largest entry."""
    first, last = node_start[parent[f]], node_start[parent[f] + 1]
    shift = choice_start[f] - first
    top = -np.inf
    for entry in range(entries[f]):
        value, _ = _entry(f, entry, score, parent, arity, table_start, agree_start, agree, node_of)
        top = max(top, value)
    for k in range(first, last):
        message[shift + k] = 0.0
    for entry in range(entries[f]):
        value, up = _entry(f, entry, score, parent, arity, table_start, agree_start, agree, node_of)
        message[shift + up] += np.exp(value - top) if top > -np.inf else 0.0
    for k in range(first, last):
        # Below exp(-700) of the largest entry the sum has no digits: take the log sum afresh.
        if message[shift + k] < 1e-280 and top > -np.inf:
            message[shift + k] = _careful(f, k, score, parent, arity, table_start, entries, agree_start, agree, node_of)  # fmt: skip
        else:
            message[shift + k] = top + np.log(message[shift + k])
        score[k] += message[shift + k]


@nb.njit(cache=True, nogil=True)
def _careful(f, k, score, parent, arity, table_start, entries, agree_start, agree, node_of):
    top = -np.inf
    for entry in range(entries[f]):
        value, up = _entry(f, entry, score, parent, arity, table_start, agree_start, agree, node_of)
        if up == k:
            top = max(top, value)
    if top == -np.inf:
        return top
    mass = 0.0
    for entry in range(entries[f]):
        value, up = _entry(f, entry, score, parent, arity, table_start, agree_start, agree, node_of)
        if up == k:
            mass += np.exp(value - top)
    return top + np.log(mass)


@nb.njit(cache=True, nogil=True)
def _down(f, first, score, total, message, tau, reached, parent, arity, table_start, entries, agree_start, choice_start, agree, node_start, node_of):  # fmt: skip
    """Beliefs of a factor from its parent's log-marginal, and its children's log-marginals."""
    shift = choice_start[f] - node_start[parent[f]]
    for entry in range(entries[f]):
        value, up = _entry(f, entry, score, parent, arity, table_start, agree_start, agree, node_of)
        belief = 0.0
        if value > -np.inf and total[up] > -np.inf:
            belief = np.exp(value + total[up] - message[shift + up])
        tau[first + table_start[f] + entry] = belief
    for i in range(arity[f]):
        v = node_of[agree[agree_start[f] + i]]
        if v == parent[f]:
            continue
        reached[v] = True
        for k in range(node_start[v], node_start[v + 1]):
            total[k] = 0.0
        for entry in range(entries[f]):
            node = agree[agree_start[f] + entry * arity[f] + i]
            total[node] += tau[first + table_start[f] + entry]
        mass = 0.0
        for k in range(node_start[v], node_start[v + 1]):
            mass += total[k]
        for k in range(node_start[v], node_start[v + 1]):
            total[k] = np.log(total[k] / mass) if total[k] > 0.0 else -np.inf
