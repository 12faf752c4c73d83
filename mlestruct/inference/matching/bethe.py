"""Bethe messages of matchings without logarithms: what K_n with millions of pairs needs."""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel


@kernel
def propagate_bethe(score, ptr, head, strict, two_sided, cold, residual, sweeps, x, sent, kernel,
                    log_off, report):  # fmt: skip
    """m_{v→e} = 1/(S_v − K m̄), S_v = Σ K m̄ + slack, τ = z/(1+z), z = K m m̄.

    K = exp(W − x_u − x_v); on return x is moved by log S_v and the messages with it, so that they
    are 1/(1−τ), and ``kernel`` holds τ. False, with nothing kept, where a number leaves the range
    of floats or progress stops: the log domain has to do it.
    """
    n = len(strict)
    mass, top, largest = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n)
    tails, slack = np.zeros(n, dtype=np.bool_), np.zeros(n)
    for u in range(n):
        tails[u] = ptr[u + 1] > ptr[u]
        slack[u] = 0.0 if strict[u] else np.exp(-x[u])
        for e in range(ptr[u], ptr[u + 1]):
            kernel[e] = np.exp(min(score[e] - x[u] - x[head[e]], 300.0))
    if cold:
        sent[:] = 1.0
    both, worst, before = np.ones(n, dtype=np.bool_), np.inf, np.inf
    for sweep in range(sweeps):
        if two_sided:
            first = _exchange(kernel, ptr, head, slack, ~tails, False, sent, mass, top, largest)
            worst = first
            if first < 1e100:
                worst = _exchange(kernel, ptr, head, slack, tails, False, sent, mass, top, largest)
                worst = max(worst, first)
        else:
            worst = _exchange(kernel, ptr, head, slack, both, True, sent, mass, top, largest)
        report[1] += 1
        if not worst < 1e100 or (sweep % 100 == 99 and worst > 0.5 * before):
            return False
        if sweep % 100 == 99:
            before = worst
        if worst <= residual:
            break
    report[0] = worst
    report[2] = _finish(kernel, ptr, head, slack, x, sent, log_off, mass)
    return True


@kernel
def _exchange(kernel, ptr, head, slack, part, mean, sent, mass, top, largest):
    """All messages of one part's nodes, or the geometric mean with the last; the largest |Δτ|.

    A node's largest term is left out of its sum and held aside, so that no difference cancels.
    """
    mass[:] = slack
    largest[:] = -1.0
    top[:] = -1
    for u in range(len(ptr) - 1):
        most, at, total = largest[u], top[u], mass[u]
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            a, b = kernel[e] * sent[1, e], kernel[e] * sent[0, e]
            if a > most:
                total += max(most, 0.0)
                most, at = a, e
            else:
                total += a
            if b > largest[v]:
                mass[v] += max(largest[v], 0.0)
                largest[v], top[v] = b, e
            else:
                mass[v] += b
        largest[u], top[u], mass[u] = most, at, total
    worst = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            a, b = kernel[e] * sent[1, e], kernel[e] * sent[0, e]
            z = a * sent[0, e]
            weight = z / ((1.0 + z) * (1.0 + z)) if z < 1e150 else 0.0
            change = 0.0
            if part[u]:
                rest = mass[u] if e == top[u] else mass[u] + (largest[u] - a)
                change = _answer(sent, 0, e, rest, mean)
            if part[v]:
                rest = mass[v] if e == top[v] else mass[v] + (largest[v] - b)
                change = max(change, _answer(sent, 1, e, rest, mean))
            if not change < 1e250:
                return np.inf
            worst = max(worst, weight * change)
    return worst


@kernel
def _answer(sent, side, e, rest, mean):
    """The new message in its place; its relative change."""
    if not 1e-120 < rest < 1e120:
        sent[side, e] = np.inf
        return np.inf
    old = max(sent[side, e], 1e-150)
    less = old * rest
    if mean:
        less = np.sqrt(less)
    more = 1.0 / less
    sent[side, e] = old * more
    return max(less, more) - 1.0


@kernel
def _finish(kernel, ptr, head, slack, x, sent, log_off, mass):
    """τ, log(1−τ), and the duals that belong to the messages; the largest τ."""
    mass[:] = slack
    most = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            mass[u] += kernel[e] * sent[1, e]
            mass[head[e]] += kernel[e] * sent[0, e]
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            z = kernel[e] * sent[0, e] * sent[1, e]
            kernel[e] = z / (1.0 + z)
            log_off[e] = -np.log1p(z)
            most = max(most, kernel[e])
            sent[0, e] *= mass[u]
            sent[1, e] *= mass[head[e]]
    for v in range(len(x)):
        if mass[v] > 0.0:
            x[v] += np.log(mass[v])
    return most
