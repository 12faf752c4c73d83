"""Learning around loopy belief propagation: the usual baseline, which nothing certifies."""

from __future__ import annotations

from typing import Any, Literal

from mlestruct.batch import Batch
from mlestruct.inference.choose import Propagation
from mlestruct.learners.primal import Primal, refuse
from mlestruct.objectives import Surrogate
from mlestruct.reweighting import Rho

RESTARTS = 10


def lbp(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    schedule: Literal["sequential", "flooding", "residual"] = "residual",
    damping: float = 0.0,
    sweeps: int = 200,
    residual: float = 1e-8,
    restarts: int = RESTARTS,
    **settings: Any,
) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ + F_Bethe at belief propagation's fixed point] − R(θ): a double loop.

    ``rho`` (default 1) other than that gives reweighted messages. Where messages do not converge
    in ``sweeps`` sweeps, or jump between fixed points, neither value nor gradient is one of a
    function: L-BFGS then stops, and is begun again with fresh messages. ``settings`` are those of
    :class:`Primal`.
    """
    refuse("lbp", route, oracle=oracle)
    recipe = Propagation(1.0 if rho is None else rho, schedule, damping, sweeps, residual)

    def objective(batch: Batch[Any]) -> Surrogate:
        return Surrogate(recipe.routine(batch))

    def doubt(stalled: int) -> str:
        return f"fixed points of belief propagation bound nothing ({stalled} examples had none)"

    words = ("local polytope", "none (belief propagation)")
    return Primal(
        "lbp", objective, *words, doubt=doubt, restarts=restarts, inference=recipe, **settings
    )
