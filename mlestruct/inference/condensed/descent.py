"""Primal majorisation and Newton's method on w·(b log b) − η·b over the local polytope.

Majorisation (Domke 2009, algorithm 1): b log b ≤ b (log b⁰ − 1) + b²/b⁰ makes every step one linear
system; entries that would not stay positive are set to ε(c) = 1/(10c)², c counting them. Where
it hardly moves, Newton's method goes on: entries that grow are added to, entries that shrink are
multiplied by exp(δ/b), which lands each table entry where the prices of its sums put it.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from mlestruct.inference.condensed.sparse import LANES, conjugate, factor, solve
from mlestruct.inference.condensed.steps import condense, expand

NEAR = 0.05  # an entry's last move, below which Newton's method takes over
TURN = 20  # majorising steps before it does in any case
PATIENCE = 4  # Newton steps that come no closer, before the scores are approached in stages
SHORTEST = 1e-3  # stage
ROUNDING = 1e-5  # steps that stay below this are as good as strong scores allow
FAINT = 1e-8  # marginals below this are only known absolutely

MAJORISE, NEWTON, LOST = 0, 1, 2


@nb.njit(cache=True, nogil=True, error_model="numpy")
def descend(score, weight, b, frame, limit, tol, phase, moved):
    """At most LANES examples from b (any positive point) to their optimum, in place.

    ``phase`` of each is MAJORISE, or NEWTON for a good start; ``moved`` becomes the largest |δ|/b
    of its last step. Where Newton's method fails, it follows the optima of s·η from s = 0 on.
    Weights of variables may be negative. Returns the steps of the slowest.
    """
    count, size = b.shape
    values, right, squares, lift, likely, place, room, back = rooms(frame, count)
    index, lower, pivot, row = back
    inverse, g, delta = np.empty((count, size)), np.empty((count, size)), np.empty(size)
    curve, known = np.empty(frame.table_start[0]), np.empty((count, size))
    best, since = np.full(count, np.inf), np.zeros(count, np.int64)
    clamps = np.ones((count, size), np.int64)
    at, stage = np.zeros(count), np.ones(count)  # known is the optimum of at·η
    active = np.ones(count, np.bool_)
    for step in range(limit):
        for lane in range(count):
            if active[lane]:
                scale, part = (
                    1.0 if phase[lane] == NEWTON else 2.0,
                    min(1.0, at[lane] + stage[lane]),
                )
                _slopes(
                    score[lane], weight[lane], b[lane], scale, part, inverse[lane], curve, g[lane]
                )
                condense(
                    lane, b[lane], inverse[lane], curve, g[lane], frame, values, right,
                    squares[lane], lift[lane], likely[lane], place[lane], room,
                )  # fmt: skip
        least = answer(values, frame.pattern, index, lower, pivot, row, right)
        for lane in range(count):
            if not active[lane]:
                continue
            expand(
                lane, right, b[lane], inverse[lane], g[lane], frame, squares[lane], lift[lane],
                likely[lane], place[lane], delta, room,
            )  # fmt: skip
            since[lane] += 1
            if phase[lane] == MAJORISE:
                moved[lane], far = _clamp(b[lane], delta, clamps[lane])
                active[lane] = moved[lane] > tol
                if far <= NEAR or since[lane] >= TURN:
                    phase[lane], since[lane] = NEWTON, 0
                continue
            moved[lane] = _bend(b[lane], delta, len(curve))
            if _settled(moved[lane], best[lane], tol, since[lane]):
                active[lane] = at[lane] + stage[lane] < 1.0
                known[lane] = b[lane]
                at[lane] += stage[lane]
                stage[lane] *= 2.0
                best[lane], since[lane] = np.inf, 0
            elif moved[lane] < 0.5 * best[lane]:
                best[lane], since[lane] = moved[lane], 0
            elif since[lane] >= PATIENCE or not least[lane] > 0.0 or not moved[lane] < 1e6:
                if at[lane] == 0.0 and stage[lane] == 1.0:
                    _uniform(frame, b[lane], known[lane])
                b[lane] = known[lane]
                stage[lane] = min(stage[lane], 1.0 - at[lane]) / 4.0
                best[lane], since[lane] = np.inf, 0
                active[lane] = stage[lane] > SHORTEST
        if not active.any():
            return step + 1
    return limit


@nb.njit(cache=True, nogil=True)
def _settled(moved, before, tol, since):
    """Whether the next step, which Newton's convergence foretells, would be below ``tol``."""
    if moved <= tol or (since >= PATIENCE and before <= ROUNDING):
        return True
    return moved <= ROUNDING and before < np.inf and moved * (moved / before) ** 2 <= tol


@nb.njit(cache=True, nogil=True)
def _uniform(frame, b, out):
    """Where no scores lead, but for variables that stay as they are."""
    for i in range(len(frame.node_start) - 1):
        first, last = frame.node_start[i], frame.node_start[i + 1]
        stays = frame.free[i + 1] == frame.free[i]
        for k in range(first, last):
            out[k] = b[k] if stays else 1.0 / (last - first)
    for f in range(len(frame.table_start) - 1):
        first, last = frame.table_start[f], frame.table_start[f + 1]
        out[first:last] = 1.0 / (last - first)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def respond(weight, b, slope, frame, out):
    """m = ∂L/∂v of at most LANES optima b, ``slope`` being b·∂L/∂b; False where F is not convex.

    m = D⁻¹Aᵀ(A D⁻¹ Aᵀ)⁻¹A D⁻¹ ∂L/∂b − D⁻¹ ∂L/∂b with D = w/b, as a step with ∂L/∂b for gradient.
    """
    count, size = b.shape
    values, right, squares, lift, likely, place, room, back = rooms(frame, count)
    index, lower, pivot, row = back
    inverse, g = np.empty((count, size)), np.empty((count, size))
    curve = np.empty(frame.table_start[0])
    for lane in range(count):
        for k in range(size):
            inverse[lane, k] = b[lane, k] / weight[lane, k]
            g[lane, k] = slope[lane, k] / b[lane, k]
        for k in range(len(curve)):
            curve[k] = weight[lane, k] / b[lane, k]
        condense(
            lane, b[lane], inverse[lane], curve, g[lane], frame, values, right, squares[lane],
            lift[lane], likely[lane], place[lane], room,
        )  # fmt: skip
    least = answer(values, frame.pattern, index, lower, pivot, row, right)
    for lane in range(count):
        expand(
            lane, right, b[lane], inverse[lane], g[lane], frame, squares[lane], lift[lane],
            likely[lane], place[lane], out[lane], room,
        )  # fmt: skip
    return least[:count].min() > 0.0


@nb.njit(cache=True, nogil=True)
def rooms(frame, count):
    """Working memory; lanes that serve no example hold the identity."""
    pattern = frame.pattern
    n, stored = len(pattern.start) - 1, pattern.below[-1]
    stored = stored if pattern.direct else 0
    values, right = np.zeros((len(pattern.row), LANES)), np.zeros((n, LANES))
    for k in range(n):
        values[pattern.start[k + 1] - 1] = 1.0
    back = (
        np.empty(stored, np.int64),
        np.empty((stored, LANES)),
        np.empty((n, LANES)),
        np.empty((n, LANES)),
    )
    squares, lift = np.empty((count, frame.square[-1])), np.empty((count, frame.row_start[-1]))
    widest = 1
    for f in range(len(frame.row_start) - 1):
        widest = max(widest, frame.row_start[f + 1] - frame.row_start[f])
    likely = np.empty((count, len(frame.free) - 1), np.int64)
    place = np.empty((count, frame.slot_start[-1]), np.int64)
    room = np.empty(widest)
    return values, right, squares, lift, likely, place, room, back


@nb.njit(cache=True, nogil=True, error_model="numpy")
def answer(values, pattern, index, lower, pivot, row, right):
    """Solve every lane's system in place; the least pivot or curvature of each."""
    if not pattern.direct:
        return conjugate(values, pattern, right)
    least = factor(values, pattern, index, lower, pivot, row)
    solve(pattern, index, lower, pivot, right)
    return least


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _slopes(score, weight, b, scale, part, inverse, curve, g):
    """∇F and curvature; the majoriser bends twice as much, and not at all where F is concave."""
    for k in range(len(b)):
        inverse[k] = b[k] / (scale * weight[k])
        g[k] = weight[k] * (np.log(b[k]) + 1.0) - part * score[k]
    for k in range(len(curve)):
        bend = weight[k] if scale == 1.0 else max(scale * weight[k], 0.0)
        curve[k] = bend / b[k]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _bend(b, delta, nodes):
    largest = 0.0
    for k in range(len(b)):
        share = delta[k] / b[k]
        step = abs(delta[k]) / max(b[k], FAINT) if k < nodes else abs(share)
        if not step <= largest:
            largest = step
        b[k] = b[k] + delta[k] if share > 0.0 else max(b[k] * np.exp(share), 1e-200)
    return largest


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _clamp(b, delta, clamps):
    largest, far = 0.0, 0.0
    for k in range(len(b)):
        fresh = b[k] + delta[k]
        if not fresh > 0.0:
            fresh = 1.0 / (10.0 * clamps[k]) ** 2
            clamps[k] += 1
        far = max(far, abs(fresh - b[k]))
        largest = max(largest, abs(fresh / b[k] - 1.0))
        b[k] = fresh
    return largest, far
