"""The last digits of a small convex problem: Newton steps within the structures' equalities."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlestruct.learning.dual import Dual
from mlestruct.structures.base import Array, Structure

LARGEST = 4000  # coordinates; the method is dense, O(coordinates³)


def polish(dual: Dual, tau: Array, rounds: int = 60) -> Array:
    """A feasible τ with no higher objective than the given one, at an optimum up to rounding.

    Second-order where Frank-Wolfe is linear, so it ends where the gap is rounding; needs every
    view with an entropy to be positive at the optimum, ``constraints()``, and a ridge. Returns
    ``tau`` where it cannot improve. :func:`.certificate` proves what it reached.
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


def response(dual: Dual, tau: Array, directions: Array) -> Array:
    """How directions of score move the optimum: dᵢᵀ Z (Zᵀ ∇²f Z)⁻¹ Zᵀ dⱼ at an interior optimum."""
    basis = _basis(dual)
    if basis is None:
        raise ValueError("the structure states no constraints")
    inner = directions @ basis
    return np.asarray(inner @ np.linalg.solve(basis.T @ curvature(dual, tau) @ basis, inner.T))


def curvature(dual: Dual, tau: Array) -> Array:
    """∇²f at a point where every view with an entropy is positive, dense."""
    views, offset, coefficient = _views(dual)
    features = _matrix(dual)
    entropy = (views.T * (coefficient / (views @ tau + offset))) @ views
    return np.asarray(entropy + (features / dual.regulariser.lam) @ features.T)


def _views(dual: Dual) -> tuple[Array, Array, Array]:
    """All views with an entropy as dense rows, their offsets, weight times coefficient."""
    entropy, eye = dual.entropy, np.eye(dual.batch.size)
    weight = dual.batch.weight[dual.batch.owner]
    mixed = np.repeat(dual.batch.weight, np.diff(entropy.mixed.start)) * entropy.mixed.a
    rows = np.vstack([eye, -eye, entropy.mixed_matrix().toarray()])
    offset = np.concatenate([np.zeros(len(eye)), np.ones(len(eye)), entropy.mixed.c0])
    coefficient = np.concatenate([weight * entropy.a, weight * entropy.b, mixed])
    used = coefficient != 0
    return rows[used], offset[used], coefficient[used]


def _matrix(dual: Dual) -> Array:
    """w·Φ as a dense matrix."""
    columns = [dual.weigh(dual.features.potentials(e)) for e in np.eye(dual.features.d)]
    return np.array(columns).reshape(dual.features.d, dual.batch.size).T


def _basis(dual: Dual) -> Array | None:
    """Directions that keep every equality, block by block."""
    bases: dict[Structure, Array] = {}
    for structure in dual.batch.structures:
        found = _null_space(structure)
        if found is None:
            return None
        bases[structure] = found
    blocks = [bases[dual.batch.structure(m)] for m in range(len(dual.batch))]
    out = np.zeros((dual.batch.size, sum(block.shape[1] for block in blocks)))
    column = 0
    for m, block in enumerate(blocks):
        out[dual.batch.coordinates(m), column : column + block.shape[1]] = block
        column += block.shape[1]
    return out


def _null_space(structure: Structure) -> Array | None:
    from scipy.linalg import null_space

    rows: Any = structure.constraints()
    if rows is None:
        return None
    open_ = np.flatnonzero(structure.fixed < 0)
    equal = rows.A[rows.lo == rows.hi][:, open_].toarray()
    inner = null_space(equal) if len(equal) else np.eye(len(open_))
    out = np.zeros((structure.size, inner.shape[1]))
    out[open_] = inner
    return out
