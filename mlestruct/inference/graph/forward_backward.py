"""Exact marginals of forests of factors of any order, by one sweep up and one down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.errors import Infeasible
from mlestruct.inference.graph.chains import is_chain, sweep_chains
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.schedule import schedule


class SweepPlan(NamedTuple):
    """A schedule with every entry's parent state first, then its children's: no look-ups."""

    parent: Ints
    arity: Ints
    table_start: Ints
    entries: Ints
    agree_start: Ints
    choice_start: Ints
    agree: Ints
    node_start: Ints
    node_of: Ints


@dataclass(frozen=True)
class ForwardBackward(Routine):
    """log Z and τ of labelled forests under the Bethe entropy, which is exact there.

    O(Σ table sizes · order) per example, batched over the dataset in one compiled call. Chains
    run in the linear domain, and again by the general kernel where that could have underflowed.
    """

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> ForwardBackward | None:
        """Forests with ρ = 1, all of whose nodes count alike."""
        for structure, counting in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not (isinstance(structure, FactorGraph) and structure.is_forest):
                return None
            if structure.weight is not None:
                return None
            if not np.array_equal(counting, structure.counting(1.0)):
                return None
        return cls()

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """Exact log Z and marginals; nothing to keep for the next call."""
        scores = batch.vector(scores, "scores")
        tau, log_z, asked = np.empty(batch.size), np.empty(len(batch)), scores
        for structure, members in batch.groups():
            part, offsets = np.full(len(members), np.nan), batch.offsets[members]
            if is_chain(structure):
                starts, shut = (structure.node_start, structure.table_start), structure.fixed == 0
                if shut.any():
                    asked = scores.copy() if asked is scores else asked
                    asked[offsets[:, None] + np.flatnonzero(shut)] = -np.inf
                sweep_chains(offsets, asked, *starts, tau, part)
            log_z[members] = part
            left = members[~np.isfinite(part)]
            if len(left):
                log_z[left] = self._carefully(structure, batch.offsets[left], scores, tau)
                _refuse_impossible(structure, left, log_z)
        return Beliefs(log_z, tau)

    def _carefully(self, structure: FactorGraph, offsets: Ints, scores: Array, tau: Array) -> Array:
        """Any forest, in the log domain."""
        shut = np.flatnonzero(structure.fixed == 0)
        log_z = np.empty(len(offsets))
        _sweep(offsets, scores, shut, tau, log_z, *_plan(structure))
        return log_z


def _refuse_impossible(structure: FactorGraph, members: Ints, log_z: Array) -> None:
    lost = members[~np.isfinite(log_z[members])]
    if len(lost):
        why = structure.impossible() or "no labelling has a finite score"
        raise Infeasible(f"example {lost[0]}: {why}")


@kept
def _plan(structure: FactorGraph) -> SweepPlan:
    """Reorder the schedule's entries: factor by factor as swept, the parent's state first."""
    given = schedule(structure)
    rows = [np.zeros(0, dtype=np.int64)]
    for f in range(len(given.parent)):
        arity, entries = given.arity[f], given.entries[f]
        start = given.agree_start[f]
        nodes = given.agree[start : start + arity * entries].reshape(entries, arity)
        slot = int(np.flatnonzero(given.node_of[nodes[0]] == given.parent[f])[0])
        rows.append(np.roll(nodes, -slot, axis=1).ravel())
    starts = np.concatenate([[0], np.cumsum(given.entries * given.arity)])[:-1]
    reordered = given._replace(agree=np.concatenate(rows), agree_start=starts.astype(np.int64))
    return SweepPlan(*reordered)


@kernel
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
    value = np.empty(entries.max() if n_factors else 0)  # one factor's entries with its children
    for m in range(len(offsets)):
        first = offsets[m]
        score[:] = scores[first : first + size]
        for k in shut:
            score[k] = -np.inf
        for f in range(n_factors):
            table = agree[agree_start[f] : agree_start[f] + entries[f] * arity[f]]
            _gather(score, table_start[f], arity[f], table, value[: entries[f]])
            shift = choice_start[f] - node_start[parent[f]]
            up = (node_start[parent[f]], node_start[parent[f] + 1])
            _up(value[: entries[f]], up, shift, arity[f], table, score, message)
        log_z[m] = 0.0
        reached[:] = False
        for f in range(n_factors - 1, -1, -1):
            if not reached[parent[f]]:
                log_z[m] += _root(parent[f], score, total, node_start, reached)
            table = agree[agree_start[f] : agree_start[f] + entries[f] * arity[f]]
            _gather(score, table_start[f], arity[f], table, value[: entries[f]])
            shift = choice_start[f] - node_start[parent[f]]
            here = first + table_start[f]
            belief = tau[here : here + entries[f]]
            _down(value[: entries[f]], shift, arity[f], table, message, total, belief)
            _settle(arity[f], table, belief, total, reached, node_start, node_of)
        for v in range(n_nodes):
            if not reached[v]:
                log_z[m] += _root(v, score, total, node_start, reached)
        for k in range(node_start[n_nodes]):
            tau[first + k] = np.exp(total[k])


@kernel
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


@kernel
def _gather(score, start, arity, table, value):
    """Every entry's score with its children's messages."""
    for entry in range(len(value)):
        value[entry] = score[start + entry]
        for i in range(1, arity):
            value[entry] += score[table[entry * arity + i]]


@kernel
def _up(value, parent, shift, arity, table, score, message):
    """Message of a factor to its parent, scaled by its largest entry."""
    top = value.max()
    for k in range(parent[0], parent[1]):
        message[shift + k] = 0.0
    for entry in range(len(value)):
        if top > -np.inf:
            message[shift + table[entry * arity]] += np.exp(value[entry] - top)
    for k in range(parent[0], parent[1]):
        # Below exp(-700) of the largest entry the sum has no digits: take the log sum afresh.
        if message[shift + k] < 1e-280 and top > -np.inf:
            message[shift + k] = _careful(k, value, arity, table)
        else:
            message[shift + k] = top + np.log(message[shift + k])
        score[k] += message[shift + k]


@kernel
def _careful(k, value, arity, table):
    top, mass = -np.inf, 0.0
    for entry in range(len(value)):
        if table[entry * arity] == k:
            top = max(top, value[entry])
    if top == -np.inf:
        return top
    for entry in range(len(value)):
        if table[entry * arity] == k:
            mass += np.exp(value[entry] - top)
    return top + np.log(mass)


@kernel
def _down(value, shift, arity, table, message, total, belief):
    """Beliefs of a factor from its parent's log-marginal."""
    for entry in range(len(value)):
        up = table[entry * arity]
        belief[entry] = 0.0
        if value[entry] > -np.inf and total[up] > -np.inf:
            belief[entry] = np.exp(value[entry] + total[up] - message[shift + up])


@kernel
def _settle(arity, table, belief, total, reached, node_start, node_of):
    """Log-marginals of a factor's children."""
    for i in range(1, arity):
        v = node_of[table[i]]
        reached[v] = True
        total[node_start[v] : node_start[v + 1]] = 0.0
        for entry in range(len(belief)):
            total[table[entry * arity + i]] += belief[entry]
        mass = total[node_start[v] : node_start[v + 1]].sum()
        for k in range(node_start[v], node_start[v + 1]):
            total[k] = np.log(total[k] / mass) if total[k] > 0.0 else -np.inf
