"""Learning around loopy belief propagation: the usual baseline, which nothing certifies."""

from __future__ import annotations

from typing import Any

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.learners.primal import Primal, refuse
from mlestruct.objectives import Surrogate
from mlestruct.reweighting import Rho

RESTARTS = 10


def lbp(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    schedule: str = "residual",
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
    how = {"schedule": schedule, "damping": damping, "residual": residual, "sweeps": sweeps}

    def objective(batch: Batch[Any]) -> Surrogate:
        entropy = Entropy.of(batch, 1.0 if rho is None else rho, allow_nonconvex=True)
        return Surrogate(SumProduct.of(entropy, takeover=False, **how))

    def doubt(stalled: int) -> str:
        return f"fixed points of belief propagation bound nothing ({stalled} examples had none)"

    words = ("local polytope", "none (belief propagation)")
    return Primal("lbp", objective, *words, doubt=doubt, restarts=restarts, **settings)
