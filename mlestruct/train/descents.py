"""Descents in θ by L-BFGS: with a regulariser, preconditioned, begun again where too coarse."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import solve_triangular

from mlestruct.lbfgs import Function, Kinks, Step, minimise
from mlestruct.objectives import Sum
from mlestruct.objectives.slopes import Slopes
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


def descend(
    total: Function,
    regulariser: Regulariser,
    theta: Array,
    memory: int = 10,
    factor: Array | None = None,
    since: Tree = None,
    scale: Array | None = None,
) -> Iterator[Step]:
    """L-BFGS on R + Σ; the gradients it yields are those of Σ alone.

    ``factor``, lower triangular with L Lᵀ near the Hessian, has it step in z = Lᵀθ; ``scale``, a
    number per weight, in z = s·θ. ``since`` another descent's ``where()``, it goes on from there,
    and θ is ignored.
    """
    lam, prior = regulariser.lam, regulariser.prior

    def smooth(at: Array) -> tuple[float, Array]:
        value, gradient = total(at)
        pull = at - prior
        pull *= lam
        return value + 0.5 * float(pull @ (at - prior)), gradient + pull

    if factor is not None and regulariser.plain:
        yield from _preconditioned(smooth, regulariser, theta, memory, factor, since)
        return
    s, kinks = np.ones(len(lam)) if scale is None else scale, None
    if not regulariser.plain:
        kinks = Kinks(regulariser.l1 / s, regulariser.lower * s, regulariser.upper * s)

    def weights(z: Array) -> Array:
        here = z / s
        return here if kinks is None else np.clip(here, regulariser.lower, regulariser.upper)

    def scaled(z: Array) -> tuple[float, Array]:
        value, gradient = smooth(weights(z))
        return value, gradient / s

    for step in minimise(scaled, theta * s, memory, kinks, since=since):
        here = weights(step.theta)
        yield step._replace(theta=here, gradient=step.gradient * s - lam * (here - prior))


def _preconditioned(
    smooth: Function,
    regulariser: Regulariser,
    theta: Array,
    memory: int,
    factor: Array,
    since: Tree,
) -> Iterator[Step]:
    lam, prior = regulariser.lam, regulariser.prior
    asked, at = np.empty(0), theta

    def scaled(z: Array) -> tuple[float, Array]:
        nonlocal asked, at
        asked, at = z, solve_triangular(factor, z, trans="T", lower=True)
        value, gradient = smooth(at)
        return value, solve_triangular(factor, gradient, lower=True)

    for step in minimise(scaled, factor.T @ theta, memory, first=1.0, since=since):
        z = step.theta
        here = at if z is asked else solve_triangular(factor, z, trans="T", lower=True)
        gradient = factor @ step.gradient - lam * (here - prior)
        yield step._replace(theta=here, gradient=gradient)


def descents(
    total: Sum,
    regulariser: Regulariser,
    theta: Array,
    memory: int,
    factor: Array | None,
    since: Tree,
    scale: Array | None = None,
) -> Iterator[Step]:
    """One descent, and another from its end where inference there was too coarse, or went cold."""
    coarse, within = (True, None) if since is None else since

    def where() -> Tree:
        return coarse, step.where()

    while True:
        coarse, cold = total.tol > 0 if within is None else coarse, total.cold
        for step in descend(total, regulariser, theta, memory, factor, within, scale):
            yield step._replace(where=where)
            theta = step.theta
        if not coarse and total.cold == cold:
            return
        within = None


def descend_slopes(
    slopes: Slopes,
    regulariser: Regulariser,
    theta: Array,
    since: Tree = None,
    scale: Array | None = None,
) -> Iterator[Step]:
    """A descent judged by slopes alone; the values it yields are the objective's own."""
    within = None
    if since is not None:
        within, settled = since
        slopes.recall(settled, within[0] if scale is None else within[0] / scale)

    def where() -> Tree:
        return step.where(), slopes.tree()

    for step in descend(slopes, regulariser, theta, since=within, scale=scale):
        value = slopes.settle(step.theta) + regulariser.value(step.theta)
        yield step._replace(value=value, where=where)


def evaluated(
    total: Sum, regulariser: Regulariser, theta: Array, where: Callable[[], Tree]
) -> Step:
    """What ``descend`` would yield at these weights."""
    value, gradient = total(theta)
    return Step(theta, value + regulariser.value(theta), gradient, True, where)
