"""Implicit fitting where only an oracle exists: derivatives through its own vertices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.dual import Dual
from mlestruct.entropy import Entropy
from mlestruct.errors import counting_from
from mlestruct.features import NoFeatures
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.newton import curvature
from mlestruct.objectives.base import Values
from mlestruct.oracle import Oracle, Validated, resolve
from mlestruct.regulariser import Regulariser
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array

Judge = Callable[[Array, Array], tuple[float, Array]]
RANK = 1e-9  # singular values of the vertices' differences below this share are none


def squared(tau: Array, target: Array) -> tuple[float, Array]:
    """‖τ − y‖², and its gradient."""
    off = tau - target
    return float(off @ off), 2.0 * off


class Recorded:
    """An oracle that keeps its answers."""

    def __init__(self, oracle: Oracle[Any]) -> None:
        self.oracle, self.polytope = oracle, oracle.polytope
        self.answers: list[Array] = []

    def many(self, batch: Batch[Any], scores: Array) -> tuple[Array, Array]:
        vertices, upper = self.oracle.many(batch, scores)
        self.answers.append(vertices.copy())
        return vertices, upper

    def perturbable(self, batch: Batch[Any]) -> Any:
        return self.oracle.perturbable(batch)


@dataclass(frozen=True)
class ThroughOracle:
    """Σ_m w_m L(τ_m, outcome m) with τ = argmax ⟨score, τ⟩ + H(τ) by Frank-Wolfe.

    The optimum moves within the affine hull of the vertices that span it: with N a basis of their
    differences and D = −∇²H, ∂L/∂score = N (Nᵀ D N)⁻¹ Nᵀ ∂L/∂τ. As exact as Frank-Wolfe: its
    relative gap ``solver.tol`` leaves an error of order √tol. Dense, for small examples.
    """

    oracle: Any = None
    rho: Rho = None
    judge: Judge = squared
    solver: FrankWolfe = field(default=FrankWolfe(tol=1e-8))
    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        assert batch.target is not None
        value, gradient, tau = 0.0, np.empty(batch.size), np.empty(batch.size)
        for m in range(len(batch)):
            here = batch.coordinates(m)
            one = replace(batch.select([m]), bias=heads["score"][here], weight=np.ones(1))
            with counting_from(m):
                tau[here], respond = self._solve(replace(one, target=None))
            loss, slope = self.judge(tau[here], batch.target[here])
            value += batch.weight[m] * loss
            gradient[here] = batch.weight[m] * respond(slope)
        return Values(float(value), {"score": gradient}, tau)

    def _solve(self, one: Batch[Any]) -> tuple[Array, Callable[[Array], Array]]:
        asked = Recorded(Validated(resolve(self.oracle, one)))
        nothing = NoFeatures(one.size, 1)
        dual = Dual(one, nothing, Entropy.of(one, self.rho), Regulariser.of(0))
        tau = self.solver.solve(dual, asked).tau.copy()
        points = np.array([*asked.answers, tau])
        _, size, rows = np.linalg.svd(points[:-1] - points[-1], full_matrices=False)
        N = rows[size > RANK * size.max(initial=0.0)].T

        def respond(slope: Array) -> Array:
            return np.asarray(N @ np.linalg.solve(N.T @ curvature(dual, tau) @ N, N.T @ slope))

        return tau, respond
