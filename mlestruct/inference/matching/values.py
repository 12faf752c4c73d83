"""What inference on matchings is worth: dual values, and the Lagrangian."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.kernels import FAST, entry
from mlestruct.kernels import kernel


@kernel(fastmath=FAST)
def _sum(tau):
    total = 0.0
    for e in range(len(tau)):
        total += tau[e]
    return total


@kernel
def dual_value(score, ptr, head, strict, c, rho, x, tau):
    """Σ_e [(1−c)τ − c log(1−τ)] + Σ_v (x_v − ρ) + Σ_loose ρ exp(−x_v/ρ), τ the entries at x.

    For ρ ≤ ½ (c ≥ 0) an upper bound on the surrogate log Z at every x, since every edge's own
    problem is concave. Where a τ is near one, log(1−τ) comes from the equation it solves.
    """
    total = (1.0 - c) * _sum(tau)
    for u in range(len(ptr) - 1 if c != 0.0 else 0):
        for e in range(ptr[u], ptr[u + 1]):
            t = tau[e]
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


@kernel
def price_value(score, ptr, head, strict, rho, x):
    """The dual value at node prices x alone: for ρ ≤ ½ a bound whatever they are."""
    c, tau = 1.0 - 2.0 * rho, np.empty(len(score))
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] = entry(np.exp(min(score[e] - x[u] - x[head[e]], 600.0)), c)
    return dual_value(score, ptr, head, strict, c, rho, x, tau)


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
