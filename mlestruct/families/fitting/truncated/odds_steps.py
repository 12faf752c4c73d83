"""Truncated belief propagation on binary pairwise graphs: odds, in lanes of several examples.

Belief odds o and message odds r take a visit with four divisions and no logarithm; examples lie
side by side in memory, so that one instruction serves several. Serves only scores that
:func:`mlestruct.families.fitting.truncated.message_steps.fits`; the general steps take the rest.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel

LANES = 8


@kernel
def load(score, plan, odds, table):
    """Node odds (sets × nodes × lanes) and tables (sets × factors × 4 × lanes) of some examples."""
    for k in range(score.shape[0]):
        for lane in range(LANES):
            some = score[k, min(lane, score.shape[1] - 1)]
            for i in range(odds.shape[1]):
                odds[k, i, lane] = np.exp(some[2 * i + 1] - some[2 * i])
            for f in range(table.shape[1]):
                at = plan.table_start[f]
                a, b, c, d = some[at], some[at + 1], some[at + 2], some[at + 3]
                e = plan.table_start[max(f - 1, 0)]
                tied = a == some[e] and b == some[e + 1] and c == some[e + 2] and d == some[e + 3]
                if f == 0 or not tied:  # tied tables: exponentials once
                    top = max(max(a, b), max(c, d))
                    a, b, c, d = np.exp(a - top), np.exp(b - top), np.exp(c - top), np.exp(d - top)
                    first, second, third, fourth = a, b, c, d
                table[k, f, 0, lane], table[k, f, 1, lane] = first, second
                table[k, f, 2, lane], table[k, f, 3, lane] = third, fourth


@kernel(error_model="numpy")
def forward(odds, table, begin, end, belief, message, near, plan, visits):
    """Iterations begin..end of one group of lanes, their cavity odds kept on the tape."""
    last = len(odds) - 1
    for t in range(begin, end):
        k = min(t, last)
        if t > 0 and t <= last:
            for i in range(belief.shape[0]):
                for lane in range(LANES):
                    belief[i, lane] *= odds[k, i, lane] / odds[k - 1, i, lane]
        some, tables = near[t - begin], table[k]
        for g in range(len(visits.group) - 1):
            for v in range(visits.group[g], visits.group[g + 1]):
                read(visits.factor[v], v, belief, message, some, plan)
            for v in range(visits.group[g], visits.group[g + 1]):
                f = visits.factor[v]
                _send(f, v, tables, belief, message, some, plan)


@kernel(error_model="numpy")
def read(f, v, belief, message, near, plan):
    for side in range(2):
        i, s = plan.scope[2 * f + side], 2 * f + side
        for lane in range(LANES):
            near[v, side, lane] = belief[i, lane] / message[s, lane]


@kernel(error_model="numpy")
def _send(f, v, table, belief, message, near, plan):
    # One row of odds per loop: two rows might be one to the compiler, and would not be vectors
    i, j, p, q = plan.scope[2 * f], plan.scope[2 * f + 1], 2 * f, 2 * f + 1
    for lane in range(LANES):
        m = near[v, 1, lane]
        ahead = table[f, 2, lane] + table[f, 3, lane] * m
        once = ahead / (message[p, lane] * (table[f, 0, lane] + table[f, 1, lane] * m))
        belief[i, lane] *= once
        message[p, lane] *= once
    for lane in range(LANES):
        n = near[v, 0, lane]
        ahead = table[f, 1, lane] + table[f, 3, lane] * n
        once = ahead / (message[q, lane] * (table[f, 0, lane] + table[f, 2, lane] * n))
        belief[j, lane] *= once
        message[q, lane] *= once


@kernel(error_model="numpy")
def backward(table, begin, end, belief, message, near, slope_node, slope_table, plan, visits):
    """Adjoints of log-odds after iterations begin..end become those before."""
    last = len(table) - 1
    for t in range(end - 1, begin - 1, -1):
        k = min(t, last)
        some = near[t - begin]
        for g in range(len(visits.group) - 2, -1, -1):
            for v in range(visits.group[g + 1] - 1, visits.group[g] - 1, -1):
                f = visits.factor[v]
                _unsend(f, v, table[k, f], belief, message, some, slope_table[k, f], plan)
            for v in range(visits.group[g + 1] - 1, visits.group[g] - 1, -1):
                f = visits.factor[v]
                for side in range(2):
                    i = plan.scope[2 * f + side]
                    for lane in range(LANES):
                        belief[i, lane] += some[v, side, lane]
                        message[2 * f + side, lane] -= some[v, side, lane]
        if t > 0 and t <= last:
            for i in range(belief.shape[0]):
                for lane in range(LANES):
                    slope_node[k, i, lane] += belief[i, lane]
                    slope_node[k - 1, i, lane] -= belief[i, lane]


@kernel(error_model="numpy")
def _unsend(f, v, table, belief, message, near, slope, plan):
    """log r = log(c + d m) − log(a + b m): shares of the two sums are its derivatives."""
    i, j = plan.scope[2 * f], plan.scope[2 * f + 1]
    for lane in range(LANES):
        a, b, c, d = table[0, lane], table[1, lane], table[2, lane], table[3, lane]
        n, m = near[v, 0, lane], near[v, 1, lane]
        p = message[2 * f, lane] + belief[i, lane]
        q = message[2 * f + 1, lane] + belief[j, lane]
        up, low = d * m / (c + d * m), b * m / (a + b * m)
        right, left = d * n / (b + d * n), c * n / (a + c * n)
        slope[0, lane] -= p * (1.0 - low) + q * (1.0 - left)
        slope[1, lane] += q * (1.0 - right) - p * low
        slope[2, lane] += p * (1.0 - up) - q * left
        slope[3, lane] += p * up + q * right
        message[2 * f, lane] = -belief[i, lane]
        message[2 * f + 1, lane] = -belief[j, lane]
        near[v, 0, lane] = q * (right - left)
        near[v, 1, lane] = p * (up - low)


@kernel(error_model="numpy")
def beliefs(table, belief, message, near, tau, whole, plan):
    """Node tables, and factor tables where ``whole``, of every lane that is an example."""
    for lane in range(tau.shape[0]):
        for i in range(belief.shape[0]):
            o = belief[i, lane]
            tau[lane, 2 * i] = 1.0 / (1.0 + o)
            tau[lane, 2 * i + 1] = o / (1.0 + o)
    for f in range(len(plan.counts) if whole else 0):
        read(f, f, belief, message, near, plan)
        for lane in range(tau.shape[0]):
            out = tau[lane, plan.table_start[f] : plan.table_start[f] + 4]
            n, m = near[f, 0, lane], near[f, 1, lane]
            # each cavity as a pair that sums to 1: a product of two odds may overflow
            i0, i1, j0, j1 = 1.0 / (1.0 + n), n / (1.0 + n), 1.0 / (1.0 + m), m / (1.0 + m)
            out[0], out[1] = table[f, 0, lane] * i0 * j0, table[f, 1, lane] * i0 * j1
            out[2], out[3] = table[f, 2, lane] * i1 * j0, table[f, 3, lane] * i1 * j1
            out /= out.sum()


@kernel(error_model="numpy")
def unbeliefs(tau, slope_tau, belief, message, slope_table, whole, plan):
    """Adjoints of log-beliefs into those of log-odds and of the last set's tables."""
    belief[:], message[:] = 0.0, 0.0
    for lane in range(tau.shape[0]):
        for i in range(belief.shape[0]):
            held = slope_tau[lane, 2 * i] + slope_tau[lane, 2 * i + 1]
            belief[i, lane] = slope_tau[lane, 2 * i + 1] - tau[lane, 2 * i + 1] * held
        for f in range(len(plan.counts) if whole else 0):
            at = plan.table_start[f]
            held = slope_tau[lane, at : at + 4].sum()
            for e in range(4):
                change = slope_tau[lane, at + e] - tau[lane, at + e] * held
                slope_table[f, e, lane] += change
                for side in range(2):
                    if (e >> (1 - side)) & 1:
                        belief[plan.scope[2 * f + side], lane] += change
                        message[2 * f + side, lane] -= change


@kernel(error_model="numpy")
def unload(belief, slope_node, slope_table, slope, plan):
    """Adjoints of log-odds and tables as slopes by the scores of every lane's example."""
    for k in range(slope.shape[0]):
        for lane in range(slope.shape[1]):
            out = slope[k, lane]
            for i in range(belief.shape[0]):
                change = slope_node[k, i, lane] + (belief[i, lane] if k == 0 else 0.0)
                out[2 * i] = -change
                out[2 * i + 1] = change
            for f in range(slope_table.shape[1]):
                for e in range(4):
                    out[plan.table_start[f] + e] = slope_table[k, f, e, lane]
