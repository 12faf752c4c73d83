"""One entry, one pass, one round of scaling: τ / (1−τ)^c = exp(W − x_u − x_v), node duals x."""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel

MOST = 1e300  # an entry or a degree whose logarithm is taken
FREE = 1e-16  # of a weight: what its ends have besides is rounding
# A row sum that was reassociated differs in its last bits only; nothing here relies on NaN.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@kernel
def entry(z, c):
    """τ of the lower branch of log τ − c log(1−τ) = log z; where there is none, its tip 1/(1−c)."""
    if c == 0.0:
        return z
    if c == 1.0:
        return z / (1.0 + z) if z < MOST else 1.0
    if c == -1.0:
        return 2.0 * z / (1.0 + np.sqrt(max(1.0 - 4.0 * z, 0.0)))
    if z <= 0.0:
        return 0.0
    z = min(z, MOST)
    # In p = logit τ the left side is concave: Newton from the left never passes the root.
    goal, p = np.log(z), np.log(z)
    for _ in range(60):
        soft = max(p, 0.0) + np.log1p(np.exp(-abs(p)))
        tau = 1.0 / (1.0 + np.exp(-p))
        slope = 1.0 - (1.0 - c) * tau
        if slope <= 1e-9:
            return 1.0 / (1.0 - c)
        step = (goal - p + (1.0 - c) * soft) / slope
        p += step
        if step <= 1e-15 * max(1.0, abs(p)):
            break
    return 1.0 / (1.0 + np.exp(-p))


@kernel(fastmath=FAST)
def _linear(kernel, s, own, y):
    """One row of Σ K s: its own sum, returned, and what it adds to its heads', into y.

    Arrays are the row's own slices: from an offset the loop runs five times as long.
    """
    mass = 0.0
    for k in range(len(kernel)):
        mass += kernel[k] * s[k]
        y[k] += kernel[k] * own
    return mass


@kernel(fastmath=FAST)
def linear_tail(kernel, s):
    """The row's own sum alone."""
    mass = 0.0
    for k in range(len(kernel)):
        mass += kernel[k] * s[k]
    return mass


@kernel(fastmath=FAST)
def _linear_heads(kernel, own, y):
    """What a row adds to its heads' sums alone."""
    for k in range(len(kernel)):
        y[k] += kernel[k] * own


@kernel(fastmath=FAST)
def _bethe(kernel, s, own, y, slope):
    """As :func:`_linear` for τ = 2z/(1 + √(1−4z)), with dτ/dlog z = τ(1−τ)/(1−2τ)."""
    mass, curvature = 0.0, 0.0
    for k in range(len(kernel)):
        z = kernel[k] * s[k] * own
        root = np.sqrt(max(1.0 - 4.0 * z, 1e-16))
        tau = 2.0 * z / (1.0 + root)
        d = z / root
        mass += tau
        curvature += d
        y[k] += tau
        slope[k] += d
    return mass, curvature


@kernel
def sums(ptr, head, kernel, s, c, tails, heads, y, slope):
    """y_v = Σ_e τ_e and slope_v = Σ_e dτ_e / dlog s_v, at the tails, the heads, or both."""
    y[:] = 0.0
    slope[:] = 0.0
    for u in range(len(ptr) - 1):
        lo, hi = ptr[u], ptr[u + 1]
        if hi == lo:
            continue
        own, first, last = s[u], head[lo], head[lo] + hi - lo
        adjacent = head[hi - 1] == last - 1
        if adjacent and c == 0.0:
            if tails and heads:
                y[u] += _linear(kernel[lo:hi], s[first:last], own, y[first:last])
            elif tails:
                y[u] += linear_tail(kernel[lo:hi], s[first:last])
            else:
                _linear_heads(kernel[lo:hi], own, y[first:last])
        elif c == 0.0:
            for e in range(lo, hi):
                y[u] += kernel[e] * s[head[e]]
                y[head[e]] += kernel[e] * own
        elif adjacent and c == -1.0:
            mass, curvature = _bethe(
                kernel[lo:hi], s[first:last], own, y[first:last], slope[first:last]
            )
            y[u] += mass
            slope[u] += curvature
        else:
            for e in range(lo, hi):
                tau = entry(kernel[e] * own * s[head[e]], c)
                d = tau * (1.0 - tau) / max(1.0 - (1.0 - c) * tau, 1e-9)
                y[u] += tau
                y[head[e]] += tau
                slope[u] += d
                slope[head[e]] += d
    if c == 0.0:
        for u in range(len(s)):
            y[u] *= s[u]
            slope[u] = y[u]


@kernel
def product(ptr, head, kernel, s, y):
    """y = K s for the symmetric matrix whose upper triangle is listed; s = 1 gives degrees."""
    y[:] = 0.0
    for u in range(len(ptr) - 1):
        lo, hi = ptr[u], ptr[u + 1]
        if hi == lo:
            continue
        if head[hi - 1] - head[lo] == hi - 1 - lo:
            first, last = head[lo], head[lo] + hi - lo
            y[u] += _linear(kernel[lo:hi], s[first:last], s[u], y[first:last])
        else:
            for e in range(lo, hi):
                y[u] += kernel[e] * s[head[e]]
                y[head[e]] += kernel[e] * s[u]


@kernel
def conjugate(ptr, head, weight, degree, ground, moving, r, p, share):
    """Solve (diag(ground) + B diag(weight) Bᵀ) p = r over the ``moving`` nodes; return the turns.

    B are the nodes' edges, so the matrix is the signless Laplacian of the weights, whose sums by
    node are ``degree``, plus ``ground``. Conjugate gradients, which stop once gᵀz of the residual g
    and its preconditioned z is below the start's times ``share``²: a share that falls with the
    error keeps Newton's convergence quadratic. r, zero at nodes that do not move, is used up.

    An edge of weight w that is nearly all of both its ends' leaves the direction (1, −1) nearly
    free. So the preconditioner has a 2 × 2 block for each pair of partners, see :func:`_partners`.
    With a_v = ground_v + Σ of the weights of all *other* edges at v,

        z_u = (a_v g_u + w (g_u − g_v)) / (w (a_u + a_v) + a_u a_v),    z_v likewise,

    and z_v = g_v / a_v at nodes without a partner. The a_v are sums, never differences of w and a
    degree, and a product with the matrix takes w (d_u + d_v) by itself: both keep all digits of
    an a_v that is 1e-15 times w.
    """
    n = len(r)
    d, q, z, other = np.empty(n), np.empty(n), np.empty(n), degree.copy()
    mate, likely = np.full(n, -1, dtype=np.int64), np.zeros(n)
    paired = 2.0 * _largest(weight) > degree.min()
    if paired:
        _partners(ptr, head, weight, moving, degree, mate, likely)
        product(ptr, head, weight, np.ones(n), other)
    for v in range(n):
        other[v] = max(other[v] + ground[v], FREE * likely[v], 1e-300)
    p[:] = 0.0
    rr = _precondition(other, mate, likely, r, z)
    d[:] = z
    goal, turns = max(share * share, 1e-26) * rr, 0
    while rr > goal and rr > 1e-40 and turns < 2 * n + 10:
        turns += 1
        product(ptr, head, weight, d, q)
        curve = 0.0
        for v in range(n):
            own = other[v] * d[v]
            if mate[v] >= 0:
                own += likely[v] * (d[v] + d[mate[v]])
            q[v] = q[v] + own if moving[v] else 0.0
            curve += d[v] * q[v]
        if not curve > 1e-15 * rr:
            break
        step, before = rr / curve, rr
        for v in range(n):
            p[v] += step * d[v]
            r[v] -= step * q[v]
        rr = _precondition(other, mate, likely, r, z)
        for v in range(n):
            d[v] = z[v] + rr / before * d[v]
    for u in range(n if paired else 0):
        for e in range(ptr[u], ptr[u + 1]):
            if mate[u] == head[e]:
                weight[e] = likely[u]
    return turns


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def _largest(weight):
    """The largest weight; none is NaN, so that eight are compared at a time."""
    most = 0.0
    for e in range(len(weight)):
        most = max(most, weight[e])
    return most


@kernel
def _partners(ptr, head, weight, moving, degree, mate, likely):
    """Pair the ends of an edge that is more than half of both; its weight goes to ``likely``."""
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            if 2.0 * weight[e] > max(degree[u], degree[v]) and moving[u] and moving[v]:
                mate[u], mate[v], likely[u], likely[v] = v, u, weight[e], weight[e]
                weight[e] = 0.0


@kernel
def _precondition(other, mate, likely, g, z):
    """z solves the blocks of :func:`conjugate` for g; returns gᵀz."""
    total = 0.0
    for v in range(len(g)):
        u, w = mate[v], likely[v]
        if u < 0:
            z[v] = g[v] / other[v]
        else:
            own = other[u] * g[v] + w * (g[v] - g[u])
            z[v] = own / (w * (other[u] + other[v]) + other[u] * other[v])
        total += g[v] * z[v]
    return total


@kernel
def absorb(score, ptr, head, x, s, kernel):
    """Move the factors into the duals; kernel = exp(score − x_u − x_v), and whether any is cut."""
    cut = False
    for v in range(len(x)):
        x[v] -= np.log(s[v])
        s[v] = 1.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            log = score[e] - x[u] - x[head[e]]
            cut = cut or log > 600.0
            kernel[e] = np.exp(min(log, 600.0))
    return cut
