"""Sequential tree-reweighted messages (Kolmogorov, PAMI 2006): MAP with a bound, multi-label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.kernels import kernel
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph


class NodeOrder(NamedTuple):
    """Nodes in their order, and for each its edges: entry k is edge k // 2 seen from end k % 2."""

    node_start: Ints
    table_start: Ints
    ends: Ints
    start: Ints
    around: Ints
    message: Ints  # where the message of edge e to its end s starts, at 2 e + s
    gamma: Array  # 1 / the number of monotone chains through a node


@dataclass(frozen=True)
class TRWS:
    """A good labelling of a pairwise graph and a bound on the best one. O(passes · Σ table sizes).

    Not exact: the bound tends to (at best) the value over the local polytope, the labelling is
    rounded and then improved one variable at a time. The difference widens the certificate, which
    stays valid. ``passes`` end early once the bound meets the labelling or improves by less than
    ``tol`` (relative) in ten passes. Batches run in compiled code; releases the GIL.
    """

    passes: int = 200
    tol: float = 1e-6
    polytope: str = HULL
    _plans: dict[Any, NodeOrder] = field(default_factory=dict, repr=False, compare=False)

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            plan = self._plan(structure)
            shut = structure.closed()
            part = np.zeros((len(members), structure.size))
            table = batch.rows(scores, members)
            table = _penalised(table, shut) if shut.any() else np.ascontiguousarray(table)
            best = np.empty(len(members))
            _solve(table, self.passes, self.tol, part, best, *plan)
            broken = np.flatnonzero((part[:, shut] > 0).any(axis=1))
            if len(broken):
                raise _lost(structure, int(members[broken[0]]))
            vertices[batch.index(members)] = part.ravel()
            upper[members] = best
        return vertices, upper

    def _plan(self, structure: FactorGraph) -> NodeOrder:
        key = structure.identity()
        if key not in self._plans:
            self._plans[key] = plan(structure)
        return self._plans[key]


def plan(structure: FactorGraph) -> NodeOrder:
    """Nodes in their own order; every edge belongs to a chain from lower to higher nodes."""
    if not structure.is_pairwise:
        large = int(np.argmax(np.diff(structure.scope_start) != 2))
        raise ValueError(
            f"factor {large} joins {np.diff(structure.scope_start)[large]} variables; TRW-S takes "
            'pairs: try oracle="linear_program" or "cp_sat"'
        )
    n, ends = structure.n_nodes, structure.scope.reshape(-1, 2)
    around = np.argsort(structure.scope, kind="stable")
    start = np.searchsorted(structure.scope[around], np.arange(n + 1))
    later = np.bincount(ends.min(axis=1, initial=n), minlength=n)[:n]
    earlier = np.bincount(ends.max(axis=1, initial=0), minlength=n)[:n]
    sizes = structure.cards[structure.scope]
    message = np.concatenate([[0], np.cumsum(sizes)])
    gamma = 1.0 / np.maximum(np.maximum(later, earlier), 1)
    return NodeOrder(
        structure.node_start, structure.table_start, ends, start, around, message, gamma
    )


def _penalised(table: Array, shut: Any) -> Array:
    """Entries no labelling may use cost more than all others together can give."""
    reach = 1.0 + 2.0 * np.abs(np.where(shut, 0.0, table)).sum(axis=1, keepdims=True)
    return np.where(shut, -reach, table)


def _lost(structure: FactorGraph, m: int) -> ValueError:
    why = structure.impossible()
    if why is not None:
        return Infeasible(f"example {m}: {why}")
    return ValueError(
        f"example {m}: TRW-S found no labelling without forbidden entries, and cannot tell whether "
        'there is one: use oracle="cp_sat" or "linear_program"'
    )


@kernel
def _solve(
    scores: Array, passes: int, tol: float, vertices: Array, upper: Array,
    node_start: Ints, table_start: Ints, ends: Ints, start: Ints, around: Ints, message: Ints,
    gamma: Array,
) -> None:  # fmt: skip
    n, m = len(node_start) - 1, len(ends)
    most = 1
    for v in range(n):
        most = max(most, node_start[v + 1] - node_start[v])
    messages, belief, state = np.empty(message[-1]), np.empty(most), np.empty(n, dtype=np.int64)
    best_state = np.empty(n, dtype=np.int64)
    for k in range(len(scores)):
        score = scores[k]
        messages[:] = 0.0
        bound, reached, mark = np.inf, -np.inf, np.inf
        for turn in range(passes):
            _sweep(
                True, score, messages, belief, state,
                node_start, table_start, ends, start, around, message, gamma,
            )  # fmt: skip
            value = _climb(score, state, belief, node_start, table_start, ends, start, around)
            if value > reached:
                reached = value
                best_state[:] = state
            bound = min(bound, _sweep(
                False, score, messages, belief, state,
                node_start, table_start, ends, start, around, message, gamma,
            ))  # fmt: skip
            if bound - reached <= 1e-12 * (1.0 + abs(bound)):
                break
            if turn % 10 == 9:
                if mark - bound <= tol * (1.0 + abs(bound)):
                    break
                mark = bound
        size = 0.0
        for value in score:
            size += abs(value)
        # every sum has at most a few terms per table, each rounded once at this scale
        upper[k] = max(bound + 2e-16 * size * np.log2(2.0 + n + m) * 4.0, reached)
        for v in range(n):
            vertices[k, node_start[v] + best_state[v]] = 1.0
        for e in range(m):
            i, j = ends[e]
            width = node_start[j + 1] - node_start[j]
            vertices[k, table_start[e] + best_state[i] * width + best_state[j]] = 1.0


@kernel
def _sweep(
    forward: bool, score: Array, messages: Array, belief: Array, state: Ints,
    node_start: Ints, table_start: Ints, ends: Ints, start: Ints, around: Ints, message: Ints,
    gamma: Array,
) -> float:  # fmt: skip
    """One pass of messages along the order or against it; the bound it proves (if complete).

    What a node holds is shared equally by its chains; eliminating it takes its maximum out, and
    each of its edges' maxima, so that the sum taken out bounds every labelling's score. Going
    forward, labels are chosen on the way, given those chosen before.
    """
    n, bound = len(node_start) - 1, 0.0
    for step in range(n):
        v = step if forward else n - 1 - step
        first = node_start[v]
        states = node_start[v + 1] - first
        belief[:states] = score[first : first + states]
        for k in range(start[v], start[v + 1]):
            into = message[around[k]]
            for x in range(states):
                belief[x] += messages[into + x]
        if forward:
            state[v] = _choose(
                v, score, messages, belief, state, node_start, table_start, ends, start, around,
                message,
            )  # fmt: skip
        top = belief[:states].max()
        belief[:states] -= top
        bound += top
        for k in range(start[v], start[v + 1]):
            e, side = around[k] // 2, around[k] % 2
            w = ends[e, 1 - side]
            if (w > v) != forward:
                continue
            into, out = message[2 * e + side], message[2 * e + 1 - side]
            others = node_start[w + 1] - node_start[w]
            peak = -np.inf
            for y in range(others):
                best = -np.inf
                for x in range(states):
                    at = x * others + y if side == 0 else y * states + x
                    value = gamma[v] * belief[x] - messages[into + x] + score[table_start[e] + at]
                    best = max(best, value)
                messages[out + y] = best
                peak = max(peak, best)
            messages[out : out + others] -= peak
            bound += peak
    return bound


@kernel
def _choose(
    v: int, score: Array, messages: Array, belief: Array, state: Ints,
    node_start: Ints, table_start: Ints, ends: Ints, start: Ints, around: Ints, message: Ints,
) -> int:  # fmt: skip
    """The best state given the chosen earlier neighbours and the messages of later ones."""
    states = node_start[v + 1] - node_start[v]
    choice, most = 0, -np.inf
    for x in range(states):
        value = belief[x]
        for k in range(start[v], start[v + 1]):
            e, side = around[k] // 2, around[k] % 2
            w = ends[e, 1 - side]
            if w < v:
                others = node_start[w + 1] - node_start[w]
                at = x * others + state[w] if side == 0 else state[w] * states + x
                value += score[table_start[e] + at] - messages[message[2 * e + side] + x]
        if value > most:
            choice, most = x, value
    return choice


@kernel
def _climb(
    score: Array, state: Ints, gain: Array,
    node_start: Ints, table_start: Ints, ends: Ints, start: Ints, around: Ints,
) -> float:  # fmt: skip
    """Best single changes until there are none; the score reached."""
    n, changed, rounds = len(node_start) - 1, True, 0
    while changed and rounds < 100:
        changed, rounds = False, rounds + 1
        for v in range(n):
            states = node_start[v + 1] - node_start[v]
            for x in range(states):
                gain[x] = score[node_start[v] + x]
            for k in range(start[v], start[v + 1]):
                e, side = around[k] // 2, around[k] % 2
                w = ends[e, 1 - side]
                others = node_start[w + 1] - node_start[w]
                for x in range(states):
                    at = x * others + state[w] if side == 0 else state[w] * states + x
                    gain[x] += score[table_start[e] + at]
            x = int(np.argmax(gain[:states]))
            if gain[x] > gain[state[v]]:
                state[v], changed = x, True
    total = 0.0
    for v in range(n):
        total += score[node_start[v] + state[v]]
    for e in range(len(ends)):
        i, j = ends[e]
        width = node_start[j + 1] - node_start[j]
        total += score[table_start[e] + state[i] * width + state[j]]
    return total
