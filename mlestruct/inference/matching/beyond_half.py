"""Matching marginals at ρ > ½: by scaling, by messages, by ascent; loaded where one asks."""

from __future__ import annotations

import numpy as np

from mlestruct.inference.matching.bethe import propagate_bethe
from mlestruct.inference.matching.bp import propagate
from mlestruct.inference.matching.newton import DENSE
from mlestruct.inference.matching.scale import reachable, scale
from mlestruct.inference.matching.scaling import COLD, LOGS, RAISED, SCALED, SENT, SPLIT, mend
from mlestruct.inference.matching.split import approach, split_value
from mlestruct.inference.matching.values import dual_value, stationary_value
from mlestruct.kernels import kernel

SLIGHT = 20.0  # nats: what a node that may be single pays, beyond which it is none
NEAR, AGREE = 1e-4, 1e-7  # so near to a vertex an answer proves itself, to so much


@kernel
def infer_beyond_half(score, ptr, head, strict, component, rho, two_sided, rows, columns, centre,
           residual, sweeps, x, sent, mode, tau, log_z):  # fmt: skip
    """Every example: from where its last call ended, if that gets there, else from the start."""
    report, spare = np.zeros(5), np.empty(len(head))
    for m in range(len(score)):
        given = (score[m], ptr, head, strict, component, rho, two_sided)
        out = (x[m], sent[m], reachable(score[m], residual), sweeps, tau[m], spare, report)
        state, log_z[m] = COLD, 0.0
        if mode[m] != COLD and mode[m] != SPLIT:
            state, log_z[m] = _inferred(*given, *out, mode[m])
        if state == COLD:
            state, log_z[m] = _inferred(*given, *out, COLD)
        mode[m] = state
        mend(ptr, head, strict, rows, columns, tau[m], centre)
        if not report[0] <= 1e-7:
            log_z[m] = split_value(score[m], ptr, head, strict, rho, x[m])


@kernel
def _inferred(score, ptr, head, strict, component, rho, two_sided, x, sent, residual,
              sweeps, tau, spare, report, start):  # fmt: skip
    """(the state reached, log Z): scale, or send messages where a τ is too large for scaling.

    From a warm ``start`` COLD is all that a call returns unless it has converged in the way it
    began: where it has not, what another problem left is no better than nothing.
    """
    c, state = 1.0 - 2.0 * rho, start
    if start <= SCALED:
        state = _scaled(score, ptr, head, strict, component, rho, two_sided, x, start,
                        residual, sweeps, tau, report)  # fmt: skip
    if state == SCALED:
        value = dual_value(score, ptr, head, strict, c, rho, x, tau)
        return (state if start == COLD or report[0] <= residual else COLD), value
    if start == SCALED:
        return COLD, 0.0
    state = _sent(score, ptr, head, strict, component, rho, two_sided, x, sent, state,
                  residual, sweeps, tau, spare, report)  # fmt: skip
    return state, stationary_value(score, ptr, head, strict, rho, x, tau, spare)


@kernel
def _holds(score, ptr, head, strict, rho, x, tau, log_off):
    """Near a vertex, and where degrees do not fit: the value is the nodes' own bound, too.

    Messages that hardly change τ leave any vertex where it is, whatever the scores have become.
    """
    degree, near = np.zeros(len(strict)), False
    for u in range(len(ptr) - 1):
        for e in range(ptr[u], ptr[u + 1]):
            degree[u] += tau[e]
            degree[head[e]] += tau[e]
            near = near or tau[e] > 1.0 - NEAR
    for v in range(len(strict)):
        single = 0.0 if strict[v] else np.exp(-x[v] / rho)
        near = near or single > 1.0 - NEAR or abs(degree[v] + single - 1.0) > AGREE
    if not near:
        return True
    value = stationary_value(score, ptr, head, strict, rho, x, tau, log_off)
    bound = split_value(score, ptr, head, strict, rho, x)
    return abs(bound - value) <= AGREE * (1.0 + abs(value))


@kernel
def _scaled(score, ptr, head, strict, component, rho, two_sided, x, state, residual,
            sweeps, tau, report):  # fmt: skip
    """SCALED where scaling is enough: while every τ is well below 1/(2ρ)."""
    if state == COLD:
        scale(score, ptr, head, strict, component, 0.0, 0.5, two_sided, x, True, 1e-2,
              min(30, sweeps), tau, report)  # fmt: skip
        for v in range(len(x)):
            if not strict[v]:
                x[v] += (2.0 * rho - 1.0) * min(x[v], SLIGHT)
        if report[2] > 0.4 / rho:
            return COLD
    scale(score, ptr, head, strict, component, 1.0 - 2.0 * rho, rho, two_sided, x, False,
          residual, min(100, sweeps), tau, report)  # fmt: skip
    return SCALED if report[0] <= residual and report[2] < 0.45 / rho else COLD


@kernel
def _sent(score, ptr, head, strict, component, rho, two_sided, x, sent, state, residual,
          sweeps, tau, log_off, report):  # fmt: skip
    """At ρ = 1 messages in floats, below it ascent; then the least of the nodes' own bounds.

    Large graphs, or with odd cycles: messages in the log domain, and at ρ = 1 ascent at last.
    """
    old, enough = x.copy(), max(residual, 1e-7)
    if rho == 1.0 and state != LOGS:
        if propagate_bethe(score, ptr, head, strict, two_sided, state == COLD, residual, sweeps, x,
                           sent, tau, log_off, report) and _holds(
                               score, ptr, head, strict, rho, x, tau, log_off):  # fmt: skip
            return SENT
        x[:] = old
    elif state != LOGS:
        _majorise(score, ptr, head, strict, component, rho, two_sided, x, state == COLD,
                  residual, sweeps, tau, sent[0], report)  # fmt: skip
        log_off[:] = sent[0]
        if report[0] <= enough and _holds(score, ptr, head, strict, rho, x, tau, log_off):
            return RAISED
        x[:] = old
    if state in (SENT, RAISED):
        return COLD
    if two_sided and len(x) <= DENSE and state == COLD:
        if not approach(score, ptr, head, strict, rho, x, tau, enough, 12) <= enough:
            approach(score, ptr, head, strict, rho, x, tau, enough, 100)
        report[0] = np.inf  # of its own ρ: the value is to be the bound
        return SPLIT
    propagate(score, ptr, head, strict, rho, two_sided, x, sent, state != LOGS, residual, sweeps,
              tau, log_off, report)  # fmt: skip
    if report[0] <= enough and _holds(score, ptr, head, strict, rho, x, tau, log_off):
        return LOGS
    if rho == 1.0 and state == COLD:
        x[:] = old
        _majorise(score, ptr, head, strict, component, rho, two_sided, x, True, residual,
                  sweeps, tau, log_off, report)  # fmt: skip
    return COLD


@kernel
def _majorise(score, ptr, head, strict, component, rho, two_sided, x, cold, residual,
              sweeps, tau, log_off, report):  # fmt: skip
    """Ascent for any ρ > ½: the convex part −c(1−τ)log(1−τ) of H by its tangent, then scaling.

    Every round is a concave problem of the kind ρ = ½ solves. Few rounds do below ρ = 1, where
    messages creep at large scores; at ρ = 1 it is slow, and never a cycle. ``log_off`` is where
    the next call starts.
    """
    c, linear = 1.0 - 2.0 * rho, np.empty(len(score))
    if cold:
        log_off[:] = 0.0
    worst = np.inf
    for turn in range(min(sweeps, 300)):
        for e in range(len(score)):
            linear[e] = score[e] + c * log_off[e]
        scale(linear, ptr, head, strict, component, 0.0, rho, two_sided, x,
              cold and turn == 0, residual, sweeps, tau, report)  # fmt: skip
        worst = 0.0
        for e in range(len(score)):
            off = np.log(max(1.0 - tau[e], 1e-16))
            worst = max(worst, abs(np.exp(off) - np.exp(log_off[e])))
            log_off[e] = off
        if worst <= residual:
            break
    report[0] = max(report[0], worst)
