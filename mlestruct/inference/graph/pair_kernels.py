"""Sum-product on graphs of pairs in the linear domain: one log per message entry, no exp.

Tables within exp(±RANGE) and beliefs clipped at exp(−CLIP) keep all quotients finite, and a
clipped state lies so far below the others that no message feels it.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.exponents import exponentiate, take_logs
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


ZERO, ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(5))


# Offsets in loops are unsigned: signed ones are tested for counting from the end, one by one.
@kernel(error_model="numpy", forceinline=True)
def _sums(p, mass, own, read, gauge, table, kind):
    """The message at position p into ``gauge[mass:]``, the largest entry 1."""
    others = np.uint64(kind.others[p])
    ahead, back = np.uint64(kind.ahead[p]), np.uint64(kind.back[p])
    row, column = np.uint64(kind.row[p]), np.uint64(kind.column[p])
    cavity, fours = np.uint64(len(gauge)) - others, own - own % FOUR
    for x in range(others):
        gauge[cavity + x] = read.chance[ahead + x] / read.linear[back + x]
    entry = np.uint64(kind.entry[p])
    for k in range(ZERO, fours, FOUR):  # four sums at a time, which do not wait for each other
        a, b, c, d, at = 0.0, 0.0, 0.0, 0.0, entry
        for x in range(others):
            v = gauge[cavity + x]
            a += table[at] * v
            b += table[at + row] * v
            c += table[at + TWO * row] * v
            d += table[at + THREE * row] * v
            at += column
        gauge[mass + k], gauge[mass + k + ONE] = a, b
        gauge[mass + k + TWO], gauge[mass + k + THREE] = c, d
        entry += FOUR * row
    for k in range(fours, own):
        a, at = 0.0, entry
        for x in range(others):
            a += table[at] * gauge[cavity + x]
            at += column
        gauge[mass + k] = a
        entry += row
    top = 0.0
    for k in range(own):
        top = max(top, gauge[mass + k])
    for k in range(own):
        gauge[mass + k] /= top


def _move(i, score, damping, sent, read, gauge, table, kind):
    """As :func:`.sweeps.move`; offsets, since slices cost as much as a row."""
    first, begin = np.uint64(kind.node_start[i]), np.uint64(kind.near_start[i])
    own = np.uint64(kind.node_start[i + 1]) - first
    end, total = np.uint64(kind.near_start[i + 1]), np.uint64(0)
    for p in range(begin, end):
        _sums(p, total, own, read, gauge, table, kind)
        total += own
    for k in range(own):
        gauge[total + k] = score[first + k]
        if not kind.open[first + k]:
            for p in range(end - begin):
                gauge[p * own + k] = 1.0  # a state that is closed sends nothing and changes nothing
    mass = np.uint64(0)
    for p in range(begin, end):
        into = np.uint64(kind.into[p])
        for k in range(own):
            sent.linear[into + k] = gauge[mass + k]
        mass += own
    take_logs(gauge, 0, total)
    if damping > 0.0:
        _damp(damping, begin, end, own, sent, gauge, kind)
    mass = np.uint64(0)
    for p in range(begin, end):
        into, weight = np.uint64(kind.into[p]), kind.weight[p]
        for k in range(own):
            sent.message[into + k] = gauge[mass + k]
            gauge[total + k] += weight * gauge[mass + k]
        mass += own
    return _believe(first, own, total, kind.whole[i], sent, gauge, kind)


@kernel(error_model="numpy", forceinline=True)
def _damp(damping, begin, end, own, sent, gauge, kind):
    """Logs of messages in ``gauge`` nearer to the last ones."""
    mass = np.uint64(0)
    for p in range(begin, end):
        into = np.uint64(kind.into[p])
        for k in range(own):
            gauge[mass + k] += damping * (sent.message[into + k] - gauge[mass + k])
            sent.linear[into + k] = gauge[mass + k]
        exponentiate(sent.linear, into, into + own)
        mass += own


@kernel(error_model="numpy", forceinline=True)
def _believe(first, own, total, whole, sent, gauge, kind):
    """The node's log-belief and chances from the sums in ``gauge[total:]``; how far it moved."""
    top, moved = -np.inf, 0.0
    for k in range(own):
        gauge[total + k] /= whole
        if kind.open[first + k]:
            top = max(top, gauge[total + k])
    for k in range(own):
        if kind.open[first + k]:
            fresh = gauge[total + k] - top
            moved = max(moved, abs(fresh - sent.belief[first + k]))
            sent.belief[first + k], gauge[total + k] = fresh, max(fresh, -CLIP)
        else:
            sent.belief[first + k] = gauge[total + k] = -np.inf
    for k in range(own):
        sent.chance[first + k] = gauge[total + k]
    exponentiate(sent.chance, first, first + own)
    return moved


@variant(move, error_model="numpy", fastmath={"reassoc", "contract"})
def _(i, score, damping, sent, read, gauge, table, kind):
    return _move if getattr(kind, "instance_class", None) is PairMessages else None
