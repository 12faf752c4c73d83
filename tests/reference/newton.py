"""The last digits of a small convex problem: Newton steps within the structures' equalities."""

from __future__ import annotations

import numpy as np

from mlestruct.dual import Dual
from mlestruct.families.joint.newton import LARGEST, _basis, _matrix, _views
from mlestruct.structures.base import Array


def polish(dual: Dual, tau: Array, rounds: int = 60) -> Array:
    """A feasible τ with no higher objective than the given one, at an optimum up to rounding.

    Second-order where Frank-Wolfe is linear, so it ends where the gap is rounding; needs every
    view with an entropy to be positive at the optimum, ``constraints()``, and a ridge. Returns
    ``tau`` where it cannot improve. :func:`mlestruct.dual.certificate` proves what it reached.
    """
    if dual.batch.size > LARGEST or dual.entropy.flat or not dual.regulariser.plain:
        return tau
    basis = _basis(dual)
    if basis is None or basis.shape[1] == 0:
        return tau
    point = _descend(dual, tau, basis, rounds)
    return point if _inside(dual, point) else tau


def _inside(dual: Dual, tau: Array) -> bool:
    """Inequalities that no entropy guards may have been crossed."""
    groups = dual.batch.groups()
    return all(bool(s.contains(dual.batch.rows(tau, m)).all()) for s, m in groups)


def _descend(dual: Dual, tau: Array, basis: Array, rounds: int) -> Array:
    views, offset, coefficient = _views(dual)
    features = _matrix(dual)
    point = tau.copy()
    value = dual.value(point)
    for _ in range(rounds):
        t = views @ point + offset
        if (t <= 0).any():
            return tau
        slope = views.T @ (coefficient * (np.log(t) + 1.0))
        slope -= dual.weigh(dual.scores(dual.theta(point)))
        curvature = (views.T * (coefficient / t)) @ views
        curvature += (features / dual.regulariser.lam) @ features.T
        step = _newton_step(basis, slope, curvature)
        if step is None:
            return point
        gamma = _longest(t, views @ step)
        decrement = -float(slope @ step)
        while gamma > 1e-12 and dual.value(point + gamma * step) > value + 1e-14 * abs(value):
            gamma /= 2
        if gamma <= 1e-12:
            return point
        point = point + gamma * step
        value = dual.value(point)
        if decrement < 1e-28:
            return point
    return point


def _newton_step(basis: Array, slope: Array, curvature: Array) -> Array | None:
    try:
        factor = np.linalg.cholesky(basis.T @ curvature @ basis)
    except np.linalg.LinAlgError:
        return None
    inner = np.linalg.solve(factor.T, np.linalg.solve(factor, -(basis.T @ slope)))
    return np.asarray(basis @ inner)


def _longest(t: Array, change: Array) -> float:
    shrinking = change < 0
    return min(1.0, 0.95 * float((t[shrinking] / -change[shrinking]).min(initial=np.inf)))
