"""What a step's δ does to beliefs: by majorisation, by Newton's method, along the central path.

Majorisation (Domke 2009, algorithm 1): b log b ≤ b (log b⁰ − 1) + b²/b⁰ makes every step one linear
system; an entry that would not stay positive is set to ε(c) = 1/(10c)², c counting how often that
entry was: 1, 2, …. Newton's
method adds to entries that grow and multiplies those that shrink by exp(δ/b), which lands each
table entry where the prices of its sums put it.

The path is that of F(b) − μ Σ log b, whose optima have slacks z = μ/b (primal-dual interior
points). It ends at μ = LEAST: that times the number of entries is all that is missing there.
"""

from __future__ import annotations

import numpy as np

from mlestruct.kernels import kernel

ROUNDING = 1e-5  # Newton steps below this are squared by the next
FAINT = 1e-8  # marginals below this are only known absolutely
LEAST = 1e-10  # μ
BACK = 0.01  # of the way to the path's start, from another optimum
SHORT = 0.99  # of the way to the nearest entry that would become zero


@kernel(error_model="numpy")
def clamp(b, delta, clamps):
    """A majorising step; how far an entry moved at most. ``clamps`` holds the next c of each."""
    far = 0.0
    for k in range(len(b)):
        fresh = b[k] + delta[k]
        if not fresh > 0.0:
            fresh = 1.0 / (10.0 * clamps[k]) ** 2
            clamps[k] += 1.0
        far = max(far, abs(fresh - b[k]))
        b[k] = fresh
    return far


@kernel(error_model="numpy")
def newton(b, delta, nodes):
    """Newton's step; the largest relative move."""
    largest = 0.0
    for k in range(len(b)):
        share = delta[k] / b[k]
        step = abs(delta[k]) / max(b[k], FAINT) if k < nodes else abs(share)
        if not step <= largest:
            largest = step
        b[k] = b[k] + delta[k] if share > 0.0 else max(b[k] * np.exp(share), 1e-200)
    return largest


@kernel
def converged(moved, before, tol):
    """Whether the next step, which Newton's convergence foretells, would be below ``tol``."""
    if moved <= tol:
        return True
    return moved <= ROUNDING and before < np.inf and moved * (moved / before) ** 2 <= tol


@kernel
def central(score, frame, b, slack, back):
    """``back`` of the way to the path's start: uniform tables, and variables that stay; its μ."""
    for i in range(len(frame.node_start) - 1):
        if frame.free[i + 1] > frame.free[i]:
            _level(b, frame.node_start[i], frame.node_start[i + 1], back)
    for f in range(len(frame.table_start) - 1):
        _level(b, frame.table_start[f], frame.table_start[f + 1], back)
    mu = 0.0
    for k in range(len(score)):
        mu += abs(score[k])
    mu = back * max(1.0, mu / len(score))
    for k in range(len(b)):
        slack[k] = mu / b[k]
    return mu


@kernel
def _level(b, first, last, back):
    for k in range(first, last):
        held = (1.0 - back) * b[k] if back < 1.0 else 0.0  # b may be anything where Newton failed
        b[k] = held + back / (last - first)


@kernel(error_model="numpy")
def follow(b, slack, delta, mu):
    """A step towards the path's point at μ; the largest relative move, and the next μ."""
    near, far, moved, mass = 1.0, 1.0, 0.0, 0.0
    for k in range(len(b)):
        share = delta[k] / b[k]
        change = mu / (b[k] * slack[k]) - 1.0 - share  # the slack's relative one
        moved = max(moved, abs(share))
        near = min(near, SHORT / -share) if -share > SHORT else near
        far = min(far, SHORT / -change) if -change > SHORT else far
    for k in range(len(b)):
        slack[k] += far * (mu / b[k] - slack[k] * (1.0 + delta[k] / b[k]))
        b[k] += near * delta[k]
        mass += b[k] * slack[k]
    least = min(near, far)
    shrink = min(0.1, mu**0.5) if least > 0.9 else 0.5 if least > 0.5 else 1.0
    return moved, max(LEAST, shrink * mass / len(b))
