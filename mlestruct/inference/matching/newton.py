"""Newton on the node duals: what finishes where scaling creeps along a nearly free direction."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.kernels import conjugate, entry
from mlestruct.inference.matching.values import dual_value
from mlestruct.kernels import kernel

NEARER = 0.1  # of a slack's price a step leaves at least: beyond lie slacks above one
DENSE = 300  # nodes of a two-sided graph up to which Newton's systems are solved by elimination


@kernel
def polish(score, ptr, head, strict, c, rho, two_sided, x, tau, residual, rounds):
    """Damped Newton on the convex dual (c ≥ 0); the last error.

    The Hessian is the signless Laplacian of dτ/dlog z plus the slacks': conjugate gradients cost
    O(edges) a turn. Small two-sided graphs are eliminated, which their nearly free directions
    (rows that hardly share a column, eigenvalues of 1e-10 and less) do not harm.
    """
    n = len(strict)
    direct = two_sided and n <= DENSE
    table = np.empty((n, n) if direct else (0, 0))
    curvature, gap, slope = np.empty(len(score)), np.empty(n), np.empty(n)
    p, d, q, old = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    everyone = np.ones(n, dtype=np.bool_)
    for v in range(n):
        x[v] = x[v] if strict[v] else max(x[v], 0.0)
    worst = _evaluate(score, ptr, head, strict, c, rho, x, tau, curvature, gap, slope)
    value = dual_value(score, ptr, head, strict, c, rho, x, tau)
    for _ in range(rounds):
        if worst <= residual:
            break
        old[:] = x
        if direct:
            for v in range(n):
                q[v] = 0.0 if strict[v] else np.exp(-x[v] / rho) / rho
            eliminate(ptr, head, curvature, q, gap, table, d, p)
        else:
            conjugate(ptr, head, curvature, slope, everyone, gap, p, d, q, min(0.1, worst))
        far = 0.0
        for v in range(n):
            far = max(far, abs(p[v]))
        step, found = min(1.0, 20.0 / max(far, 1e-300)), False
        for _ in range(30):
            for v in range(n):
                x[v] = old[v] + step * p[v]
                if not strict[v]:  # a slack is at most one, so x ≥ 0
                    x[v] = max(x[v], NEARER * old[v])
            worst = _evaluate(score, ptr, head, strict, c, rho, x, tau, curvature, gap, slope)
            new = dual_value(score, ptr, head, strict, c, rho, x, tau)
            if new <= value + 1e-14 * abs(value):
                found = True
                break
            step *= 0.5
        if not found:
            x[:] = old
            return _evaluate(score, ptr, head, strict, c, rho, x, tau, curvature, gap, slope)
        value = new
    return worst


@kernel
def eliminate(ptr, head, weight, ground, r, table, pivot, p):
    """p solves (signless Laplacian of ``weight`` + ground) p = r on a two-sided graph. O(n³).

    With one side's signs turned it is a Laplacian, whose elimination only adds what is positive
    (Grassmann, Taksar and Heyman): pivots keep all their digits however small they are. ``r`` and
    ``ground`` are used up; a direction that is free in its component stays where it is.
    """
    n = len(r)
    table[:] = 0.0  # below the diagonal
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            table[max(u, head[e]), min(u, head[e])] = weight[e]
        if ptr[u + 1] == ptr[u]:
            r[u] = -r[u]
    for k in range(n - 1, -1, -1):
        pivot[k] = ground[k]
        for i in range(k):
            pivot[k] += table[k, i]
        for i in range(k):
            if table[k, i] > 0.0:
                share = table[k, i] / pivot[k]
                ground[i] += share * ground[k]
                r[i] += share * r[k]
                for j in range(i):
                    table[i, j] += share * table[k, j]
    for k in range(n):
        known = r[k]
        for i in range(k):
            known += table[k, i] * p[i]
        p[k] = known / pivot[k] if pivot[k] > 0.0 else 0.0
    for u in range(n):
        if ptr[u + 1] == ptr[u]:
            p[u] = -p[u]


@kernel
def _evaluate(score, ptr, head, strict, c, rho, x, tau, curvature, gap, slope):
    """τ, its slopes, and every node's Σ τ + slack − 1; the largest."""
    gap[:] = 0.0
    slope[:] = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            t = entry(np.exp(min(score[e] - x[u] - x[head[e]], 600.0)), c)
            tau[e] = t
            curvature[e] = t if c == 0.0 else t * (1.0 - t) / max(1.0 - (1.0 - c) * t, 1e-12)
            gap[u] += t
            gap[head[e]] += t
            slope[u] += curvature[e]
            slope[head[e]] += curvature[e]
    worst = 0.0
    for v in range(len(x)):
        if strict[v]:
            gap[v] -= 1.0
        else:
            slack = np.exp(-x[v] / rho)
            gap[v] += slack - 1.0
            slope[v] += slack / rho
        worst = max(worst, abs(gap[v]))
    return worst
