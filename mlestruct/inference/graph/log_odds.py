"""Sum-product on binary pairwise graphs: one log per message and one exp per node.

Odds o and messages r are kept beside their logarithms, so that the odds of a cavity are o / r.
Tables within exp(±RANGE) and odds clipped at exp(±CLIP) keep all that finite, and a clipped cavity
lies so far beyond the table's range that its message has saturated to all digits. All messages
into a node are worked out together.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.exponents import exponential, logarithm
from mlestruct.inference.graph.plan import BinaryMessages
from mlestruct.inference.graph.sweeps import CLIP, RANGE, Sent, move
from mlestruct.kernels import class_of, kernel, variant
from mlestruct.lanes import EIGHT, Row, add, alone, rows


@kernel(error_model="numpy")
def begin_pairs(score, message, odds, pairs):
    """What :func:`mlestruct.inference.graph.sweeps.run` works on."""
    n, room = len(pairs.whole), len(pairs.outside)
    field, log, chance = np.empty(n), np.empty(n), np.empty(n)
    logs, linear = np.zeros(room), np.ones(room)
    for i in range(n):
        node = pairs.order[i]
        field[i], log[i] = score[2 * node + 1] - score[2 * node], odds[node]
        chance[i] = np.exp(min(max(odds[node], -CLIP), CLIP))
        for p in range(pairs.row[i], pairs.row[i + 1]):
            if pairs.outside[p] >= 0:
                logs[p] = min(max(message[pairs.outside[p]], -RANGE), RANGE)
                linear[p] = np.exp(logs[p])
    return field, Sent(logs, log, linear, chance)


@kernel(error_model="numpy")
def end_pairs(sent, message, odds, pairs):
    """Messages and beliefs in the order of nodes."""
    for i in range(len(pairs.whole)):
        odds[pairs.order[i]] = sent.belief[i]
        for p in range(pairs.row[i], pairs.row[i + 1]):
            if pairs.outside[p] >= 0:
                message[pairs.outside[p]] = sent.message[p]


@kernel(error_model="numpy")
def ratios(score, pairs):
    """Per message (a, b, c, d), eight of each in turn: its odds are (a + b·o)/(c + d·o) for odds o
    at the other end; and the largest range of a table over c_α, which must not exceed RANGE.
    """
    widest, ratio = 0.0, np.ones(4 * len(pairs.outside))
    for p in range(len(pairs.outside)):
        if pairs.outside[p] < 0:
            continue
        k, at = pairs.table[p], p // 8 * 32 + p % 8
        top = max(max(score[k], score[k + 1]), max(score[k + 2], score[k + 3]))
        low = min(min(score[k], score[k + 1]), min(score[k + 2], score[k + 3]))
        widest = max(widest, (top - low) / pairs.weight[p])
        right = np.exp((score[k + 1] - top) / pairs.weight[p])
        down = np.exp((score[k + 2] - top) / pairs.weight[p])
        ratio[at] = right if pairs.second[p] else down
        ratio[at + 8] = np.exp((score[k + 3] - top) / pairs.weight[p])
        ratio[at + 16] = np.exp((score[k] - top) / pairs.weight[p])
        ratio[at + 24] = down if pairs.second[p] else right
    return widest, ratio


@rows(join=add)
def fresh(o: Row, r: Row, a: Row, b: Row, c: Row, d: Row, weight: Row) -> tuple[Row, Row, Row]:
    """Logarithms of messages, messages, and the sum of logs; a cavity's odds are o / r."""
    message = (a * r + b * o) / (c * r + d * o)
    log = logarithm(message)
    return log, message, weight * log


@rows(join=add)
def damped(
    o: Row, r: Row, a: Row, b: Row, c: Row, d: Row, weight: Row, last: Row, damping: Row
) -> tuple[Row, Row, Row]:
    """The same nearer to the last ones."""
    log = logarithm((a * r + b * o) / (c * r + d * o))
    log = log + damping * (last - log)
    return log, exponential(log), weight * log


@alone
def chances(odds: Row) -> Row:
    """Odds of a clipped logarithm."""
    return exponential(odds.most(-CLIP).least(CLIP))


@kernel(error_model="numpy", forceinline=True)
def _move(i, score, damping, sent, read, gauge, table, kind):
    """As :func:`mlestruct.inference.graph.sweeps.move`; ``table`` from :func:`ratios`."""
    total = score[i]
    for p in range(kind.row[i], kind.row[i + 1], EIGHT):
        at = 4 * p
        if damping > 0.0:
            total += damped(
                1, sent.message, p, sent.linear, p,
                read.chance, kind.ahead, p, read.linear, kind.back, p,
                table, at, table, at + 8, table, at + 16, table, at + 24, kind.weight, p,
                sent.message, p, damping,
            )  # fmt: skip
        else:
            total += fresh(
                1, sent.message, p, sent.linear, p,
                read.chance, kind.ahead, p, read.linear, kind.back, p,
                table, at, table, at + 8, table, at + 16, table, at + 24, kind.weight, p,
            )  # fmt: skip
    total /= kind.whole[i]
    moved = abs(total - sent.belief[i])
    sent.belief[i], sent.chance[i] = total, chances(total)
    return moved


@variant(move, error_model="numpy", forceinline=True)
def _(i, score, damping, sent, read, gauge, table, kind):
    if class_of(kind) is not BinaryMessages:
        return None
    return lambda i, score, damping, sent, read, gauge, table, kind: _move(
        i, score, damping, sent, read, gauge, table, kind
    )


@kernel(error_model="numpy")
def pair_tables(message, odds, ratio, tau, first, pairs):
    """Beliefs of nodes and edges."""
    for i in range(len(odds)):
        small = np.exp(-abs(odds[i]))
        likely, rare = 1.0 / (1.0 + small), small / (1.0 + small)
        node = pairs.order[i]
        tau[2 * node + 1] = likely if odds[i] > 0.0 else rare
        tau[2 * node] = rare if odds[i] > 0.0 else likely
    for p in range(len(pairs.outside)):
        if pairs.outside[p] < 0 or pairs.second[p]:
            continue
        q = pairs.back[p]
        i, j = pairs.ahead[q], pairs.ahead[p]
        a, b = odds[i] - message[p], odds[j] - message[q]
        ai, bj = np.exp(-abs(a)), np.exp(-abs(b))
        i0, i1 = (ai, 1.0) if a > 0.0 else (1.0, ai)
        j0, j1 = (bj, 1.0) if b > 0.0 else (1.0, bj)
        k, at = pairs.table[p], p // 8 * 32 + p % 8
        tau[k] = ratio[at + 16] * i0 * j0
        tau[k + 1] = ratio[at + 24] * i0 * j1
        tau[k + 2] = ratio[at] * i1 * j0
        tau[k + 3] = ratio[at + 8] * i1 * j1
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
