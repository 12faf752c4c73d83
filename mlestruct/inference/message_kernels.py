"""Sum-product in compiled code: any order and cards, and log-odds where all is binary pairwise."""

from __future__ import annotations

import numba as nb
import numpy as np

SEQUENTIAL, FLOODING, RESIDUAL = 0, 1, 2
PATIENCE = 40  # sweeps in which the residual must halve, or messages are damped more
IDLE = 0.1  # residual schedule: nodes with pending changes below this share of the largest wait


@nb.njit(cache=True, nogil=True, error_model="numpy")
def run(score, schedule, damping, tol, sweeps, message, belief, gauge, table, plan):
    """Sweeps until no log-belief moves by more than ``tol``; returns (sweeps, last residual).

    ν_αi = log Σ_{x_α∖i} exp(η_α/c_α + Σ_{j≠i} λ_αj),  log b_i = (η_i + Σ c_α ν_αi) / (c_i + Σ c_α),
    λ_αi = log b_i − ν_αi: for c_i ≥ 0 each node's update is a block step on the convex dual.
    """
    n = len(plan.node_start) - 1
    exponentials(score, table, plan)
    read_m, read_b = message, belief
    if schedule == FLOODING:
        read_m, read_b = message.copy(), belief.copy()
    pending, waiting = np.full(n, np.inf), 0.0
    best, since, residual = np.inf, 0, np.inf
    for sweep in range(sweeps):
        residual, threshold = 0.0, waiting
        waiting = 0.0
        for t in range(n):
            i = t if sweep % 2 == 0 else n - 1 - t
            if schedule == RESIDUAL and pending[i] < IDLE * threshold:
                residual = max(residual, pending[i])
                continue
            moved = _node(i, score, damping, message, belief, read_m, read_b, gauge, table, plan)
            residual = max(residual, moved)
            pending[i] = 0.0
            if schedule == RESIDUAL:
                for p in range(plan.start[i], plan.start[i + 1]):
                    f = plan.owner[plan.around[p]]
                    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
                        if plan.scope[s] != i:
                            pending[plan.scope[s]] = max(pending[plan.scope[s]], moved)
        if schedule == RESIDUAL:
            waiting = pending.max()
            residual = max(residual, waiting)
        if residual <= tol:
            return sweep + 1, residual
        if schedule == FLOODING:
            read_m[:], read_b[:] = message, belief
        since += 1
        if residual < 0.5 * best:
            best, since = residual, 0
        elif since >= PATIENCE:
            damping, best, since = min(0.5 + 0.5 * damping, 0.9), residual, 0
    return sweeps, residual


@nb.njit(cache=True, nogil=True, error_model="numpy")
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _node(i, score, damping, message, belief, read_m, read_b, gauge, table, plan):
    """Messages into node i, and its log-belief, the largest 0; returns how far that moved."""
    first, last = plan.node_start[i], plan.node_start[i + 1]
    fresh = gauge[len(gauge) - (last - first) :]
    for k in range(last - first):
        fresh[k] = score[first + k]
    for p in range(plan.start[i], plan.start[i + 1]):
        s = plan.around[p]
        f = plan.owner[s]
        into = message[plan.place[s] : plan.place[s + 1]]
        near = False
        if plan.scope_start[f + 1] - plan.scope_start[f] == 2:
            # Few and short arrays are passed here: this call is where dense graphs spend their time
            other = 2 * plan.scope_start[f] + 1 - s
            j, skip = plan.scope[other], plan.table_start[0]
            back = read_m[plan.place[other] : plan.place[other + 1]]
            ahead = read_b[plan.node_start[j] : plan.node_start[j + 1]]
            entries = table[plan.table_start[f] - skip : plan.table_start[f + 1] - skip]
            near = _pair(
                entries, s < other, ahead, back, gauge, damping, into, plan.open[first:last]
            )
        if not near:
            _into(s, score, damping, message, read_m, read_b, gauge, table, plan)
        for k in range(last - first):
            fresh[k] += plan.counts[f] * into[k]
    top, moved = -np.inf, 0.0
    for k in range(last - first):
        fresh[k] /= plan.whole[i]
        if plan.open[first + k]:
            top = max(top, fresh[k])
    for k in range(last - first):
        if plan.open[first + k]:
            moved = max(moved, abs(fresh[k] - top - belief[first + k]))
            belief[first + k] = fresh[k] - top
        else:
            belief[first + k] = -np.inf
    return moved


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pair(entries, first, ahead, back, gauge, damping, into, open_):
    """One message of a pairwise table; False, and nothing done, where digits would be lost."""
    n, m = len(ahead), len(into)
    u, out = gauge[:n], gauge[n : n + m]
    top = -np.inf
    for j in range(n):
        u[j] = ahead[j] - back[j]
        top = max(top, u[j])
    for j in range(n):
        u[j] = np.exp(u[j] - top)
    if first:
        for i in range(m):
            mass = 0.0
            for j in range(n):
                mass += entries[i * n + j] * u[j]
            out[i] = mass
    else:
        out[:] = 0.0
        for j in range(n):
            for i in range(m):
                out[i] += entries[j * m + i] * u[j]
    top = 0.0
    for i in range(m):
        top = max(top, out[i])
        if open_[i] and out[i] < 1e-280:
            return False
    for i in range(m):
        if open_[i]:
            fresh = np.log(out[i] / top)
            into[i] = fresh + damping * (into[i] - fresh)
    return True


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _cavities(f, skip, read_m, read_b, log, gauge, plan):
    """λ_αj of every other slot, the largest 0 (as logs, or exponentiated), one after the other."""
    at = 0
    for s in range(plan.scope_start[f], plan.scope_start[f + 1]):
        first, cards = plan.node_start[plan.scope[s]], plan.place[s + 1] - plan.place[s]
        if s == skip:
            gauge[at : at + cards] = 0.0 if log else 1.0
        else:
            top = -np.inf
            for k in range(cards):
                gauge[at + k] = read_b[first + k] - read_m[plan.place[s] + k]
                top = max(top, gauge[at + k])
            for k in range(cards):
                gauge[at + k] = gauge[at + k] - top if log else np.exp(gauge[at + k] - top)
        at += cards


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _into(s, score, damping, message, read_m, read_b, gauge, table, plan):
    """The message of a factor to its slot s, the largest entry 0."""
    f = plan.owner[s]
    cards = plan.place[s + 1] - plan.place[s]
    _cavities(f, s, read_m, read_b, False, gauge, plan)
    skip = plan.table_start[0]
    entries = table[plan.table_start[f] - skip : plan.table_start[f + 1] - skip]
    width = plan.place[plan.scope_start[f + 1]] - plan.place[plan.scope_start[f]]
    out = gauge[width : width + cards]
    _any_order(s, f, entries, gauge, out, plan)
    top = out.max()
    node = plan.node_start[plan.scope[s]]
    poor = False
    for k in range(cards):
        poor = poor or (plan.open[node + k] and out[k] < 1e-280)
    if poor:
        _cavities(f, s, read_m, read_b, True, gauge, plan)
        _log_sums(s, f, score, gauge, out, plan)
        top = out.max()
    for k in range(cards):
        if plan.open[node + k]:
            fresh = out[k] - top if poor else np.log(out[k] / top)
            old = message[plan.place[s] + k]
            message[plan.place[s] + k] = fresh + damping * (old - fresh)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _any_order(s, f, entries, gauge, out, plan):
    out[:] = 0.0
    for k in range(len(entries)):
        value, at = entries[k], 0
        for r in range(plan.scope_start[f], plan.scope_start[f + 1]):
            cards = plan.place[r + 1] - plan.place[r]
            value *= gauge[at + (k // plan.stride[r]) % cards]
            at += cards
        out[(k // plan.stride[s]) % len(out)] += value


@nb.njit(cache=True, nogil=True, error_model="numpy")
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
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
