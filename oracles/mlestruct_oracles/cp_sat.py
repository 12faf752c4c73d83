"""Exact MAP of anything with linear constraints, by ortools' CP-SAT; stopped early with a bound."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, attained
from mlestruct.structures.base import Array, Constraints, Structure, as_numbers
from mlestruct.structures.batch import Batch

REACH = 52  # all whole-number scores together stay below 2^REACH, so that sums are exact


@dataclass(frozen=True)
class CPSat:
    """The best 0/1 vector within a structure's ``constraints()`` and your own ``rows``.

    ``rows`` has whole-number coefficients. ``seconds`` limits each example: its answer is then the
    best one found, ``upper`` the bound proved so far, and the certificate that much wider;
    ``effort`` does so in deterministic seconds, which are counted and the same on every machine.
    Scores are rounded to whole numbers below 2^52 in sum; what that may cost is part of ``upper``.
    Exponential at worst; milliseconds at a hundred coordinates. Releases the GIL.
    """

    seconds: float | None = None
    effort: float | None = None
    rows: Constraints | None = None
    polytope: str = HULL
    _models: dict[Structure, _Model] = field(default_factory=dict, repr=False, compare=False)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        for m in range(len(batch)):
            structure, part = batch.structure(m), batch.coordinates(m)
            if structure not in self._models:
                self._models[structure] = _Model(structure, self.rows)
            model = self._models[structure]
            try:
                vertices[part], upper[m] = model.best(scores[part], self.seconds, self.effort)
            except (Infeasible, RuntimeError) as error:
                raise type(error)(f"example {m}: {error}") from error
        return vertices, upper


class _Model:
    """One structure's constraints, built once; each call replaces the objective."""

    def __init__(self, structure: Structure, extra: Constraints | None) -> None:
        own = structure.stated
        if own is None:
            raise ValueError(f"{type(structure).__name__} states no constraints for CP-SAT")
        # A plain import here, not at the top: ortools and highspy cannot live in one process.
        self.cp: Any = importlib.import_module("ortools.sat.python.cp_model")
        self.structure, self.model = structure, self.cp.CpModel()
        self.open = structure.fixed != 0
        self.variables = [self.model.new_bool_var("") for _ in range(structure.size)]
        for k in np.flatnonzero(structure.fixed >= 0):
            self.model.add(self.variables[k] == int(structure.fixed[k]))
        for rows in (own,) if extra is None else (own, extra):
            self._add(rows)

    def _add(self, rows: Constraints) -> None:
        A = rows.A.tocsr()
        _refuse_fractions("coefficient", A.data)
        for side in (rows.lo, rows.hi):
            _refuse_fractions("side", side[np.isfinite(side)])
        for r in range(A.shape[0]):
            entries = slice(A.indptr[r], A.indptr[r + 1])
            names = [self.variables[k] for k in A.indices[entries]]
            lo, hi = rows.lo[r], rows.hi[r]
            total = self.cp.LinearExpr.weighted_sum(names, A.data[entries].astype(int).tolist())
            low = int(lo) if np.isfinite(lo) else self.cp.INT32_MIN
            high = int(hi) if np.isfinite(hi) else self.cp.INT32_MAX
            self.model.add_linear_constraint(total, low, high)

    def best(
        self, score: Array, seconds: float | None, effort: float | None
    ) -> tuple[Array, float]:
        """The best vertex found, and a bound on the best score."""
        whole, shift, error = _whole(np.where(self.open, score, 0.0))
        self.model.maximize(self.cp.LinearExpr.weighted_sum(self.variables, whole))
        solver = self.cp.CpSolver()
        # One worker with the full linear relaxation: 12 × 12 grids of 4 states end in 2 s, where
        # neither the default relaxation nor two workers end in 5.
        solver.parameters.num_workers, solver.parameters.linearization_level = 1, 2
        if seconds is not None:
            solver.parameters.max_time_in_seconds = seconds
        if effort is not None:
            solver.parameters.max_deterministic_time = effort
        status = solver.solve(self.model)
        if status == self.cp.INFEASIBLE:
            raise Infeasible(self.structure.impossible() or "no vertex meets all constraints")
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            raise RuntimeError(
                f"CP-SAT ended with {solver.status_name(status)} and no answer; allow more seconds"
            )
        vertex = np.array([solver.boolean_value(v) for v in self.variables], dtype=float)
        bound = math.ldexp(float(np.ceil(solver.best_objective_bound)), -shift) + error
        return vertex, max(bound, attained(score, vertex))


def _whole(score: Array) -> tuple[list[int], int, float]:
    """Scores × 2^shift as whole numbers, the shift, and by how much their sums may fall short."""
    total = float(np.abs(score).sum())
    if not math.isfinite(total):
        raise ValueError("scores are too large to add up")
    shift = REACH - math.frexp(total)[1] - 1 if total > 0 else 0
    scaled = np.ldexp(score, shift)
    whole = np.rint(scaled)
    short = float(np.maximum(scaled - whole, 0.0).sum())
    return [int(v) for v in whole], shift, math.ldexp(short, -shift) * (1 + 1e-9)


def _refuse_fractions(what: str, values: NDArray[Any]) -> None:
    wrong = values[values != np.rint(values)]
    if len(wrong):
        raise ValueError(f"CP-SAT needs whole numbers, got the {what} {wrong[0]}")
