"""What inference on matchings is worth: dual values, and a bound from the tangent."""

from __future__ import annotations

import numba as nb
import numpy as np

from mlestruct.inference.matching_kernels import entry

MIX = 1e-10  # tangents are taken this far from the boundary


@nb.njit(cache=True, nogil=True)
def dual_value(score, ptr, head, strict, c, rho, x, tau):
    """Σ_e [(1−c)τ − c log(1−τ)] + Σ_v (x_v − ρ) + Σ_loose ρ exp(−x_v/ρ), τ the entries at x.

    For ρ ≤ ½ (c ≥ 0) an upper bound on the surrogate log Z at every x, since every edge's own
    problem is concave. Where a τ is near one, log(1−τ) comes from the equation it solves.
    """
    total = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            t = tau[e]
            total += (1.0 - c) * t
            if c != 0.0:
                off = np.log1p(-t) if t < 0.5 else (score[e] - x[u] - x[head[e]] - np.log(t)) / -c
                total -= c * off
    for v in range(len(x)):
        if strict[v]:
            total += x[v] - rho
        elif rho > 0.0:
            total += x[v] - rho + rho * np.exp(-x[v] / rho)
        else:
            total += x[v]
    return total


@nb.njit(cache=True, nogil=True)
def price_value(score, ptr, head, strict, rho, x):
    """The dual value at node prices x alone: for ρ ≤ ½ a bound whatever they are."""
    c, tau = 1.0 - 2.0 * rho, np.empty(len(score))
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] = entry(np.exp(min(score[e] - x[u] - x[head[e]], 600.0)), c)
    return dual_value(score, ptr, head, strict, c, rho, x, tau)


@nb.njit(cache=True, nogil=True)
def stationary_value(score, ptr, head, strict, rho, x, tau, log_off):
    """The Lagrangian at any (x, τ): off by second order near a stationary point, no bound."""
    c, total = 1.0 - 2.0 * rho, 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            t = tau[e]
            if t > 0.0:
                total += t * (score[e] - x[u] - x[head[e]] + 2.0 * rho - np.log(t))
            total -= c * np.exp(log_off[e]) * log_off[e]
    for v in range(len(x)):
        total += x[v] - rho
        if not strict[v]:
            total += rho * np.exp(-x[v] / rho)
    return total


@nb.njit(cache=True, nogil=True)
def tangent_value(score, ptr, head, strict, rho, x, tau, centre, s, y, out):
    """(H + score at a point beside τ, and an upper bound on its maximum), for feasible τ.

    H is concave over the degree polytope for every ρ in [0, 1], so it lies below its tangent,
    whose maximum is at most Σ y for any node prices y with y_u + y_v ≥ w (y ≥ 0 where loose).
    """
    n, c = len(strict), 1.0 - 2.0 * rho
    s[:] = 0.0
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            t = (1.0 - MIX) * tau[e] + MIX * centre[e]
            s[u] += t
            s[head[e]] += t
    value, linear, single = 0.0, 0.0, np.zeros(n)
    for v in range(n):
        y[v] = x[v] - rho if strict[v] else 0.0
        if not strict[v]:
            slack = max(1.0 - s[v], 1e-300)
            value -= rho * slack * np.log(slack)
            single[v] = rho * (np.log(slack) + 1.0)
    w = out  # one slope per edge
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            t = (1.0 - MIX) * tau[e] + MIX * centre[e]
            on, off = np.log(t), np.log1p(-min(t, 1.0 - 1e-16))
            w[e] = score[e] - on - 1.0 + c * (off + 1.0)
            w[e] += single[u] + single[head[e]]
            value += t * (score[e] - on) - c * (1.0 - t) * off
            linear += t * w[e]
    raised = np.zeros(n)
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            over = w[e] - y[u] - y[head[e]]
            raised[u] = max(raised[u], 0.5 * over)
            raised[head[e]] = max(raised[head[e]], 0.5 * over)
    _lower(ptr, head, strict, w, y, raised)
    return value, value + y.sum() - linear


@nb.njit(cache=True, nogil=True)
def _lower(ptr, head, strict, w, y, raised):
    """Prices raised to feasibility, then tails' and heads' lowered as far as their edges allow.

    Nodes that are both (graphs with odd cycles) keep theirs: one pass does not see all their edges.
    """
    n = len(strict)
    both = np.zeros(n, dtype=np.bool_)
    for v in range(n):
        y[v] += raised[v]
        for e in range(ptr[v], ptr[v + 1]):
            both[head[e]] = ptr[head[e] + 1] > ptr[head[e]]
    room = np.full(n, np.inf)
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            room[u] = min(room[u], y[u] + y[head[e]] - w[e])
        down = room[u] if strict[u] else min(room[u], y[u])
        if ptr[u + 1] > ptr[u] and not both[u] and down > 0.0:
            y[u] -= down
    room[:] = np.inf
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            room[head[e]] = min(room[head[e]], y[u] + y[head[e]] - w[e])
    for u in range(n):
        if ptr[u + 1] == ptr[u] and room[u] < np.inf:
            down = room[u] if strict[u] else min(room[u], y[u])
            y[u] -= max(down, 0.0)
