"""Slopes of the dual at the point and at a tangent point beside it: compiled, flat, deterministic.

Letters as in the papers: τ the point, r the residual moments, θ the weights. Every array is flat
over the batch; block m owns coordinates offsets[m]:offsets[m+1] and weights column[m]:column[m+1].
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple

import numpy as np

from mlestruct.entropy import FLOOR
from mlestruct.kernels import kernel

Problem = namedtuple(
    "Problem",
    "offsets weight bias a b start ptr index value c0 mixed column_start column ridge terms",
)
# smooth and rough: bias and entropy slopes, of coordinates and of mixed views; stiff: curvature;
# held: entropy per coordinate; moment: Φ_mᵀτ_m, kept by plain steps only
Point = namedtuple("Point", "tau smooth rough stiff held r theta moment")


@kernel
def refresh_weights(column, wide, p, x):
    """θ = ∇R*(r) on the weights column[:wide]."""
    for j in range(wide):
        k = column[j]
        pull = x.r[k] + p.terms[0, k] * p.terms[1, k]
        if p.ridge:
            x.theta[k] = pull / p.terms[0, k]
        else:
            pull = np.sign(pull) * max(abs(pull) - p.terms[2, k], 0.0)
            x.theta[k] = min(max(pull / p.terms[0, k], p.terms[3, k]), p.terms[4, k])


@kernel
def _coordinate(bias, a, b, tau):
    """One coordinate's bias and entropy slope, stiffness and entropy; mixed views left out."""
    slope, stiff, held = bias, 0.0, 0.0
    if a != 0.0:
        t = max(tau, FLOOR)
        level = np.log(t)
        slope -= a * (level + 1.0)
        stiff += a / t
        held -= a * tau * level
    if b != 0.0:
        t = max(1.0 - tau, FLOOR)
        level = np.log(t)
        slope += b * (level + 1.0)
        stiff += b / t
        held -= b * (1.0 - tau) * level
    return slope, max(stiff, 0.0), held


@kernel
def smooth_slopes(place, count, p, x):
    """Slopes of the coordinates in place[:count]. (A call per coordinate would cost ten logs.)"""
    smooth, stiff, held, tau, bias, a, b = x.smooth, x.stiff, x.held, x.tau, p.bias, p.a, p.b
    for i in range(count):
        k = place[i]
        smooth[k], stiff[k], held[k] = _coordinate(bias[k], a[k], b[k], tau[k])


@kernel
def rough_slope(m, p, x):
    """Slope of block m's mixed views."""
    if p.start[m] == p.start[m + 1]:
        return
    for k in range(p.offsets[m], p.offsets[m + 1]):
        x.rough[k] = 0.0
    for v in range(p.start[m], p.start[m + 1]):
        if p.mixed[v] == 0.0:
            continue
        t = p.c0[v]
        for e in range(p.ptr[v], p.ptr[v + 1]):
            t += p.value[e] * x.tau[p.index[e]]
        slope = -p.mixed[v] * (np.log(max(t, FLOOR)) + 1.0)
        for e in range(p.ptr[v], p.ptr[v + 1]):
            x.rough[p.index[e]] += slope * p.value[e]


@kernel
def refresh(p, x):
    """All slopes and weights from τ and r."""
    everywhere = np.empty(len(x.tau), dtype=np.int64)
    for k in range(len(x.tau)):
        everywhere[k] = k
    smooth_slopes(everywhere, len(x.tau), p, x)
    refresh_weights(p.column, len(p.column), p, x)
    for m in range(len(p.weight)):
        rough_slope(m, p, x)


@kernel
def tangent(share, u, p, x, at, slope, energy, spread):
    """Bias and entropy slopes at (1−share)τ + share·u; per block H(τ) + ⟨bias, τ⟩ and the spread.

    The spread H(at) + ⟨∇H(at), τ − at⟩ − H(τ) ≥ 0 is what a tangent taken elsewhere overestimates.
    """
    for m in range(len(p.weight)):
        total, over = 0.0, 0.0
        for k in range(p.offsets[m], p.offsets[m + 1]):
            tau = x.tau[k]
            total += x.held[k] + p.bias[k] * tau
            if share == 0.0:
                at[k], slope[k] = tau, x.smooth[k] + x.rough[k]
                continue
            here = (1.0 - share) * tau + share * u[k]
            at[k], slope[k] = here, p.bias[k]
            over -= x.held[k]
            if p.a[k] != 0.0:
                level = np.log(max(here, FLOOR))
                slope[k] -= p.a[k] * (level + 1.0)
                over += p.a[k] * (here - tau - tau * level)
            if p.b[k] != 0.0:
                level = np.log(max(1.0 - here, FLOOR))
                slope[k] += p.b[k] * (level + 1.0)
                over += p.b[k] * (tau - here - (1.0 - tau) * level)
        for v in range(p.start[m], p.start[m + 1]):
            held, more = _mixed_tangent(v, share, p, x, at, slope)
            total, over = total + held, over + more
        energy[m], spread[m] = total, over


@kernel
def _mixed_tangent(v, share, p, x, at, slope):
    if p.mixed[v] == 0.0:
        return 0.0, 0.0
    t, here = p.c0[v], p.c0[v]
    for e in range(p.ptr[v], p.ptr[v + 1]):
        t += p.value[e] * x.tau[p.index[e]]
        here += p.value[e] * at[p.index[e]]
    held = -p.mixed[v] * t * np.log(t) if t > 0.0 else 0.0
    if share == 0.0:
        return held, 0.0
    level = np.log(max(here, FLOOR))
    for e in range(p.ptr[v], p.ptr[v + 1]):
        slope[p.index[e]] -= p.mixed[v] * (level + 1.0) * p.value[e]
    return held, p.mixed[v] * (here - t - max(t, 0.0) * level) - held


@kernel
def reached(score, vertices, tau, p, out):
    """Per block ⟨score, vertex⟩, ⟨score, τ⟩ and the vertex's views weighed by |a|, in one sweep."""
    for m in range(len(p.weight)):
        vertex, point, mass = 0.0, 0.0, 0.0
        for k in range(p.offsets[m], p.offsets[m + 1]):
            if vertices[k] != 0.0:
                vertex += score[k] * vertices[k]
                mass += (abs(p.a[k]) + abs(p.b[k])) * vertices[k]
            point += score[k] * tau[k]
        for v in range(p.start[m], p.start[m + 1]):
            t = p.c0[v]
            for e in range(p.ptr[v], p.ptr[v + 1]):
                t += p.value[e] * vertices[p.index[e]]
            mass += abs(p.mixed[v]) * t
        out[0, m], out[1, m], out[2, m] = vertex, point, mass
