"""Sum-product on graphs of pairs in the linear domain: one log per message entry, no exp.

Tables within exp(±RANGE) and beliefs clipped at exp(−CLIP) keep all quotients finite, and a
clipped state lies so far below the others that no message feels it.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.kernels import exponentials
from mlestruct.inference.graph.plan import PairMessages
from mlestruct.inference.graph.sweeps import CLIP, RANGE, Sent, move
from mlestruct.kernels import kernel, variant


@kernel(error_model="numpy")
def begin_edges(message, belief, edges):
    """What :func:`mlestruct.inference.graph.sweeps.run` works on; closed states have chance 0."""
    chance = np.exp(np.maximum(belief, -CLIP))
    for k in range(len(chance)):
        if not edges.open[k]:
            chance[k] = 0.0
    return Sent(message, belief, np.exp(np.maximum(message, -RANGE)), chance)


@kernel(error_model="numpy")
def widest_table(score, table, plan):
    """Fills ``table`` with exp(η_α/c_α); returns the largest range of its logs in one factor."""
    exponentials(score, table, plan)
    widest, first = 0.0, plan.table_start[0]
    for k in range(plan.table_start[-1] - first):
        if plan.open[first + k]:
            widest = max(widest, -np.log(table[k])) if table[k] > 0.0 else np.inf
    return widest


def _move(i, score, damping, sent, read, gauge, table, kind):
    """As :func:`.sweeps.move`; offsets, since slices cost as much as a row."""
    first, cards = kind.node_start[i], kind.node_start[i + 1] - kind.node_start[i]
    for k in range(cards):
        gauge[k] = score[first + k]
    for p in range(kind.near_start[i], kind.near_start[i + 1]):
        ahead, back, entry = kind.ahead[p], kind.back[p], kind.entry[p]
        row, column, into = kind.row[p], kind.column[p], kind.into[p]
        others, top = kind.others[p], 0.0
        for x in range(others):
            gauge[cards + x] = read.chance[ahead + x] / read.linear[back + x]
        for k in range(cards):
            mass = 0.0
            for x in range(others):
                mass += table[entry + k * row + x * column] * gauge[cards + x]
            gauge[cards + others + k] = mass
            top = max(top, mass)
        for k in range(cards):
            if kind.open[first + k]:
                linear = gauge[cards + others + k] / top
                fresh = np.log(linear)
                if damping > 0.0:
                    fresh += damping * (sent.message[into + k] - fresh)
                    linear = np.exp(fresh)
                sent.message[into + k], sent.linear[into + k] = fresh, linear
                gauge[k] += kind.weight[p] * fresh
    top, moved = -np.inf, 0.0
    for k in range(cards):
        gauge[k] /= kind.whole[i]
        if kind.open[first + k]:
            top = max(top, gauge[k])
    for k in range(cards):
        if kind.open[first + k]:
            fresh = gauge[k] - top
            moved = max(moved, abs(fresh - sent.belief[first + k]))
            sent.belief[first + k], sent.chance[first + k] = fresh, np.exp(max(fresh, -CLIP))
        else:
            sent.belief[first + k] = -np.inf
    return moved


@variant(move, error_model="numpy", fastmath={"reassoc", "contract"})
def _(i, score, damping, sent, read, gauge, table, kind):
    return _move if getattr(kind, "instance_class", None) is PairMessages else None
