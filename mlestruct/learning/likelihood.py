"""The problem of a dual whose marginals a routine computes: minus a surrogate likelihood."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from mlestruct.engine import Engine
from mlestruct.inference.routine import Routine
from mlestruct.learning.descents import LEAST, WeightDescent, memory, units
from mlestruct.learning.dual import Dual
from mlestruct.learning.problem import LikelihoodPart, SurrogateProblem
from mlestruct.oracle import Oracle


def likelihood(
    dual: Dual, routine: Routine, engine: Engine, oracle: Oracle[Any]
) -> SurrogateProblem:
    """Minus the surrogate likelihood of a dual problem, whose τ the routine computes."""
    part, steps = part_of(dual, routine, oracle), steps_of(dual, routine)
    problem = SurrogateProblem(part, dual.regulariser, engine, steps, routine.first, 1)
    problem.bound = str(dual.entropy.bound)
    return problem


def part_of(dual: Dual, routine: Routine, oracle: Oracle[Any] | None = None) -> LikelihoodPart:
    """All examples of a dual problem, by cheaper sums where transitions of chains are tied."""
    known = {"batch": dual.batch, "bias": dual.batch.bias, "features": dual.features}
    part = LikelihoodPart(**known, routine=routine, entropy=dual.entropy, oracle=oracle)  # type: ignore[arg-type]
    if type(routine).__name__ != "ForwardBackward":
        return part
    from mlestruct.learning.tied import tied

    return tied(part)


def steps_of(dual: Dual, routine: Routine) -> Callable[..., WeightDescent]:
    """Make the descents of a dual problem, in units of its own.

    They are a factor of the Hessian at scores that are all alike, where that has a closed form.
    """
    ridge, factor = dual.regulariser, None
    alike = routine.alike(dual.batch) if hasattr(dual.features, "gram") else None
    if alike is not None and ridge.plain:
        hessian = dual.features.gram(*alike)  # type: ignore[attr-defined]
        hessian[np.diag_indices(len(hessian))] += ridge.lam
        with suppress(LinAlgError):  # of columns beyond all sizes the penalty is rounding
            factor = np.asarray(cholesky(hessian, lower=True))
    scale = units(dual.batch, dual.features, ridge.lam) if factor is None else None
    kept = LEAST if routine.exact else memory(dual.batch.size, dual.features.d)
    return partial(WeightDescent, memory=kept, factor=factor, scale=scale)
