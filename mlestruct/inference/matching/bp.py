"""Matching messages: belief propagation at ρ = 1, fractional at any other ρ above ½."""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel

FAR = 1e6  # log-odds beyond every score; a message from a node with one edge left is infinite
PERIOD = 10  # sweeps between leaps
ALONG = 0.99  # the cosine of two steps of one series


@kernel
def propagate(score, ptr, head, strict, rho, two_sided, x, sent, cold, residual, sweeps, tau,
              log_off, report):  # fmt: skip
    """Messages m_{v→e} = −log Σ_{f≠e} exp n_f, n_f = W + ρ m_{u→f} − (1−ρ) m_{v→f}.

    logit τ = W + ρ(m_u + m_v). ``sent`` holds the messages of every edge's tail and head, ``x``
    becomes ρ log Σ exp n, ``log_off`` log(1−τ). Two-sided graphs alternate; elsewhere all nodes
    send at once the mean with what they sent before, or the common scale would oscillate.

    Messages that creep leap: as far as a geometric series of steps like the last ones goes, which
    is without end towards a vertex, but at most twice as far as the last time, and back again where
    that has led nowhere.
    """
    n, m = len(strict), len(head)
    tails, top = np.zeros(n, dtype=np.bool_), np.empty(n, dtype=np.int64)
    for u in range(n):
        tails[u] = ptr[u + 1] > ptr[u]
    peak, rest, degree = np.empty(n), np.empty(n), np.empty(n)
    if cold:
        _begin(ptr, head, rho, x, tau, sent)
    else:
        tau[:] = 0.0  # what it held before is no part of a warm start
    both = np.ones(n, dtype=np.bool_)
    worst, before, sweep, keep = np.inf, np.inf, 0, 0.0
    older, old, held = sent.copy(), sent.copy(), sent.copy()
    leap, mark = 1.0, np.inf
    while sweep < sweeps:
        sweep += 1
        if sweep % PERIOD in (0, PERIOD - 1):
            older[:] = old
            old[:] = sent
        if two_sided:
            _send(score, ptr, head, strict, rho, tails, keep, sent, top, peak, rest)
            _send(score, ptr, head, strict, rho, ~tails, keep, sent, top, peak, rest)
        else:
            _send(score, ptr, head, strict, rho, both, max(keep, 0.5), sent, top, peak, rest)
        worst = _believe(score, ptr, head, strict, rho, sent, peak, rest, tau, log_off, degree)
        if worst <= residual:
            break
        if sweep % PERIOD > 0:
            continue
        if worst > mark:
            sent[:], leap, mark = held, max(0.125 * leap, 1.0), np.inf
            continue
        far = min(_to_come(older, old, sent), leap)
        if far > 0.0:
            held[:], leap, mark = sent, 2.0 * leap, worst
            _leap(far, old, sent)
        elif sweep % 50 == 0:
            # No progress over fifty sweeps: a cycle, which a heavier mean damps.
            if worst > 0.5 * before:
                keep = min(0.5 * (1.0 + keep), 0.9)
            before = worst
    for v in range(n):
        x[v] = rho * _log_sum(peak[v], rest[v], strict[v]) if rest[v] >= 0.0 else 0.0
    largest = 0.0
    for e in range(m):
        largest = max(largest, tau[e])
    report[0], report[1], report[2] = worst, report[1] + sweep, largest


@kernel
def _begin(ptr, head, rho, x, tau, sent):
    """The messages that scaling's duals and τ stand for."""
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            off = np.log1p(-min(tau[e], 1.0 - 1e-15))
            sent[0, e] = -x[u] / rho - off
            sent[1, e] = -x[head[e]] / rho - off


@kernel
def _leap(far, old, sent):
    """So many steps like the last, at once."""
    for side in range(2):
        for e in range(sent.shape[1]):
            sent[side, e] = min(sent[side, e] + far * (sent[side, e] - old[side, e]), FAR)


@kernel
def _to_come(older, old, sent):
    """How many steps like the last are to come, if the last two are of a series; 0 if they are not.

    A series whose steps shrink by less than a fifth: others need no help.
    """
    first, last, both = 0.0, 0.0, 0.0
    for side in range(2):
        for e in range(sent.shape[1]):
            a, b = old[side, e] - older[side, e], sent[side, e] - old[side, e]
            first += a * a
            last += b * b
            both += a * b
    if not (both > 0.8 * first and both > ALONG * np.sqrt(first * last)):
        return 0.0
    return both / (first - both) if both < first else np.inf


@kernel
def _log_sum(peak, rest, strict):
    """log(exp(peak) + rest·exp(peak), and 1 for a node that may stay single)."""
    whole = peak + np.log1p(rest)
    return whole if strict else max(whole, 0.0) + np.log1p(np.exp(-abs(whole)))


@kernel
def _send(score, ptr, head, strict, rho, part, keep, sent, top, peak, rest):
    """All messages of the nodes in one part; the largest term is left out, not subtracted."""
    peak[:] = -np.inf
    rest[:] = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            a = score[e] + rho * sent[1, e] - (1.0 - rho) * sent[0, e]
            b = score[e] + rho * sent[0, e] - (1.0 - rho) * sent[1, e]
            if a > peak[u]:
                peak[u], top[u] = a, e
            if b > peak[v]:
                peak[v], top[v] = b, e
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            if e != top[u]:
                rest[u] += np.exp(score[e] + rho * sent[1, e] - (1.0 - rho) * sent[0, e] - peak[u])
            if e != top[v]:
                rest[v] += np.exp(score[e] + rho * sent[0, e] - (1.0 - rho) * sent[1, e] - peak[v])
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            v = head[e]
            a = score[e] + rho * sent[1, e] - (1.0 - rho) * sent[0, e]
            b = score[e] + rho * sent[0, e] - (1.0 - rho) * sent[1, e]
            if part[u]:
                new = _message(a, e == top[u], peak[u], rest[u], strict[u])
                sent[0, e] = keep * sent[0, e] + (1.0 - keep) * new
            if part[v]:
                new = _message(b, e == top[v], peak[v], rest[v], strict[v])
                sent[1, e] = keep * sent[1, e] + (1.0 - keep) * new


@kernel
def _message(own, largest, peak, rest, strict):
    """−log of the others' sum, and of staying single where that is allowed."""
    others = rest if largest else 1.0 + rest - np.exp(own - peak)
    if strict:
        return FAR if others <= 0.0 else min(-(peak + np.log(others)), FAR)
    if others <= 0.0:
        return -0.0
    whole = peak + np.log(others)
    return -(max(whole, 0.0) + np.log1p(np.exp(-abs(whole))))


@kernel
def _believe(score, ptr, head, strict, rho, sent, peak, rest, tau, log_off, degree):
    """τ of every edge; the largest error of a node's degree, or change of a marginal."""
    degree[:] = 0.0
    worst = 0.0
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            odds = score[e] + rho * (sent[0, e] + sent[1, e])
            tail = np.exp(-abs(odds))
            new = 1.0 / (1.0 + tail) if odds > 0.0 else tail / (1.0 + tail)
            log_off[e] = -(max(odds, 0.0) + np.log1p(tail))
            worst = max(worst, abs(new - tau[e]))
            tau[e] = new
            degree[u] += new
            degree[head[e]] += new
    for v in range(len(strict)):
        if strict[v]:
            worst = max(worst, abs(degree[v] - 1.0))
        elif degree[v] > 0.0:
            slack = np.exp(-_log_sum(peak[v], rest[v], False))
            worst = max(worst, abs(degree[v] + slack - 1.0))
    return worst
