"""Exact line search: a root of φ′ by safeguarded Newton, on terms collected once per step."""

from __future__ import annotations

import numba as nb
import numpy as np

FLOOR = 1e-16
PRECISION = 1e-10  # |φ′| relative to |φ′(0)| at which a step counts as exact


@nb.njit(cache=True, nogil=True)
def pull(r, gamma, change, column, ridge, terms, count):
    """⟨θ(r − γ·change), change⟩ and its derivative's size, on ``count`` local weights.

    ``terms`` holds (λ, prior, l1, lower, upper) per weight; ``ridge`` skips all but λ and prior.
    """
    lam, prior, l1, lower, upper = terms
    value, curvature = 0.0, 0.0
    for j in range(count):
        k = column[j]
        if change[j] == 0.0:
            continue
        x = r[k] - gamma * change[j] + lam[k] * prior[k]
        if not ridge:
            x = np.sign(x) * max(abs(x) - l1[k], 0.0)
        weight = x / lam[k]
        moving = True
        if not ridge:
            moving = lower[k] < weight < upper[k] and (weight != 0.0 or l1[k] == 0.0)
            weight = min(max(weight, lower[k]), upper[k])
        value += weight * change[j]
        if moving:
            curvature += change[j] * change[j] / lam[k]
    return value, curvature


@nb.njit(cache=True, nogil=True)
def entropy_slope(gamma, weight, a, t, dt, count):
    """−d/dγ and −d²/dγ² of weight · H along the collected terms."""
    slope, curvature = 0.0, 0.0
    for k in range(count):
        x = max(t[k] + gamma * dt[k], FLOOR)
        slope += a[k] * dt[k] * (np.log(x) + 1.0)
        curvature += a[k] * dt[k] * dt[k] / x
    return weight * slope, weight * curvature


@nb.njit(cache=True, nogil=True)
def search(
    linear, quadratic, r, change, column, ridge, terms, n_change, weight, a, t, dt, count, most
):
    """The γ in [0, most] that minimises φ; returns ``most`` itself when φ′(most) ≤ 0.

    φ(γ) = R*(r − γ·change) + linear·γ − weight·H(t + γ dt). Under a ridge ⟨θ, change⟩ is affine:
    then ``linear`` holds all of it, ``quadratic`` its slope, and no weight is touched again.
    """
    low, high = 0.0, most
    slope, curvature = _slope(
        most, linear, quadratic, r, change, column, ridge, terms, n_change, weight, a, t, dt, count
    )
    if slope <= 0.0:
        return most
    gamma = 0.0
    slope, curvature = _slope(
        gamma, linear, quadratic, r, change, column, ridge, terms, n_change, weight, a, t, dt, count
    )
    if slope >= 0.0:
        return 0.0
    goal = PRECISION * -slope
    for _ in range(100):
        step = gamma - slope / curvature if curvature > 0.0 else high
        if not (low < step < high):
            step = 0.5 * (low + high)
        gamma = step
        slope, curvature = _slope(
            gamma,
            linear,
            quadratic,
            r,
            change,
            column,
            ridge,
            terms,
            n_change,
            weight,
            a,
            t,
            dt,
            count,
        )
        if abs(slope) <= goal:
            break
        if slope < 0.0:
            low = gamma
        else:
            high = gamma
        if high - low <= 1e-15 * most:
            break
    return gamma


@nb.njit(cache=True, nogil=True)
def _slope(
    gamma, linear, quadratic, r, change, column, ridge, terms, n_change, weight, a, t, dt, count
):
    slope, curvature = entropy_slope(gamma, weight, a, t, dt, count)
    slope += linear
    if ridge:
        return slope + quadratic * gamma, curvature + quadratic
    value, extra = pull(r, gamma, change, column, False, terms, n_change)
    return slope - value, curvature + extra
