"""Minimises w·(b log b) − η·b over the local polytope, and bounds what is missing.

Majorisation, Newton's method, and the path of interior points where that comes no closer or to no
optimum; all three are steps of one kind of system (:mod:`.steps`), eight examples at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.families.fitting.condensed.moves import (
    BACK,
    LEAST,
    central,
    clamp,
    converged,
    follow,
    newton,
)
from mlestruct.families.fitting.condensed.workspace import answer, charge, load, unload, workspaces
from mlestruct.inference.graph.rows import copy
from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints

NEAR = 0.05  # an entry's last move, below which Newton's method takes over
TURN = 20  # majorising steps before it does in any case
PATIENCE = 4  # Newton steps that come no closer, before it is given up
STEADY = 1e-4  # an entry's relative move at the path's end: the next step's is its square
PROVEN = 1e-7  # of a value's size: what may be missing

EARLY, MAJORISE, NEWTON, FOLLOW, DONE = -1, 0, 1, 2, 3


class Course(NamedTuple):
    """How every example is getting on."""

    phase: Ints
    since: Ints  # steps in this phase, or since Newton's last halved
    best: Array  # the smallest of those
    clamps: Array  # of every entry
    mu: Array
    gap: Array


@kernel(error_model="numpy")
def descend(score, weight, b, slack, frame, limit, tol, phase, gap):
    """At most LANES examples from b (any positive point) to their optimum, in place.

    ``phase`` of each is MAJORISE, NEWTON for a good start, FOLLOW for a point of the interior, or
    EARLY: to majorise until ``limit``.
    ``gap`` becomes a bound on what is missing, in units of the value's size; ``slack`` is 0, or
    μ/b of the path's end. Weights of variables may be negative. Returns the steps of the slowest.
    """
    count, space = len(b), workspaces(frame, len(b))
    best, none = np.full(count, np.inf), np.zeros(count, np.int64)
    course = Course(phase, none, best, np.ones(b.shape), np.full(count, LEAST), gap)
    for lane in range(count):
        if phase[lane] == FOLLOW:
            course.mu[lane] = central(score[lane], frame, b[lane], slack[lane], BACK)
    for step in range(limit):
        for lane in range(count):
            if phase[lane] != DONE:
                _slopes(lane, course, score, weight, b, slack, space)
                charge(space.slope[lane], space.price[lane], space.total[lane], frame)
                load(lane, b[lane], frame, space)
        least = answer(frame.pattern, space)
        for lane in range(count):
            if phase[lane] != DONE:
                unload(lane, b[lane], frame, space)
                _advance(lane, course, least[lane], tol, score, weight, b, slack, frame, space)
        if _over(phase):
            return step + 1
    for lane in range(count):
        if phase[lane] != DONE:
            gap[lane] = _missing(lane, score, weight, b, frame, space)
    return limit


@kernel(error_model="numpy")
def _advance(lane, course, least, tol, score, weight, b, slack, frame, space):
    """One example's step, and the phase it leads to."""
    phase, at, delta = course.phase, b[lane], space.delta[lane]
    course.since[lane] += 1
    if phase[lane] <= MAJORISE:
        far = clamp(at, delta, course.clamps[lane])
        if phase[lane] == EARLY:
            return
        if far <= NEAR or course.since[lane] >= TURN:
            phase[lane], course.since[lane] = NEWTON, 0
        return
    if phase[lane] == FOLLOW:
        moved, course.mu[lane] = follow(at, slack[lane], delta, course.mu[lane])
        if course.mu[lane] == LEAST and moved <= STEADY:
            course.gap[lane] = _missing(lane, score, weight, b, frame, space)
            phase[lane] = DONE
        return
    moved = newton(at, delta, frame.table_start[0])
    lost = not least > 0.0 or not moved < 1e6
    if converged(moved, course.best[lane], tol):
        course.gap[lane] = _missing(lane, score, weight, b, frame, space)
        phase[lane], lost = DONE, not course.gap[lane] <= PROVEN
    if moved < 0.5 * course.best[lane]:
        course.best[lane], course.since[lane] = moved, 0
    if lost or (phase[lane] != DONE and course.since[lane] >= PATIENCE):
        phase[lane] = FOLLOW
        space.price[lane], space.total[lane] = 0.0, 0.0
        course.mu[lane] = central(score[lane], frame, at, slack[lane], 1.0)


@kernel(error_model="numpy")
def _missing(lane, score, weight, b, frame, space):
    """In units of a value's size: a nat per table, and its scores'."""
    short = shortfall(
        score[lane], weight[lane], b[lane], space.price[lane], space.total[lane], frame,
        space.slope[lane],
    )  # fmt: skip
    size = 1.0 * (len(frame.free) + len(frame.square))
    for k in range(b.shape[1]):
        size += abs(score[lane, k] * b[lane, k])
    return short / size


@kernel
def _over(phase):
    for one in phase:  # noqa: SIM110 (compiled)
        if one != DONE:
            return False
    return True


@kernel(error_model="numpy")
def respond(weight, b, slope, frame, out):
    """m = ∂L/∂v of at most LANES optima b, ``slope`` being b·∂L/∂b; False where F is not convex.

    m = D⁻¹Aᵀ(A D⁻¹ Aᵀ)⁻¹A D⁻¹ ∂L/∂b − D⁻¹ ∂L/∂b with D = w/b, as a step with ∂L/∂b for gradient.
    """
    count, size = b.shape
    space = workspaces(frame, count)
    for lane in range(count):
        for k in range(size):
            space.inverse[lane, k] = b[lane, k] / weight[lane, k]
            space.slope[lane, k] = slope[lane, k] / b[lane, k]
        for k in range(frame.table_start[0]):
            space.curve[lane, k] = weight[lane, k] / b[lane, k]
        load(lane, b[lane], frame, space)
    least, convex = answer(frame.pattern, space), True
    for lane in range(count):
        unload(lane, b[lane], frame, space)
        copy(space.delta[lane], out[lane])
        convex = convex and least[lane] > 0.0
    return convex


@kernel(error_model="numpy")
def _slopes(lane, course, score, weight, b, slack, space):
    """∇F and curvature; the majoriser has twice that, and none where F is concave."""
    eta, w, at, z = score[lane], weight[lane], b[lane], slack[lane]
    inverse, curve, slope = space.inverse[lane], space.curve[lane], space.slope[lane]
    phase, mu, nodes = course.phase[lane], course.mu[lane], len(curve)
    scale = 2.0 if phase <= MAJORISE else 1.0
    for k in range(len(at)):
        slope[k] = w[k] * (np.log(at[k]) + 1.0) - eta[k]
        curved = scale * w[k]
        if phase == FOLLOW:
            slope[k] -= mu / at[k]
            curved += z[k]
        elif phase <= MAJORISE and k < nodes:
            curved = max(curved, 0.0)
        inverse[k] = at[k] / curved
        if k < nodes:
            curve[k] = curved / at[k]


@kernel(error_model="numpy")
def shortfall(score, weight, b, price, total, frame, left):
    """How far b is from the optimum at most, by the prices of its last step; ``left`` is scratch.

    F convex on the local polytope: F(b) − F(s) ≤ ⟨∇F(b), b − s⟩, and any prices y of the equalities
    A s = d leave a maximum per table, Σ_t max_k r_k − ⟨r, b⟩ − ⟨y, d − A b⟩ with r = Aᵀy − ∇F(b).
    What rows are off counts at their price. No weight need be positive: the whole is convex.
    """
    for k in range(len(b)):
        left[k] = weight[k] * (np.log(b[k]) + 1.0) - score[k]
    charge(left, price, total, frame)
    short = 0.0
    for i in range(len(frame.free) - 1):
        if frame.free[i + 1] > frame.free[i]:
            short += _excess(left, b, frame.node_start[i], frame.node_start[i + 1])
    for f in range(len(total)):
        short += _excess(left, b, frame.table_start[f], frame.table_start[f + 1])
        short += abs(total[f] * (b[frame.table_start[f] : frame.table_start[f + 1]].sum() - 1.0))
    return short + _unpaid(b, price, frame, np.zeros(len(price)))


@kernel(error_model="numpy")
def _unpaid(b, price, frame, off):
    scope, slot_start = frame.scope, frame.slot_start
    for f in range(len(frame.square) - 1):
        slots, at = frame.scope_start[f + 1] - frame.scope_start[f], frame.entry_at[f]
        for e in range(frame.table_start[f], frame.table_start[f + 1]):
            for s in range(slots):
                off[frame.entry[at + s]] += b[e]
            at += slots
    due = 0.0
    for s in range(len(scope)):
        first = frame.node_start[scope[s]] - slot_start[s]
        for k in range(slot_start[s], slot_start[s + 1]):
            due += abs(price[k] * (off[k] - b[first + k]))
    return due


@kernel
def _excess(left, b, first, last):
    """The most that a table's mass could still gain."""
    least, mean = left[first], 0.0
    for k in range(first, last):
        least = min(least, left[k])
        mean += b[k] * left[k]
    return mean - least
