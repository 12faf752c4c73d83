"""τ made exactly feasible: degrees corrected in proportion to τ, never below zero."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.kernels import conjugate, linear_tail, product
from mlestruct.kernels import kernel

LITTLE = np.array([0.0, 1e-12, 1e-9, 1e-6, 1e-3])  # of the centre, until degrees can be mended


@kernel
def fill_table(tau, rows, columns):
    """Rows and columns scaled below one, what rows lack spread over what columns have left.

    The nearest feasible point of a kind, on complete bipartite graphs; rows sum to one.
    """
    one, column, room = np.ones(columns), np.zeros(columns), np.zeros(columns)
    for i in range(rows):
        row = tau[i * columns : (i + 1) * columns]
        _add(row, 1.0 / max(linear_tail(row, one), 1.0), column)
    for j in range(columns):
        one[j], room[j] = 1.0 / max(column[j], 1.0), max(1.0 - column[j], 0.0)
    left = max(room.sum(), 1e-300)
    for i in range(rows):
        row = tau[i * columns : (i + 1) * columns]
        lack = max(1.0 - linear_tail(row, one), 0.0) / left
        for j in range(columns):
            row[j] = row[j] * one[j] + lack * room[j]


@kernel
def _add(row, times, column):
    """A row so many times, and into the columns' sums."""
    for j in range(len(row)):
        row[j] *= times
        column[j] += row[j]


@kernel
def shrink(ptr, head, tau):
    """Every edge divided by the larger degree of its ends: enough where nodes may stay single."""
    n = len(ptr) - 1
    s = np.empty(n)
    product(ptr, head, tau, np.ones(n), s)
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] /= max(s[u], s[head[e]], 1.0)


@kernel
def balance(ptr, head, strict, tau, centre):
    """τ_e (1 + p_u + p_v) with the right degrees, by conjugate gradients; returns the last error.

    The system diag(degrees) + τ is a signless Laplacian, singular only along a bipartite gauge.
    Where the result is negative (inference was far from done) it is mixed with ``centre``, and
    where no edges of any weight could carry what is missing, a little of ``centre`` goes in first.
    """
    given = tau.copy()
    for share in LITTLE:
        for e in range(len(tau) if share > 0.0 else 0):
            tau[e] = (1.0 - share) * given[e] + share * centre[e]
        _fit(ptr, head, strict, tau)
        if _mix(ptr, head, strict, tau, centre):
            return


@kernel
def _fit(ptr, head, strict, tau):
    n, one = len(strict), np.ones(len(strict))
    s, p, r, none = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    bound = np.empty(n, dtype=np.bool_)
    for _ in range(4):
        product(ptr, head, tau, one, s)
        worst = 0.0
        for v in range(n):
            bound[v] = strict[v] or s[v] > 1.0
            r[v] = 1.0 - s[v] if bound[v] else 0.0
            worst = max(worst, abs(r[v]))
        if worst <= 1e-14:
            break
        conjugate(ptr, head, tau, s, none, bound, r, p, 3e-7)
        for u in range(n):
            for e in range(ptr[u], ptr[u + 1]):
                tau[e] *= 1.0 + p[u] + p[head[e]]


@kernel
def _mix(ptr, head, strict, tau, centre):
    """The nearest feasible point on the way to ``centre``, False if that is all the way there."""
    n, share, s = len(strict), 0.0, np.empty(len(strict))
    product(ptr, head, tau, np.ones(n), s)
    for v in range(n):
        if (strict[v] and not abs(s[v] - 1.0) <= 1e-12) or not s[v] <= 1.0 + 1e-12:
            share = 1.0
    for e in range(len(tau)):
        if tau[e] < 0.0:
            share = max(share, tau[e] / (tau[e] - centre[e]))
    if share > 0.0:
        for e in range(len(tau)):
            tau[e] = (
                max((1.0 - share) * tau[e] + share * centre[e], 0.0) if share < 1.0 else centre[e]
            )
    return share < 1.0
