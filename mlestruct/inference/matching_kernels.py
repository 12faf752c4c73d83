"""Scaling kernels: τ / (1−τ)^c = exp(W − x_u − x_v), node duals x moved until the degrees fit."""

from __future__ import annotations

import numba as nb
import numpy as np

# A row sum that was reassociated differs in its last bits only; nothing here relies on NaN.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@nb.njit(cache=True, nogil=True)
def entry(z, c):
    """τ of the lower branch of log τ − c log(1−τ) = log z; where there is none, its tip 1/(1−c)."""
    if c == 0.0:
        return z
    if c == 1.0:
        return z / (1.0 + z)
    if c == -1.0:
        return 2.0 * z / (1.0 + np.sqrt(max(1.0 - 4.0 * z, 0.0)))
    if z <= 0.0:
        return 0.0
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


@nb.njit(cache=True, nogil=True, fastmath=FAST)
def _linear(kernel, s, first, own, y, tails, heads):
    """One row of Σ K s: its own sum, and what it adds to its heads'."""
    mass = 0.0
    if tails and heads:
        for k in range(len(kernel)):
            mass += kernel[k] * s[first + k]
            y[first + k] += kernel[k] * own
    elif tails:
        for k in range(len(kernel)):
            mass += kernel[k] * s[first + k]
    else:
        for k in range(len(kernel)):
            y[first + k] += kernel[k] * own
    return mass


@nb.njit(cache=True, nogil=True, fastmath=FAST)
def _bethe(kernel, s, first, own, y, slope):
    """The same for τ = 2z/(1 + √(1−4z)), with dτ/dlog z = τ(1−τ)/(1−2τ)."""
    mass, bend = 0.0, 0.0
    for k in range(len(kernel)):
        z = kernel[k] * s[first + k] * own
        root = np.sqrt(max(1.0 - 4.0 * z, 1e-16))
        tau = 2.0 * z / (1.0 + root)
        d = z / root
        mass += tau
        bend += d
        y[first + k] += tau
        slope[first + k] += d
    return mass, bend


@nb.njit(cache=True, nogil=True)
def sums(ptr, head, kernel, s, c, tails, heads, y, slope):
    """y_v = Σ_e τ_e and slope_v = Σ_e dτ_e / dlog s_v, at the tails, the heads, or both."""
    y[:] = 0.0
    slope[:] = 0.0
    for u in range(len(ptr) - 1):
        lo, hi = ptr[u], ptr[u + 1]
        if hi == lo:
            continue
        own, first = s[u], head[lo]
        adjacent = head[hi - 1] - first == hi - 1 - lo
        if adjacent and c == 0.0:
            y[u] += _linear(kernel[lo:hi], s, first, own, y, tails, heads)
        elif c == 0.0:
            for e in range(lo, hi):
                y[u] += kernel[e] * s[head[e]]
                y[head[e]] += kernel[e] * own
        elif adjacent and c == -1.0:
            mass, bend = _bethe(kernel[lo:hi], s, first, own, y, slope)
            y[u] += mass
            slope[u] += bend
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


@nb.njit(cache=True, nogil=True)
def absorb(score, ptr, head, x, s, kernel):
    """Move the factors into the duals; kernel = exp(score − x_u − x_v)."""
    for v in range(len(x)):
        x[v] -= np.log(s[v])
        s[v] = 1.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            kernel[e] = np.exp(min(score[e] - x[u] - x[head[e]], 600.0))


@nb.njit(cache=True, nogil=True)
def log_round(score, ptr, head, strict, rho, part, x, top, mass):
    """x_v = the exact dual of node v at c = 0, in the log domain, for the nodes of one part."""
    top[:] = -np.inf
    mass[:] = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            top[u] = max(top[u], score[e] - x[v])
            top[v] = max(top[v], score[e] - x[u])
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            mass[u] += np.exp(score[e] - x[v] - top[u])
            mass[v] += np.exp(score[e] - x[u] - top[v])
    for v in range(len(x)):
        if part[v] and mass[v] > 0.0:
            goal = top[v] + np.log(mass[v])
            x[v] = goal if strict[v] else _loose(goal, rho)


@nb.njit(cache=True, nogil=True)
def _loose(goal, rho):
    """x with exp(goal − x) + exp(−x/ρ) = 1: what is not matched stays single."""
    if rho <= 0.0:
        return max(goal, 0.0)
    x = max(goal, 0.0)  # the left side is at least one here: Newton in its logarithm is monotone
    for _ in range(60):
        a, b = np.exp(goal - x), np.exp(-x / rho)
        step = (a + b) * np.log(a + b) / (a + b / rho)
        x += step
        if abs(step) <= 1e-15 * max(1.0, x):
            break
    return x


@nb.njit(cache=True, nogil=True)
def scale(score, ptr, head, strict, component, weights, rho, two_sided, x, cold, residual, sweeps,
          tau, report):  # fmt: skip
    """Scale until every degree fits to ``residual``; report = (residual, sweeps, largest τ).

    Two-sided graphs alternate; on others all nodes move at once, and each component's common
    factor by half: there scaling has the eigenvalue −1, and would oscillate for ever.
    """
    n, c = len(strict), 1.0 - 2.0 * rho
    tails, everyone = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    for u in range(n):
        tails[u] = ptr[u + 1] > ptr[u]
    s, y, slope, move = np.ones(n), np.empty(n), np.empty(n), np.empty(n)
    common, total = np.empty(len(weights)), np.empty(len(weights))
    if cold:
        _start(score, ptr, head, strict, rho, two_sided, tails, everyone, x, y, slope)
    absorb(score, ptr, head, x, s, tau)
    worst, before, damped, sweep = np.inf, np.inf, False, 0
    while sweep < sweeps:
        sweep += 1
        if two_sided:
            sums(ptr, head, tau, s, c, False, True, y, slope)
            _step(strict, everyone, tails, False, rho, x, s, y, slope, move)
            sums(ptr, head, tau, s, c, True, False, y, slope)
            worst = _step(strict, everyone, tails, True, rho, x, s, y, slope, move)
        else:
            sums(ptr, head, tau, s, c, True, True, y, slope)
            worst = _together(strict, component, weights, rho, damped, x, s, y, slope, move,
                              common, total)  # fmt: skip
            damped = worst > 0.9 * before
        if not worst > residual:
            break
        before = worst
        low, high = s.min(), s.max()
        if not (low > 1e-60 and high < 1e60):
            if not (low > 1e-200 and high < 1e200):
                for v in range(n):
                    s[v] = min(max(s[v], 1e-200), 1e200) if s[v] == s[v] else 1.0
            absorb(score, ptr, head, x, s, tau)
    absorb(score, ptr, head, x, s, tau)
    largest = 0.0
    for e in range(len(tau)):
        tau[e] = entry(tau[e], c)
        largest = max(largest, tau[e])
    report[0], report[1], report[2] = worst, sweep, largest


@nb.njit(cache=True, nogil=True)
def _start(score, ptr, head, strict, rho, two_sided, tails, everyone, x, y, slope):
    """Two rounds in the log domain bring every row's largest term near one, whatever the scale."""
    x[:] = -np.inf
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            x[u] = max(x[u], 0.5 * score[e])
            x[head[e]] = max(x[head[e]], 0.5 * score[e])
    for v in range(len(x)):
        if x[v] == -np.inf:
            x[v] = 0.0
    if two_sided:
        log_round(score, ptr, head, strict, rho, tails, x, y, slope)
        log_round(score, ptr, head, strict, rho, ~tails, x, y, slope)
        return
    for _ in range(2):
        old = x.copy()
        log_round(score, ptr, head, strict, rho, everyone, x, y, slope)
        for v in range(len(x)):
            x[v] = 0.5 * (x[v] + old[v])


@nb.njit(cache=True, nogil=True)
def _newton(v, strict, rho, x, s, y, slope):
    """Newton's step of log s_v for log(Σ τ + slack) = 0, and the row's error."""
    mass, bend = y[v], slope[v]
    if not strict[v] and rho > 0.0:
        slack = np.exp(-(x[v] - np.log(s[v])) / rho)
        mass += slack
        bend += slack / rho
    if mass <= 0.0:
        return 0.0, 1.0
    size = np.log(mass)
    step = -size * mass / max(bend, 1e-3 * mass)
    limit = 1.0 + abs(size)
    step = min(max(step, -limit), limit)
    room = x[v] - np.log(s[v])
    if not strict[v] and rho <= 0.0 and step >= room:
        # A slack without an entropy only forbids: x ≥ 0, and 0 where nothing binds.
        return room, max(mass - 1.0, abs(room))
    return step, abs(mass - 1.0)


@nb.njit(cache=True, nogil=True)
def _step(strict, everyone, tails, side, rho, x, s, y, slope, move):
    """Move the nodes of one side by Newton; the largest error before. No two of them share edges."""
    worst = 0.0
    for v in range(len(s)):
        if tails[v] == side and (y[v] > 0.0 or strict[v]):
            step, error = _newton(v, strict, rho, x, s, y, slope)
            worst = max(worst, error)
            s[v] *= np.exp(step)
    return worst


@nb.njit(cache=True, nogil=True)
def _together(strict, component, weights, rho, damped, x, s, y, slope, move, common, total):
    """Move all nodes; a component's mean movement counts half, or all of it does when damped."""
    worst = 0.0
    common[:] = 0.0
    total[:] = 0.0
    for v in range(len(s)):
        move[v] = 0.0
        if y[v] > 0.0 or strict[v]:
            move[v], error = _newton(v, strict, rho, x, s, y, slope)
            worst = max(worst, error)
            weight = slope[v]
            common[component[v]] += weight * move[v]
            total[component[v]] += weight
    for v in range(len(s)):
        if damped:
            s[v] *= np.exp(0.5 * move[v])
        elif total[component[v]] > 0.0:
            s[v] *= np.exp(move[v] - 0.5 * common[component[v]] / total[component[v]])
    return worst
