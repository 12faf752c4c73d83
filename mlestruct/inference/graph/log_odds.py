"""Sum-product on binary pairwise graphs: one log per message and one exp per node.

Odds o and messages r are kept beside their logarithms, so that the odds of a cavity are o / r.
Tables within exp(±RANGE) and odds clipped at exp(±CLIP) keep all that finite, and a clipped cavity
lies so far beyond the table's range that its message has saturated to all digits.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.plan import BinaryMessages
from mlestruct.inference.graph.sweeps import CLIP, RANGE, Sent, move
from mlestruct.kernels import kernel, variant

ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))  # see pair_kernels


@kernel(error_model="numpy")
def begin_pairs(message, odds):
    """What :func:`mlestruct.inference.graph.sweeps.run` works on."""
    r = np.exp(np.minimum(np.maximum(message, -RANGE), RANGE))
    return Sent(message, odds, r, np.exp(np.minimum(np.maximum(odds, -CLIP), CLIP)))


@kernel(error_model="numpy")
def ratios(score, ratio, pairs):
    """Per message (a, b, c, d): its odds are (a + b·o)/(c + d·o) for odds o at the other end.

    Returns the largest range of a table over c_α: beyond RANGE the linear domain is not safe.
    """
    widest = 0.0
    for p in range(len(pairs.table)):
        k, at = pairs.table[p], 4 * p
        top = max(max(score[k], score[k + 1]), max(score[k + 2], score[k + 3]))
        low = min(min(score[k], score[k + 1]), min(score[k + 2], score[k + 3]))
        widest = max(widest, (top - low) / pairs.weight[p])
        corner = np.exp((score[k] - top) / pairs.weight[p])
        right = np.exp((score[k + 1] - top) / pairs.weight[p])
        down = np.exp((score[k + 2] - top) / pairs.weight[p])
        ratio[at + 2] = corner
        ratio[at + 1] = np.exp((score[k + 3] - top) / pairs.weight[p])
        ratio[at + 0] = right if pairs.second[p] else down
        ratio[at + 3] = down if pairs.second[p] else right
    return widest


def _move(i, score, damping, sent, read, gauge, table, kind):
    """As :func:`mlestruct.inference.graph.sweeps.move`; ``table`` from :func:`ratios`."""
    total = score[2 * i + 1] - score[2 * i]
    for p in range(np.uint64(kind.near_start[i]), np.uint64(kind.near_start[i + 1])):
        at = FOUR * p
        ahead, back = np.uint64(kind.near[p]), np.uint64(kind.opposite[p])
        o, r = read.chance[ahead], read.linear[back]  # the cavity's odds are o / r
        fresh = (table[at] * r + table[at + ONE] * o) / (
            table[at + TWO] * r + table[at + THREE] * o
        )
        log = np.log(fresh)
        if damping > 0.0:
            log += damping * (sent.message[p] - log)
            fresh = np.exp(log)
        sent.message[p], sent.linear[p] = log, fresh
        total += kind.weight[p] * log
    total /= kind.whole[i]
    moved = abs(total - sent.belief[i])
    sent.belief[i], sent.chance[i] = total, np.exp(min(max(total, -CLIP), CLIP))
    return moved


@variant(move, error_model="numpy")
def _(i, score, damping, sent, read, gauge, table, kind):
    return _move if getattr(kind, "instance_class", None) is BinaryMessages else None


@kernel(error_model="numpy")
def pair_tables(message, odds, ratio, tau, first, pairs):
    """Beliefs of nodes and edges."""
    for i in range(len(odds)):
        small = np.exp(-abs(odds[i]))
        likely, rare = 1.0 / (1.0 + small), small / (1.0 + small)
        tau[2 * i + 1] = likely if odds[i] > 0.0 else rare
        tau[2 * i] = rare if odds[i] > 0.0 else likely
    for p in range(len(pairs.table)):
        if pairs.second[p]:
            continue
        q = pairs.opposite[p]
        i, j = pairs.near[q], pairs.near[p]
        a, b = odds[i] - message[p], odds[j] - message[q]
        ai, bj = np.exp(-abs(a)), np.exp(-abs(b))
        i0, i1 = (ai, 1.0) if a > 0.0 else (1.0, ai)
        j0, j1 = (bj, 1.0) if b > 0.0 else (1.0, bj)
        k = pairs.table[p]
        tau[k] = ratio[4 * p + 2] * i0 * j0
        tau[k + 1] = ratio[4 * p + 3] * i0 * j1
        tau[k + 2] = ratio[4 * p + 0] * i1 * j0
        tau[k + 3] = ratio[4 * p + 1] * i1 * j1
        mass = tau[k] + tau[k + 1] + tau[k + 2] + tau[k + 3]
        for entry in range(k, k + 4):
            tau[entry] /= mass


@kernel(error_model="numpy")
def from_odds(message, odds, plan):
    """The same messages and beliefs as two logarithms each, the first 0."""
    sent, belief = np.zeros(plan.place[-1]), np.zeros(plan.node_start[-1])
    for p in range(len(plan.around)):
        sent[plan.place[plan.around[p]] + 1] = message[p]
    for i in range(len(plan.whole)):
        belief[2 * i + 1] = odds[i]
    return sent, belief
