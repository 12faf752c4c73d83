"""Newton on the node duals: what finishes where scaling creeps along a nearly free direction."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.kernels import absorb, conjugate, entry, product, sums
from mlestruct.kernels import kernel

NEARER = 0.1  # of a slack's price a step leaves at least: beyond lie slacks above one
DENSE = 300  # nodes of a two-sided graph up to which Newton's systems are solved by elimination
GAINED = 0.2  # of the error: a step that leaves no more has another by the same elimination
NEAR = 1e-3  # of τ = 1, where 1 − τ comes from the equation that τ solves
IDLE = 5  # steps that lower neither the value nor the error: they are rounding's
LONGEST, FAR = 20.0, 100.0  # nats: of a step, and of steps after which the kernel is made anew


@kernel
def polish(score, ptr, head, strict, c, rho, two_sided, x, s, kernel, cut, residual,
           rounds, count):  # fmt: skip
    """Damped Newton on the convex dual (c ≥ 0); the last error, and whether the kernel is cut.

    ``count`` gets the steps, added to those so far, and the most turns of conjugate gradients.

    It moves the factors s, see :func:`absorb`: an exponential per node and none per edge. The
    Hessian is the signless Laplacian of dτ/dlog z plus the slacks'. Conjugate gradients, O(edges) a
    turn, solve for it plus diag(|gradient|) / ``LONGEST``, which vanishes in the end: where a
    curvature is far below its gradient, one node's step would be so long that all others' were cut
    to nothing. Small two-sided graphs are eliminated, which their nearly free directions (rows that
    hardly share a column, eigenvalues of 1e-10 and less) do not harm.
    """
    n, moved = len(strict), 0.0
    direct = two_sided and n <= DENSE
    table = np.empty((n, n) if direct else (0, 0))
    curvature, gap, ground = np.empty(len(score)), np.empty(n), np.empty(n)
    p, d, q, old = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    everyone, one = np.ones(n, dtype=np.bool_), np.ones(n)
    worst, value = _evaluate(ptr, head, kernel, strict, c, rho, x, s, curvature, gap, ground)
    before, least, idle = 0.0, worst, 0
    for _ in range(rounds):
        if cut or moved >= FAR:
            cut, moved = absorb(score, ptr, head, x, s, kernel), 0.0
            worst, value = _evaluate(
                ptr, head, kernel, strict, c, rho, x, s, curvature, gap, ground
            )
        if worst <= residual or idle > IDLE:
            break
        old[:] = s
        count[0] += 1.0
        kept, before = direct and worst <= GAINED * before, worst
        if direct and not kept:
            q[:] = ground
            eliminate(ptr, head, curvature, q, table, d)
        if direct:
            eliminated(ptr, table, d, gap, p)
        else:
            for v in range(n):  # no node alone goes further than LONGEST, nor holds others up
                ground[v] += abs(gap[v]) / LONGEST
            product(ptr, head, curvature, one, q)
            share = min(0.1, worst)
            turns = conjugate(ptr, head, curvature, q, ground, everyone, gap, p, share)
            count[1] = max(count[1], turns)
        far = 0.0
        for v in range(n):
            far = max(far, abs(p[v]))
        step, found = min(1.0, LONGEST / max(far, 1e-300)), False
        for _ in range(30):
            for v in range(n):
                s[v] = old[v] * np.exp(-step * p[v])
                if not strict[v]:  # a slack is at most one, so x ≥ 0
                    room = x[v] - np.log(old[v])
                    s[v] = min(s[v], old[v] * np.exp((1.0 - NEARER) * room))
            worst, new = _evaluate(ptr, head, kernel, strict, c, rho, x, s, curvature, gap, ground)
            if new <= value + 1e-14 * abs(value):
                found = True
                break
            step *= 0.5
        if found:
            gained = new < value - 1e-14 * abs(value) or worst < 0.9 * least
            idle, least = 0 if gained else idle + 1, min(least, worst)
            value, moved = new, moved + step * far
            continue
        s[:] = old
        worst, _ = _evaluate(ptr, head, kernel, strict, c, rho, x, s, curvature, gap, ground)
        if not kept:
            break
        before = 0.0
    return worst, cut


@kernel
def eliminate(ptr, head, weight, ground, table, pivot):
    """Eliminates signless Laplacian of ``weight`` + ground on a two-sided graph. O(n³).

    With one side's signs turned it is a Laplacian, whose elimination only adds what is positive
    (Grassmann, Taksar and Heyman): pivots keep all their digits however small they are. ``ground``
    is used up.
    """
    n = len(pivot)
    table[:] = 0.0  # below the diagonal
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            table[max(u, head[e]), min(u, head[e])] = weight[e]
    for k in range(n - 1, -1, -1):
        pivot[k] = ground[k]
        for i in range(k):
            pivot[k] += table[k, i]
        for i in range(k):
            if table[k, i] > 0.0:
                share = table[k, i] / pivot[k]
                ground[i] += share * ground[k]
                for j in range(i):
                    table[i, j] += share * table[k, j]


@kernel
def eliminated(ptr, table, pivot, r, p):
    """p solves the system of :func:`eliminate` for the right side r, which is used up.

    A direction that is free in its component stays where it is.
    """
    n = len(r)
    for v in range(n):
        if ptr[v + 1] == ptr[v]:
            r[v] = -r[v]
    for k in range(n - 1, -1, -1):
        share = r[k] / pivot[k] if pivot[k] > 0.0 else 0.0
        for i in range(k):
            r[i] += table[k, i] * share
    for k in range(n):
        known = r[k]
        for i in range(k):
            known += table[k, i] * p[i]
        p[k] = known / pivot[k] if pivot[k] > 0.0 else 0.0
    for v in range(n):
        if ptr[v + 1] == ptr[v]:
            p[v] = -p[v]


@kernel
def _slack(x, s, rho):
    """What stays single of a node at the price x, divided by s."""
    return np.exp((np.log(s) - x) / rho)


@kernel
def _added(total, lost, term):
    """A sum and what its rounding has lost, with one term more (Neumaier)."""
    new = total + term
    lost += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
    return new, lost


@kernel
def _evaluate(ptr, head, kernel, strict, c, rho, x, s, curvature, gap, ground):
    """Every node's Σ τ + slack − 1; the largest, and the dual value.

    ``curvature`` is dτ/dlog z of the edges, ``ground`` that of the slacks. The value is
    :func:`mlestruct.inference.matching.values.dual_value`, summed so that its last digits, by which
    steps are judged, are right for 10,000 nodes, too.
    """
    total, lost = 0.0, 0.0
    if c == 0.0:
        sums(ptr, head, kernel, s, c, True, True, gap, ground)
        total = 0.5 * gap.sum()
    else:
        gap[:] = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            z = kernel[e] * s[u] * s[head[e]]
            curvature[e] = z
            if c != 0.0:
                t = entry(z, c)
                off = np.log1p(-t) if t < 0.5 else (np.log(z) - np.log(t)) / -c
                away = 1.0 - t if t < 1.0 - NEAR else min(np.exp(off), NEAR)
                curvature[e] = t * away / max(away + c * t, 1e-12)
                total, lost = _added(total, lost, (1.0 - c) * t - c * off)
                gap[u] += t
                gap[head[e]] += t
    worst = 0.0
    for v in range(len(x)):
        gap[v] -= 1.0
        ground[v] = 0.0
        total, lost = _added(total, lost, x[v] - np.log(s[v]) - rho)
        if not strict[v]:
            single = _slack(x[v], s[v], rho)
            gap[v] += single
            ground[v] = single / rho
            total, lost = _added(total, lost, rho * single)
        worst = max(worst, abs(gap[v]))
    return worst, total + lost
