"""τ made exactly feasible: degrees corrected in proportion to τ, never below zero."""

from __future__ import annotations

import numpy as np

from mlestruct.blocks import begin, claim, largest
from mlestruct.inference.matching.kernels import absorb, conjugate, linear_tail, product
from mlestruct.inference.matching.scale import finish
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
def shrink(ptr, head, tau, blocks):
    """Every edge divided by the larger degree of its ends: enough where nodes may stay single."""
    n = len(ptr) - 1
    s = np.empty(n)
    product(ptr, head, tau, np.ones(n), s, blocks)
    if blocks is None:
        _shrink(ptr, head, s, tau, 0, n)
    else:
        b = claim(blocks)
        while b >= 0:
            _shrink(ptr, head, s, tau, blocks.cut[b], blocks.cut[b + 1])
            b = claim(blocks)


@kernel(forceinline=True)
def _shrink(ptr, head, s, tau, first_row, last_row):
    for u in range(first_row, last_row):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] /= max(s[u], s[head[e]], 1.0)


@kernel
def balance(score, ptr, head, strict, c, x, tau, centre, blocks):
    """τ_e (1 + p_u + p_v) with the right degrees, by conjugate gradients.

    The system diag(degrees) + τ is a signless Laplacian, singular only along a bipartite gauge.
    Where the result is negative (inference was far from done) it is mixed with ``centre``, and
    where no edges of any weight could carry what is missing, a little of ``centre`` goes in first:
    into a copy of τ as it was given, or where that is large, in blocks, into that of the prices x.
    """
    given = tau.copy() if blocks is None else tau
    for share in LITTLE:
        if share > 0.0 and blocks is None:
            tau[:] = given
        elif share > 0.0:
            s = np.ones(len(x))
            absorb(score, ptr, head, x, s, tau, blocks)
            finish(ptr, head, c, x, s, tau, blocks)
        if share > 0.0:
            _mixed(ptr, tau, centre, share, blocks)
        _fit(ptr, head, strict, tau, blocks)
        if _mix(ptr, head, strict, tau, centre, blocks):
            return


@kernel
def _mixed(ptr, tau, centre, share, blocks):
    """τ with a share of the centre."""
    if blocks is None:
        _mixture(tau, centre, share, 0, len(tau))
    else:
        b = claim(blocks)
        while b >= 0:
            _mixture(tau, centre, share, ptr[blocks.cut[b]], ptr[blocks.cut[b + 1]])
            b = claim(blocks)


@kernel(forceinline=True)
def _mixture(tau, centre, share, first, last):
    """What would be below zero is zero; all of a share is the centre itself."""
    for e in range(first, last):
        mixed = (1.0 - share) * tau[e] + share * centre[e]
        tau[e] = max(mixed, 0.0) if share < 1.0 else centre[e]


@kernel
def _fit(ptr, head, strict, tau, blocks):
    n, one = len(strict), np.ones(len(strict))
    s, p, r, none = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    bound = np.empty(n, dtype=np.bool_)
    for _ in range(4):
        product(ptr, head, tau, one, s, blocks)
        worst = 0.0
        for v in range(n):
            bound[v] = strict[v] or s[v] > 1.0
            r[v] = 1.0 - s[v] if bound[v] else 0.0
            worst = max(worst, abs(r[v]))
        if worst <= 1e-14:
            break
        conjugate(ptr, head, tau, none, bound, r, p, 3e-7, blocks)
        if blocks is None:
            _move(ptr, head, p, tau, 0, n)
        else:
            b = claim(blocks)
            while b >= 0:
                _move(ptr, head, p, tau, blocks.cut[b], blocks.cut[b + 1])
                b = claim(blocks)


@kernel(forceinline=True)
def _move(ptr, head, p, tau, first_row, last_row):
    for u in range(first_row, last_row):
        for e in range(ptr[u], ptr[u + 1]):
            tau[e] *= 1.0 + p[u] + p[head[e]]


@kernel
def _mix(ptr, head, strict, tau, centre, blocks):
    """The nearest feasible point on the way to ``centre``, False if that is all the way there."""
    n, share, s = len(strict), 0.0, np.empty(len(strict))
    product(ptr, head, tau, np.ones(n), s, blocks)
    for v in range(n):
        if (strict[v] and not abs(s[v] - 1.0) <= 1e-12) or not s[v] <= 1.0 + 1e-12:
            share = 1.0
    if blocks is None:
        share = max(share, _missing(tau, centre, 0, len(tau)))
    else:
        turn, b = begin(blocks), claim(blocks)
        while b >= 0:
            first, last = ptr[blocks.cut[b]], ptr[blocks.cut[b + 1]]
            blocks.part[turn, b, 0, 0] = _missing(tau, centre, first, last)
            b = claim(blocks)
        share = max(share, largest(blocks, turn, 0))
    if share > 0.0:
        _mixed(ptr, tau, centre, share, blocks)
    return share < 1.0


@kernel(forceinline=True)
def _missing(tau, centre, first, last):
    """The least share of the centre with which nothing is negative."""
    share = 0.0
    for e in range(first, last):
        if tau[e] < 0.0:
            share = max(share, tau[e] / (tau[e] - centre[e]))
    return share
