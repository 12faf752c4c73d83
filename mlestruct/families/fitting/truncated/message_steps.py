"""Truncated sum-product of any order and cards: the forward steps and their exact adjoint.

The state is (log-belief lb of every variable, message m of every slot); a visit does
n_s = lb − m_s, m_s' = log Σ exp(η_α/c_α + Σ_{r≠s} n_r), lb' = lb + (c_α/whole)(m_s' − m_s).
Beliefs do not see a constant added to a message, so none is subtracted in the adjoint. The tape
keeps u = exp n and the sums before the logarithm: the way back needs neither exp nor log. Where all
numbers count 1 and scores fit, the state is kept exponentiated, and the way there needs none too.
"""

from __future__ import annotations

import numpy as np

from mlestruct.families.fitting.truncated.message_visits import (
    LEAST,
    any_slopes,
    any_sums,
    pair_slopes,
    pair_sums,
    read,
    send,
    state,
    unread,
    unsend,
)
from mlestruct.kernels import kernel

RANGE = 600.0  # of log-beliefs that are safe as plain numbers


@kernel
def fits(score, plan):
    """Whether a variable's scores and the tables around it together range over at most RANGE."""
    reach = np.empty(len(plan.node_start) - 1)
    for k in range(score.shape[0]):
        for m in range(score.shape[1]):
            for i in range(len(reach)):
                reach[i] = _spread(score[k, m], plan.node_start[i], plan.node_start[i + 1])
            for f in range(len(plan.counts)):
                wide = _spread(score[k, m], plan.table_start[f], plan.table_start[f + 1])
                for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    reach[plan.scope[s]] += wide
            for i in range(len(reach)):
                if not reach[i] <= RANGE:
                    return False
    return True


@kernel
def _spread(score, first, last):
    low = top = score[first]
    for k in range(first + 1, last):
        low, top = min(low, score[k]), max(top, score[k])
    return top - low


@kernel
def exponentials(score, plan, table):
    """exp(η_α/c_α), each table's largest entry 1; per set of scores and example."""
    skip = plan.table_start[0]
    for k in range(score.shape[0]):
        for m in range(score.shape[1]):
            for f in range(len(plan.counts)):
                first, last = plan.table_start[f], plan.table_start[f + 1]
                top = score[k, m, first:last].max()
                for e in range(first, last):
                    table[k, m, e - skip] = np.exp((score[k, m, e] - top) / plan.counts[f])


@kernel(error_model="numpy")
def forward(score, table, begin, end, belief, message, near, sums, linear, plan, visits):
    """Iterations begin..end of every example, kept on the tape (near, sums).

    ``linear``: belief and message are exponentials, not logarithms.
    """
    final, skip = score.shape[0] - 1, plan.table_start[0]
    scope_start, place, table_start = plan.scope_start, plan.place, plan.table_start
    group, factor, tape, home, share = visits
    for m in range(score.shape[1]):
        lb, sent = belief[m], message[m]
        for t in range(begin, end):
            k = min(t, final)
            if t > 0 and t <= final:
                _exchange(score[k, m], score[k - 1, m], lb, linear, plan)
            u, total, entries = near[m, t - begin], sums[m, t - begin], table[k, m]
            for g in range(len(group) - 1):
                for v in range(group[g], group[g + 1]):
                    f, at = factor[v], tape[v]
                    first, last = scope_start[f], scope_start[f + 1]
                    read(first, last, at, lb, sent, u, linear, home, place)
                for v in range(group[g], group[g + 1]):
                    f, at = factor[v], tape[v]
                    first, last = scope_start[f], scope_start[f + 1]
                    if last - first == 2:
                        middle = place[first + 1]
                        rows, columns = middle - place[first], place[last] - middle
                        pair_sums(entries, table_start[f] - skip, u, total, at, rows, columns)
                    else:
                        any_sums(f, entries, u, total, at, plan)
                    send(first, last, at, lb, sent, total, linear, share, home, place)


@kernel(error_model="numpy")
def backward(score, table, begin, end, belief, message, near, sums, slope, plan, visits):
    """From adjoints of the state after iterations begin..end to those before; slope by score."""
    final, skip = score.shape[0] - 1, plan.table_start[0]
    scope_start, place, table_start = plan.scope_start, plan.place, plan.table_start
    counts, (group, factor, tape, home, share) = plan.counts, visits
    ahead = np.empty(near.shape[2])
    for m in range(score.shape[1]):
        lb, sent = belief[m], message[m]
        for t in range(end - 1, begin - 1, -1):
            k = min(t, final)
            u, total, entries = near[m, t - begin], sums[m, t - begin], table[k, m]
            out = slope[k, m, skip:]
            for g in range(len(group) - 2, -1, -1):
                for v in range(group[g + 1] - 1, group[g] - 1, -1):
                    f, at = factor[v], tape[v]
                    first, last, e = scope_start[f], scope_start[f + 1], table_start[f] - skip
                    unsend(first, last, at, lb, sent, total, share, home, place)
                    if last - first == 2:
                        middle = place[first + 1]
                        rows, columns = middle - place[first], place[last] - middle
                        scale = 1.0 / counts[f]
                        pair_slopes(entries, e, u, total, out, ahead, at, rows, columns, scale)
                    else:
                        any_slopes(f, entries, u, total, out, ahead, at, plan)
                for v in range(group[g + 1] - 1, group[g] - 1, -1):
                    f = factor[v]
                    unread(scope_start[f], scope_start[f + 1], tape[v], lb, sent, u, home, place)
            if t > 0 and t <= final:
                _unexchange(slope[k, m], slope[k - 1, m], lb, plan)


@kernel(error_model="numpy")
def _exchange(new, old, belief, linear, plan):
    """Another iteration's node scores take the place of the last one's."""
    for i in range(len(plan.whole)):
        first, last = plan.node_start[i], plan.node_start[i + 1]
        top = (new[first:last] - old[first:last]).max()  # a constant that beliefs do not see
        for e in range(first, last):
            change = (new[e] - old[e] - top) / plan.whole[i]
            belief[e] = belief[e] * np.exp(change) if linear else belief[e] + change


@kernel(error_model="numpy")
def _unexchange(new, old, belief, plan):
    for i in range(len(plan.whole)):
        for e in range(plan.node_start[i], plan.node_start[i + 1]):
            new[e] += belief[e] / plan.whole[i]
            old[e] -= belief[e] / plan.whole[i]


@kernel(error_model="numpy")
def beliefs(table, belief, message, near, tau, whole, plan, home):
    """b_i ∝ exp lb; where ``whole``, also b_α ∝ exp(η_α/c_α) Π u_s. Uses the last set's tables."""
    skip = plan.table_start[0]
    for m in range(len(tau)):
        for i in range(len(plan.whole)):
            first, last = plan.node_start[i], plan.node_start[i + 1]
            top = belief[m, first:last].max()
            for k in range(first, last):
                tau[m, k] = np.exp(belief[m, k] - top)
            tau[m, first:last] /= tau[m, first:last].sum()
        for f in range(len(plan.counts) if whole else 0):
            first, last = plan.scope_start[f], plan.scope_start[f + 1]
            at = plan.place[first]
            read(first, last, at, belief[m], message[m], near[m], False, home, plan.place)
            for k in range(plan.table_start[f], plan.table_start[f + 1]):
                chance = table[m, k - skip]
                for s in range(first, last):
                    chance *= near[m, state(k - plan.table_start[f], s, plan)]
                tau[m, k] = chance
            inside = tau[m, plan.table_start[f] : plan.table_start[f + 1]]
            inside /= max(inside.sum(), LEAST)


@kernel(error_model="numpy")
def unbeliefs(tau, slope_tau, belief, message, slope, whole, plan, home):
    """Adjoints of log-beliefs into those of lb, messages and the last set's scores."""
    for m in range(len(tau)):
        for i in range(len(plan.whole)):
            first, last = plan.node_start[i], plan.node_start[i + 1]
            held = slope_tau[m, first:last].sum()
            for k in range(first, last):
                belief[m, k] = slope_tau[m, k] - tau[m, k] * held
        for f in range(len(plan.counts) if whole else 0):
            first, last = plan.table_start[f], plan.table_start[f + 1]
            held = slope_tau[m, first:last].sum()
            for k in range(first, last):
                change = slope_tau[m, k] - tau[m, k] * held
                slope[m, k] += change / plan.counts[f]
                for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    sent = state(k - first, s, plan)
                    belief[m, home[s] + sent - plan.place[s]] += change
                    message[m, sent] -= change
