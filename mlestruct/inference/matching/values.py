"""What inference on matchings is worth: dual values, and the Lagrangian."""

from __future__ import annotations

import numpy as np

from mlestruct.blocks import begin, claim, total
from mlestruct.inference.matching.kernels import FAST, entry
from mlestruct.kernels import kernel


@kernel(fastmath=FAST)
def _sum(tau):
    total = 0.0
    for e in range(len(tau)):
        total += tau[e]
    return total


@kernel
def dual_value(score, ptr, head, strict, c, rho, x, tau, blocks):
    """Σ_e [(1−c)τ − c log(1−τ)] + Σ_v (x_v − ρ) + Σ_loose ρ exp(−x_v/ρ), τ the entries at x.

    For ρ ≤ ½ (c ≥ 0) an upper bound on the surrogate log Z at every x, since every edge's own
    problem is concave. Where a τ is near one, log(1−τ) comes from the equation it solves.
    """
    if blocks is None:
        value = _edges_value(score, ptr, head, c, x, tau, 0, len(ptr) - 1)
    else:
        turn, b = begin(blocks), claim(blocks)
        while b >= 0:
            first, last = blocks.cut[b], blocks.cut[b + 1]
            blocks.part[turn, b, 0, 0] = _edges_value(score, ptr, head, c, x, tau, first, last)
            b = claim(blocks)
        value = total(blocks, turn)
    for v in range(len(x)):
        if strict[v]:
            value += x[v] - rho
        elif rho > 0.0:
            value += x[v] - rho + rho * np.exp(-x[v] / rho)
        else:
            value += x[v]
    return value


@kernel(forceinline=True)
def _edges_value(score, ptr, head, c, x, tau, first_row, last_row):
    """Σ_e [(1−c)τ − c log(1−τ)] over the edges of some rows."""
    value = (1.0 - c) * _sum(tau[ptr[first_row] : ptr[last_row]])
    for u in range(first_row, last_row if c != 0.0 else 0):
        for e in range(ptr[u], ptr[u + 1]):
            t = tau[e]
            off = np.log1p(-t) if t < 0.5 else (score[e] - x[u] - x[head[e]] - np.log(t)) / -c
            value -= c * off
    return value


@kernel
def price_value(score, ptr, head, strict, rho, x):
    """The dual value at node prices x alone: for ρ ≤ ½ a bound whatever they are."""
    c, tau = 1.0 - 2.0 * rho, np.empty(len(score))
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] = entry(np.exp(min(score[e] - x[u] - x[head[e]], 600.0)), c)
    return dual_value(score, ptr, head, strict, c, rho, x, tau, None)


@kernel
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
