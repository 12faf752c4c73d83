"""Exact line search: a root of φ′ by safeguarded Newton, on terms collected once per step."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections import namedtuple

import numpy as np

from mlestruct.entropy import FLOOR
from mlestruct.kernels import kernel

PRECISION = 1e-6  # |φ′| relative to |φ′(0)| at which a step counts as exact

# φ(γ) = R*(r − γ·change) + linear·γ − weight·H(t + γ dt), the last over ``count`` terms of a and
# the first over ``wide`` weights. Under a ridge ⟨θ, change⟩ is affine: then ``linear`` holds all
# of it, ``quadratic`` its slope, and no weight is touched again.
Line = namedtuple(
    "Line", "linear quadratic r change column wide ridge terms weight a t dt count"
)  # fmt: skip


@kernel
def pull(gamma, line):
    """⟨θ(r − γ·change), change⟩ and its derivative's size.

    ``terms`` holds (λ, prior, l1, lower, upper) per weight; a ridge needs only λ and prior.
    """
    lam, prior, l1, lower, upper = line.terms
    value, curvature = 0.0, 0.0
    for j in range(line.wide):
        k, change = line.column[j], line.change[j]
        if change == 0.0:
            continue
        x = line.r[k] - gamma * change + lam[k] * prior[k]
        x = np.sign(x) * max(abs(x) - l1[k], 0.0)
        weight = x / lam[k]
        moving = lower[k] < weight < upper[k] and (weight != 0.0 or l1[k] == 0.0)
        value += min(max(weight, lower[k]), upper[k]) * change
        if moving:
            curvature += change * change / lam[k]
    return value, curvature


@kernel
def entropy_slope(gamma, line):
    """−d/dγ and −d²/dγ² of weight · H along the collected terms."""
    slope, curvature = 0.0, 0.0
    for k in range(line.count):
        x = max(line.t[k] + gamma * line.dt[k], FLOOR)
        steep = line.a[k] * line.dt[k]
        slope += steep * (np.log(x) + 1.0)
        curvature += steep * line.dt[k] / x
    return line.weight * slope, line.weight * curvature


@kernel
def derivative(gamma, line):
    """φ′(γ) and φ″(γ)."""
    slope, curvature = entropy_slope(gamma, line)
    slope += line.linear
    if line.ridge:
        return slope + line.quadratic * gamma, curvature + line.quadratic
    value, extra = pull(gamma, line)
    return slope - value, curvature + extra


@kernel
def search(line, most):
    """The γ in [0, most] that minimises φ, and φ′(0); γ is ``most`` itself when φ′(most) ≤ 0.

    φ′ only rises, so the end point is looked at no earlier than Newton reaches for it.
    """
    start, curvature = derivative(0.0, line)
    if start >= 0.0 or most <= 0.0:
        return 0.0, start
    gamma, slope, low, high, end_seen = 0.0, start, 0.0, most, False
    for _ in range(100):
        step = gamma - slope / curvature if curvature > 0.0 else most
        if step >= high and not end_seen:
            slope, _ = derivative(most, line)
            if slope <= 0.0:
                return most, start
            end_seen = True
        if not (low < step < high):
            step = 0.5 * (low + high)
        gamma = step
        slope, curvature = derivative(gamma, line)
        if abs(slope) <= PRECISION * -start:
            break
        if slope < 0.0:
            low = gamma
        else:
            high = gamma
        if high - low <= 1e-15 * most:
            break
    return gamma, start
