"""Truncated mean field: sweeps of q_i ∝ exp(expected score of its states), and their adjoint.

The tape keeps each q_i before its update; adjoints are by log q. Any order and cards.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel


@kernel(error_model="numpy")
def forward(score, begin, end, q, tape, plan):
    """Sweeps begin..end of every example."""
    last = score.shape[0] - 1
    for m in range(score.shape[1]):
        for t in range(begin, end):
            some = score[min(t, last), m]
            tape[m, t - begin] = q[m]
            for i in range(len(plan.node_start) - 1):
                _update(i, some, q[m], plan)


@kernel(error_model="numpy")
def _update(i, score, q, plan):
    first, last = plan.node_start[i], plan.node_start[i + 1]
    q[first:last] = score[first:last]
    for p in range(plan.start[i], plan.start[i + 1]):
        s = plan.around[p]
        f = plan.owner[s]
        for k in range(plan.table_start[f], plan.table_start[f + 1]):
            at = k - plan.table_start[f]
            q[first + _state(at, s, plan)] += score[k] * _others(at, f, s, q, plan)
    top, mass = q[first:last].max(), 0.0
    for k in range(first, last):
        q[k] = np.exp(q[k] - top)
        mass += q[k]
    for k in range(first, last):
        q[k] /= mass


@kernel(error_model="numpy")
def _state(entry, slot, plan):
    return (entry // plan.stride[slot]) % (plan.place[slot + 1] - plan.place[slot])


@kernel(error_model="numpy")
def _others(entry, f, s, q, plan):
    """Π q of the other variables' states in this entry."""
    chance = 1.0
    for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
        if r != s:
            chance *= q[plan.node_start[plan.scope[r]] + _state(entry, r, plan)]
    return chance


@kernel(error_model="numpy")
def backward(score, begin, end, q, log_q, tape, slope, plan):
    """``q`` after the sweeps is wound back as the adjoints ``log_q`` are."""
    last = score.shape[0] - 1
    for m in range(score.shape[1]):
        for t in range(end - 1, begin - 1, -1):
            k = min(t, last)
            for i in range(len(plan.node_start) - 2, -1, -1):
                _revert(i, score[k, m], q[m], log_q[m], tape[m, t - begin], slope[k, m], plan)


@kernel(error_model="numpy")
def _revert(i, score, q, log_q, before, slope, plan):
    first, last = plan.node_start[i], plan.node_start[i + 1]
    held = log_q[first:last].sum()
    for k in range(first, last):  # from here on log_q[k] is the adjoint of the expected score
        log_q[k] -= q[k] * held
        slope[k] += log_q[k]
        q[k] = before[k]
    for p in range(plan.start[i], plan.start[i + 1]):
        s = plan.around[p]
        f = plan.owner[s]
        for k in range(plan.table_start[f], plan.table_start[f + 1]):
            at = k - plan.table_start[f]
            change = log_q[first + _state(at, s, plan)] * _others(at, f, s, q, plan)
            slope[k] += change
            for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
                if r != s:
                    log_q[plan.node_start[plan.scope[r]] + _state(at, r, plan)] += change * score[k]
    log_q[first:last] = 0.0


@kernel(error_model="numpy")
def beliefs(q, tau, whole, plan):
    """Node tables q, and factor tables as their products where ``whole``."""
    for m in range(q.shape[0]):
        tau[m, : plan.table_start[0]] = q[m]
        for f in range(len(plan.counts) if whole else 0):
            for k in range(plan.table_start[f], plan.table_start[f + 1]):
                tau[m, k] = _others(k - plan.table_start[f], f, -1, q[m], plan)


@kernel(error_model="numpy")
def unbeliefs(slope_tau, log_q, whole, plan):
    """Adjoints of log-beliefs into those of log q."""
    for m in range(slope_tau.shape[0]):
        log_q[m] = slope_tau[m, : plan.table_start[0]]
        for f in range(len(plan.counts) if whole else 0):
            for k in range(plan.table_start[f], plan.table_start[f + 1]):
                for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                    state = _state(k - plan.table_start[f], s, plan)
                    log_q[m, plan.node_start[plan.scope[s]] + state] += slope_tau[m, k]
