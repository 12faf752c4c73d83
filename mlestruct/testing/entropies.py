"""The laws of entropies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference import marginals
from mlestruct.oracle import BruteForce, Oracle
from mlestruct.reweighting import Rho, counting_numbers
from mlestruct.structures.base import Array, Structure
from mlestruct.testing.listing import hold, inside, vertices


def check_entropy(
    structure: Structure,
    rho: Rho = None,
    outcomes: Iterable[Any] | None = None,
    *,
    oracle: Oracle[Any] | None = None,
    models: int = 48,
    allow_nonconvex: bool = False,
    rng: np.random.Generator | None = None,
) -> None:
    """Value, gradient and line terms agree; concave where it says so; log Z bounded as claimed.

    ``models`` random Gibbs distributions over the listed outcomes test the bound at their own
    marginals, a dozen of them also at the maximum, found by Frank-Wolfe with ``oracle`` (default:
    brute force over the outcomes).
    """
    rng = np.random.default_rng(0) if rng is None else rng
    found = vertices(structure, outcomes)
    entropy = Entropy.of(Batch.of(structure), rho, allow_nonconvex=allow_nonconvex)
    points = inside(found, 12, rng)
    _check_values(structure, entropy, rho, found, points)
    _check_slopes(structure, entropy, found, points, rng)
    if entropy.concave:
        _check_concave(structure, entropy, found, rng)
    _check_temperature(structure, entropy, rho, points)
    _check_bound(structure, entropy, rho, found, models, oracle, rng)


def _check_values(
    structure: Structure, entropy: Entropy, rho: Rho, found: Array, points: Array
) -> None:
    at_vertices = _each(structure, entropy, found)
    hold(
        float(np.abs(at_vertices).max()) <= 1e-9,
        "an outcome has entropy 0",
        f"{at_vertices[np.abs(at_vertices).argmax()]:g}",
    )
    views = structure.views()
    a = views.coefficients(counting_numbers(structure, rho))
    t = np.maximum(points @ views.C.toarray().T + views.c0, 0.0)
    direct = -(t * np.log(np.where(t > 0, t, 1.0))) @ a
    hold(
        bool(np.allclose(_each(structure, entropy, points), direct, rtol=1e-9, atol=1e-9)),
        "the entropy is −Σ a t log t over the views",
        "the compiled form differs",
    )


def _each(structure: Structure, entropy: Entropy, points: Array) -> Array:
    """The entropy of many points, as one batch."""
    many = Entropy.of(
        Batch.of(structure, count=len(points)), entropy.rho, allow_nonconvex=not entropy.concave
    )
    return many.each(points.ravel())


def _check_slopes(
    structure: Structure, entropy: Entropy, found: Array, points: Array, rng: np.random.Generator
) -> None:
    weighed = replace(entropy, batch=replace(entropy.batch, weight=np.array([1.7])))
    for point in points:
        delta = found[rng.integers(len(found))] - found[rng.integers(len(found))]
        delta = delta + 0.3 * (found[rng.integers(len(found))] - point)
        h = 1e-5 * _room(structure, point, delta)
        high, low = _each(structure, entropy, np.stack([point + h * delta, point - h * delta]))
        slope = float(entropy.grad(point) @ delta)
        line = weighed.line(point, delta)
        size = 1.0 + abs(slope)
        hold(
            abs((high - low) / (2 * h) - slope) <= 1e-5 * size,
            "the gradient is the slope by finite differences",
            f"{slope:.9g} against {(high - low) / (2 * h):.9g}",
        )
        hold(
            abs(line.slope(0.0) - 1.7 * slope) <= 1e-9 * size,
            "the line's slope is the example's weight times the gradient's",
            f"{line.slope(0.0):.9g} against {1.7 * slope:.9g}",
        )
        curvature = (line.slope(h) - line.slope(-h)) / (2 * h)
        hold(
            abs(curvature - line.curvature(0.0)) <= 1e-5 * (1.0 + abs(curvature)),
            "the line's curvature is its slope's by finite differences",
            f"{line.curvature(0.0):.9g} against {curvature:.9g}",
        )


def _room(structure: Structure, point: Array, delta: Array) -> float:
    """How far every view stays positive along ±delta."""
    views = structure.views()
    t, dt = views.C @ point + views.c0, np.abs(views.C @ delta)
    moving = dt > 1e-12
    return float(min(1.0, (t[moving] / dt[moving]).min(initial=1.0)))


def _check_concave(
    structure: Structure, entropy: Entropy, found: Array, rng: np.random.Generator
) -> None:
    """Random points look concave where strongly correlated ones are not: try near few outcomes."""
    views = structure.views()
    C = views.C.toarray()
    rho = entropy.rho
    a = views.coefficients(counting_numbers(structure, rho))
    _, size, directions = np.linalg.svd(found - found.mean(axis=0), full_matrices=False)
    tangent = directions[size > 1e-9].T
    for trial in range(60):
        few = found[rng.integers(len(found), size=2 + trial % 3)]
        spread = 10.0 ** -(trial % 5)
        point = (1 - spread) * few.mean(axis=0) + spread * inside(found, 1, rng)[0]
        t = C @ point + views.c0
        live = (t > 1e-12) & (a != 0)
        moved = C[live] @ tangent
        hessian = -(moved.T * (a[live] / t[live])) @ moved
        largest = float(np.linalg.eigvalsh(hessian).max(initial=-np.inf))
        hold(
            largest <= 1e-9 * (1.0 + float(np.abs(hessian).max(initial=0.0))),
            "an entropy that says concave has no positive curvature in the polytope",
            f"eigenvalue {largest:g} at {point.tolist()}",
        )


def _check_temperature(structure: Structure, entropy: Entropy, rho: Rho, points: Array) -> None:
    for temperature in (0.0, 0.5, 2.0):
        scaled = Entropy.of(entropy.batch, rho, temperature=temperature, allow_nonconvex=True)
        hold(
            bool(np.allclose(scaled.each(points[0]), temperature * entropy.each(points[0]))),
            "a temperature multiplies the entropy",
            f"T = {temperature:g} gives {scaled.each(points[0])}",
        )
    hold(
        Entropy.of(entropy.batch, rho, temperature=0.0, allow_nonconvex=True).flat,
        "at temperature 0 there is no entropy",
        "some coefficient is left",
    )


def _check_bound(
    structure: Structure,
    entropy: Entropy,
    rho: Rho,
    found: Array,
    models: int,
    oracle: Oracle[Any] | None,
    rng: np.random.Generator,
) -> None:
    scale = rng.choice([0.3, 1.0, 3.0], (models, 1))
    scores = scale * rng.standard_normal((models, structure.size))
    energy = scores @ found.T
    top = energy.max(axis=1)
    log_z = top + np.log(np.exp(energy - top[:, None]).sum(axis=1))
    exact = np.exp(energy - log_z[:, None]) @ found
    value = (scores * exact).sum(axis=1) + _each(structure, entropy, exact)
    kind, tol = entropy.bound.kind, 1e-7 * (1.0 + np.abs(log_z))
    tried = np.arange(min(models, 12))
    if kind in ("upper", "exact"):  # at the model's own marginals a value ≥ log Z proves it
        tried = np.union1d(tried, np.flatnonzero(value < log_z - tol))
    if kind in ("lower", "exact"):
        _no_violation("at the exact marginals", kind, value <= log_z + tol, value, log_z)
    if kind == "none" or not entropy.concave:
        return
    batch = Batch.of(structure, count=len(tried))
    asked = BruteForce(lambda _: found) if oracle is None else oracle
    solver = FrankWolfe(tol=1e-5, rounds=80)
    result = marginals(batch, scores[tried].ravel(), asked, rho=rho, solver=solver)
    log_z, tol = log_z[tried], tol[tried]
    _no_violation(
        "an interval's ends", "ordered", result.lower <= result.upper + tol, result.upper, log_z
    )
    if kind in ("upper", "exact"):
        _no_violation("at its maximum", kind, result.upper >= log_z - tol, result.upper, log_z)
    if kind in ("lower", "exact"):
        _no_violation("at its maximum", kind, result.lower <= log_z + tol, result.lower, log_z)


def _no_violation(
    where: str, kind: str, true: NDArray[np.bool_], value: Array, log_z: Array
) -> None:
    wrong: Sequence[int] = np.flatnonzero(~true).tolist()
    if wrong:
        m = wrong[0]
        raise AssertionError(
            f"log Z is bounded as the entropy claims ({kind}): {where}, model {m} has "
            f"{value[m]:.9g} against {log_z[m]:.9g}"
        )
