"""Sum-product on binary pairwise graphs: one log per message and one exp per node.

Odds o and messages r are kept beside their logarithms, so that the odds of a cavity are o / r.
Tables within exp(±RANGE) and odds clipped at exp(±CLIP) keep all that finite, and a clipped cavity
lies so far beyond the table's range that its message has saturated to all digits.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from mlestruct.inference.message_kernels import FLOODING, IDLE, PATIENCE, RESIDUAL

RANGE, CLIP = 150.0, 500.0


@nb.njit(cache=True, nogil=True, error_model="numpy")
def run_pairs(score, schedule, damping, tol, sweeps, message, odds, ratio, whole, pairs):
    """As :func:`mlestruct.inference.message_kernels.run`; ``ratio`` from :func:`ratios`."""
    n = len(pairs.start) - 1
    r, o = np.exp(message), np.exp(np.minimum(np.maximum(odds, -CLIP), CLIP))
    read_r, read_o = r, o
    if schedule == FLOODING:
        read_r, read_o = r.copy(), o.copy()
    pending, waiting = np.full(n, np.inf), 0.0
    best, since, residual = np.inf, 0, np.inf
    for sweep in range(sweeps):
        residual, threshold = 0.0, waiting
        for t in range(n):
            i = t if sweep % 2 == 0 else n - 1 - t
            if schedule == RESIDUAL and pending[i] < IDLE * threshold:
                continue
            moved = _node(
                i, score, damping, message, odds, r, o, read_r, read_o, ratio, whole, pairs
            )
            residual = max(residual, moved)
            if schedule == RESIDUAL:
                pending[i] = 0.0
                for p in range(pairs.start[i], pairs.start[i + 1]):
                    pending[pairs.neighbour[p]] = max(pending[pairs.neighbour[p]], moved)
        if schedule == RESIDUAL:
            waiting = pending.max()
            residual = max(residual, waiting)
        if residual <= tol:
            return sweep + 1, residual
        if schedule == FLOODING:
            read_r[:], read_o[:] = r, o
        since += 1
        if residual < 0.5 * best:
            best, since = residual, 0
        elif since >= PATIENCE:
            damping, best, since = min(0.5 + 0.5 * damping, 0.9), residual, 0
    return sweeps, residual


@nb.njit(cache=True, nogil=True, error_model="numpy")
def ratios(score, ratio, pairs):
    """Per message (a, b, c, d): its odds are (a + b·o)/(c + d·o) for odds o at the other end.

    Returns the largest range of a table over c_α: beyond RANGE the linear domain is not safe.
    """
    widest = 0.0
    for p in range(len(pairs.table)):
        k = pairs.table[p]
        top = max(max(score[k], score[k + 1]), max(score[k + 2], score[k + 3]))
        low = min(min(score[k], score[k + 1]), min(score[k + 2], score[k + 3]))
        widest = max(widest, (top - low) / pairs.weight[p])
        corner = np.exp((score[k] - top) / pairs.weight[p])
        right = np.exp((score[k + 1] - top) / pairs.weight[p])
        down = np.exp((score[k + 2] - top) / pairs.weight[p])
        ratio[p, 2] = corner
        ratio[p, 1] = np.exp((score[k + 3] - top) / pairs.weight[p])
        ratio[p, 0] = right if pairs.second[p] else down
        ratio[p, 3] = down if pairs.second[p] else right
    return widest


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _node(i, score, damping, message, odds, r, o, read_r, read_o, ratio, whole, pairs):
    total = score[2 * i + 1] - score[2 * i]
    for p in range(pairs.start[i], pairs.start[i + 1]):
        cavity = read_o[pairs.neighbour[p]] / read_r[pairs.opposite[p]]
        fresh = (ratio[p, 0] + ratio[p, 1] * cavity) / (ratio[p, 2] + ratio[p, 3] * cavity)
        log = np.log(fresh)
        if damping > 0.0:
            log += damping * (message[p] - log)
            fresh = np.exp(log)
        message[p], r[p] = log, fresh
        total += pairs.weight[p] * log
    total /= whole[i]
    moved = abs(total - odds[i])
    odds[i], o[i] = total, np.exp(min(max(total, -CLIP), CLIP))
    return moved


@nb.njit(cache=True, nogil=True, error_model="numpy")
def pair_tables(message, odds, ratio, tau, first, pairs):
    """Beliefs of nodes and edges."""
    for i in range(len(odds)):
        small = np.exp(-abs(odds[i]))
        likely, rare = 1.0 / (1.0 + small), small / (1.0 + small)
        tau[2 * i + 1] = likely if odds[i] > 0.0 else rare
        tau[2 * i] = rare if odds[i] > 0.0 else likely
    for p in range(len(pairs.table)):
        if pairs.second[p]:
            continue
        q = pairs.opposite[p]
        i, j = pairs.neighbour[q], pairs.neighbour[p]
        a, b = odds[i] - message[p], odds[j] - message[q]
        ai, bj = np.exp(-abs(a)), np.exp(-abs(b))
        i0, i1 = (ai, 1.0) if a > 0.0 else (1.0, ai)
        j0, j1 = (bj, 1.0) if b > 0.0 else (1.0, bj)
        k = pairs.table[p]
        tau[k] = ratio[p, 2] * i0 * j0
        tau[k + 1] = ratio[p, 3] * i0 * j1
        tau[k + 2] = ratio[p, 0] * i1 * j0
        tau[k + 3] = ratio[p, 1] * i1 * j1
        tau[k : k + 4] /= tau[k : k + 4].sum()
