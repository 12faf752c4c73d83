"""Sum-product on factors of any order, with forbidden entries, at any score."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.plan import MessagePlan
from mlestruct.inference.graph.sweeps import move
from mlestruct.kernels import class_of, kernel, variant

TINY = 1e-280  # sums below this are taken again from logarithms


@kernel(error_model="numpy")
def exponentials(score, table, plan):
    """exp(η_α/c_α), each table scaled by its largest open entry; closed entries are 0."""
    first = plan.table_start[0]
    for f in range(len(plan.counts)):
        top = -np.inf
        for k in range(plan.table_start[f], plan.table_start[f + 1]):
            if plan.open[k]:
                top = max(top, score[k])
        for k in range(plan.table_start[f], plan.table_start[f + 1]):
            lifted = (score[k] - top) / plan.counts[f]
            table[k - first] = np.exp(lifted) if plan.open[k] else 0.0


def _move(i, score, damping, sent, read, gauge, table, kind):
    """As :func:`mlestruct.inference.graph.sweeps.move`."""
    first, last = kind.node_start[i], kind.node_start[i + 1]
    fresh = gauge[len(gauge) - (last - first) :]
    for k in range(last - first):
        fresh[k] = score[first + k]
    for p in range(kind.start[i], kind.start[i + 1]):
        s = kind.around[p]
        into = sent.message[kind.place[s] : kind.place[s + 1]]
        _into(s, score, damping, into, read, gauge, table, kind)
        for k in range(last - first):
            fresh[k] += kind.counts[kind.owner[s]] * into[k]
    top, moved = -np.inf, 0.0
    for k in range(last - first):
        fresh[k] /= kind.whole[i]
        if kind.open[first + k]:
            top = max(top, fresh[k])
    for k in range(last - first):
        if kind.open[first + k]:
            moved = max(moved, abs(fresh[k] - top - sent.belief[first + k]))
            sent.belief[first + k] = fresh[k] - top
        else:
            sent.belief[first + k] = -np.inf
    return moved


@variant(move, error_model="numpy")
def _(i, score, damping, sent, read, gauge, table, kind):
    return _move if class_of(kind) is MessagePlan else None


@kernel(error_model="numpy")
def _cavities(f, skip, message, belief, log, gauge, plan):
    """λ_αj of every other slot, the largest 0 (as logs, or exponentiated), one after the other."""
    at = 0
    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
        first, cards = plan.node_start[plan.scope[s]], plan.place[s + 1] - plan.place[s]
        if s == skip:
            gauge[at : at + cards] = 0.0 if log else 1.0
        else:
            top = -np.inf
            for k in range(cards):
                gauge[at + k] = belief[first + k] - message[plan.place[s] + k]
                top = max(top, gauge[at + k])
            for k in range(cards):
                gauge[at + k] = gauge[at + k] - top if log else np.exp(gauge[at + k] - top)
        at += cards


@kernel(error_model="numpy")
def _into(s, score, damping, into, read, gauge, table, plan):
    """The message of a factor to its slot s, the largest entry 0."""
    f = plan.owner[s]
    cards = plan.place[s + 1] - plan.place[s]
    _cavities(f, s, read.message, read.belief, False, gauge, plan)
    skip = plan.table_start[0]
    entries = table[plan.table_start[f] - skip : plan.table_start[f + 1] - skip]
    width = plan.place[plan.scope_start[f + 1]] - plan.place[plan.scope_start[f]]
    out = gauge[width : width + cards]
    _any_order(s, f, entries, gauge, out, plan)
    top = out.max()
    node = plan.node_start[plan.scope[s]]
    poor = False
    for k in range(cards):
        poor = poor or (plan.open[node + k] and out[k] < TINY)
    if poor:
        _cavities(f, s, read.message, read.belief, True, gauge, plan)
        _log_sums(s, f, score, gauge, out, plan)
        top = out.max()
    for k in range(cards):
        if plan.open[node + k]:
            fresh = out[k] - top if poor else np.log(out[k] / top)
            into[k] = fresh + damping * (into[k] - fresh)


@kernel(error_model="numpy")
def _any_order(s, f, entries, gauge, out, plan):
    out[:] = 0.0
    for k in range(len(entries)):
        value, at = entries[k], 0
        for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
            cards = plan.place[r + 1] - plan.place[r]
            value *= gauge[at + (k // plan.stride[r]) % cards]
            at += cards
        out[(k // plan.stride[s]) % len(out)] += value


@kernel(error_model="numpy")
def _log_sums(s, f, score, gauge, out, plan):
    """The same sums where they underflow: from logarithms, each state by its own largest term."""
    first, size = plan.table_start[f], plan.table_start[f + 1] - plan.table_start[f]
    for state in range(len(out)):
        top, mass = -np.inf, 0.0
        for turn in range(2):
            for k in range(size):
                if (k // plan.stride[s]) % len(out) != state or not plan.open[first + k]:
                    continue
                value, at = score[first + k] / plan.counts[f], 0
                for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    cards = plan.place[r + 1] - plan.place[r]
                    value += gauge[at + (k // plan.stride[r]) % cards]
                    at += cards
                if turn == 0:
                    top = max(top, value)
                elif top > -np.inf:
                    mass += np.exp(value - top)
        out[state] = top + np.log(mass) if top > -np.inf else -np.inf


@kernel(error_model="numpy")
def tables(score, message, belief, gauge, tau, plan):
    """Beliefs of nodes and factors; the latter agree with the former only at convergence."""
    for i in range(len(plan.node_start) - 1):
        first, last = plan.node_start[i], plan.node_start[i + 1]
        for k in range(first, last):
            tau[k] = np.exp(belief[k]) if plan.open[k] else 0.0
        tau[first:last] /= tau[first:last].sum()
    for f in range(len(plan.counts)):
        _cavities(f, -1, message, belief, True, gauge, plan)
        first, last, top = plan.table_start[f], plan.table_start[f + 1], -np.inf
        for k in range(first, last):
            value, at = score[k] / plan.counts[f], 0
            for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
                cards = plan.place[r + 1] - plan.place[r]
                value += gauge[at + ((k - first) // plan.stride[r]) % cards]
                at += cards
            tau[k] = value if plan.open[k] else -np.inf
            top = max(top, tau[k])
        for k in range(first, last):
            tau[k] = np.exp(tau[k] - top)
        tau[first:last] /= tau[first:last].sum()


@kernel
def scratch(plan):
    """Room for what one node needs, and for every table."""
    widest, most = 1, 1
    for f in range(len(plan.counts)):
        here = plan.place[plan.scope_start[f + 1]] - plan.place[plan.scope_start[f]]
        widest = max(widest, here)
    for i in range(len(plan.whole)):
        own = plan.node_start[i + 1] - plan.node_start[i]
        most = max(most, own * (plan.start[i + 1] - plan.start[i] + 2))
    return np.empty(widest + most), np.empty(plan.table_start[-1] - plan.table_start[0])
