"""The best vertex of a structure's own constraints, by scipy's HiGHS simplex, or by TRW-S first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.errors import Infeasible
from mlestruct.oracle import Answers, Oracle, load, one_by_one
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, Constraints, Structure, as_numbers
from mlestruct.structures.batch import Batch

DENOMINATORS = range(1, 13)  # vertices of small polytopes are fractions; others are re-solved


@dataclass(frozen=True)
class LinearProgram:
    """Maximises over lo ≤ Aτ ≤ hi, 0 ≤ τ ≤ 1 and the fixed coordinates; needs ``constraints()``.

    ``upper`` is the value of the simplex duals made feasible, so it holds whatever the solver's
    tolerances. Milliseconds per example at a hundred coordinates, seconds at ten thousand.
    """

    _graphs: set[bool] = field(default_factory=set, repr=False)

    @property
    def polytope(self) -> str:
        """As far as it is known of the structures that were asked about."""
        return "local polytope" if self._graphs == {True} else "stated constraints"

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        return one_by_one(batch, scores, lambda structure: partial(self._best, structure))

    def _best(self, structure: Structure, score: Array) -> tuple[Array, float]:
        score, rows = np.where(structure.fixed == 0, 0.0, score), structure.stated
        if rows is None:
            raise ValueError(f"{type(structure).__name__} states no constraints for an LP")
        self._graphs.add(isinstance(structure, FactorGraph))
        # HiGHS's tolerances are absolute: scores of 1e-7 would all be optimal
        shift = math.frexp(float(np.abs(score).max(initial=0.0)))[1]
        vertex, duals = _solve(structure, rows, np.ldexp(score, -shift))
        bound = dual_bound(structure, rows, score, np.ldexp(duals, shift))
        return vertex, max(bound, float(score @ vertex))


def dual_bound(structure: Structure, rows: Constraints, score: Array, y: Array) -> float:
    """b·y + Σ max(0, c − Aᵀy) ≥ max ⟨c, τ⟩, for any multipliers y of the rows."""
    y = np.where((y > 0) & ~np.isfinite(rows.hi), 0.0, y)
    y = np.where((y < 0) & ~np.isfinite(rows.lo), 0.0, y)
    side = np.where(y > 0, rows.hi, np.where(y < 0, rows.lo, 0.0))
    reduced = score - rows.A.T @ y
    open_, forced = structure.fixed < 0, structure.fixed == 1
    return float(y @ side + np.maximum(reduced[open_], 0.0).sum() + reduced[forced].sum())


def _solve(structure: Structure, rows: Constraints, score: Array) -> tuple[Array, Array]:
    from scipy.optimize import linprog

    equal = rows.lo == rows.hi
    below, above = ~equal & np.isfinite(rows.hi), ~equal & np.isfinite(rows.lo)
    bounds = np.where(
        structure.fixed[:, None] < 0, [[0.0, 1.0]], structure.fixed[:, None].astype(float)
    )
    result: Any = linprog(  # type: ignore[call-overload]
        -score,
        A_ub=sp.vstack([rows.A[below], -rows.A[above]]) if (~equal).any() else None,
        b_ub=np.concatenate([rows.hi[below], -rows.lo[above]]) if (~equal).any() else None,
        A_eq=rows.A[equal] if equal.any() else None,
        b_eq=rows.hi[equal] if equal.any() else None,
        bounds=bounds,
        method="highs-ds",  # simplex: an interior-point answer is no vertex
    )
    if result.status == 2:
        raise Infeasible("no feasible point")
    if result.status != 0:
        raise ValueError(f"HiGHS stopped with status {result.status}: {result.message}")
    duals = np.zeros(len(equal))
    if equal.any():
        duals[equal] = -result.eqlin.marginals
    if (~equal).any():
        pushes = -result.ineqlin.marginals
        duals[below] += pushes[: below.sum()]
        duals[above] -= pushes[below.sum() :]
    return _snap(rows, result.x, structure), duals


def _snap(rows: Constraints, x: Array, structure: Structure) -> Array:
    """The exact vertex next to a simplex answer."""
    for k in DENOMINATORS:
        near = np.round(x * k) / k
        if np.abs(near - x).max(initial=0.0) < 1e-7 and rows.slack(near) < 1e-12:
            return near
    between = (x > 1e-7) & (x < 1 - 1e-7)
    near = np.where(between, 0.0, np.round(x))
    reached: Array = np.asarray(rows.A @ x, dtype=float)
    tight = np.asarray(reached >= rows.hi - 1e-7) | np.asarray(reached <= rows.lo + 1e-7)
    right = np.where(reached >= rows.hi - 1e-7, rows.hi, rows.lo)[tight] - rows.A[tight] @ near
    near[between] = np.linalg.lstsq(rows.A[tight][:, between].toarray(), right, rcond=None)[0]
    return near if float(rows.slack(near)) <= max(1e-12, float(rows.slack(x))) else x


MET = 1e-9  # relative: a bound that near its labelling proves it


@dataclass(frozen=True)
class Relaxation:
    """Maximises over pairwise graphs' local polytope; TRW-S's cost where the relaxation is tight.

    A bound of TRW-S's is one on the relaxation, so a labelling that meets it is the best vertex.
    Only examples where none does are linear programs.
    """

    messages: Oracle[Any] = field(default_factory=lambda: load("trw_s"))
    program: LinearProgram = field(default_factory=LinearProgram)
    polytope: str = "local polytope"

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = self.messages.many(batch, scores)
        reached = batch.totals(np.where(vertices != 0, scores, 0.0) * vertices)
        left = np.flatnonzero(upper - reached > MET * (1.0 + np.abs(upper)))
        if len(left):
            part = batch.select(left)
            place = np.isin(batch.owner, left)
            vertices[place], upper[left] = self.program.many(part, scores[place])
        return vertices, upper
