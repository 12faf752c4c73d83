"""Maximum likelihood by a routine inside: exact sums, or the loopy messages nothing certifies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.features.weighed import weighed
from mlestruct.inference.choose import Propagation, Summed
from mlestruct.inference.exact import exact
from mlestruct.inference.exact.common import MEMORY
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.learners.primal import Primal, refuse, scored
from mlestruct.objectives import Head, Surrogate
from mlestruct.oracle import HULL
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Sums(Routine):
    """:func:`mlestruct.inference.exact.front.exact` in the place of messages."""

    memory: float = MEMORY
    exact = True

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        return exact(batch, scores, memory=self.memory)


def exact_mle(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    memory: float = MEMORY,
    **settings: Any,
) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ − log Z(θ, x_m)] − R(θ), log Z exact; a ValueError says what is too wide.

    ``memory`` in GiB bounds the tables of one structure; ``settings`` are those of
    :class:`Primal`.
    """
    refuse("exact_mle", route, rho=rho, oracle=oracle)
    words = (HULL, "exact (every outcome is summed)")
    sums, recipe = Sums(memory), Summed(memory)
    ends = {"inference": recipe, "partly": "summed", **settings}
    return Primal("exact_mle", lambda batch: Surrogate(sums), *words, **ends)


def lbp(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    schedule: Literal["sequential", "flooding", "residual"] = "residual",
    damping: float = 0.0,
    sweeps: int = 200,
    residual: float = 1e-8,
    restarts: int = 10,
    **settings: Any,
) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ + F_Bethe at belief propagation's fixed point] − R(θ): a double loop.

    A ``rho`` other than 1, the default, reweights messages. Where messages do not converge in
    ``sweeps`` sweeps, or jump between fixed points, values and gradients are those of no function:
    L-BFGS then stops, and begins again, at most ``restarts`` times, with messages that start cold
    at every evaluation. ``settings`` are those of :class:`Primal`.
    """
    refuse("lbp", route, oracle=oracle)
    recipe = Propagation(1.0 if rho is None else rho, schedule, damping, sweeps, residual)

    def objective(batch: Batch[Any]) -> Surrogate:
        return Surrogate(recipe.routine(batch))

    def doubt(stalled: int) -> str:
        return f"fixed points of belief propagation bound nothing ({stalled} examples had none)"

    words = ("local polytope", "none (belief propagation)")

    def heads(batch: Batch[Any], features: Features) -> dict[str, Head]:
        return scored(*weighed(batch, features))

    ends = {
        "doubt": doubt,
        "restarts": restarts,
        "inference": recipe,
        "heads": heads,
        "partly": "summed",
    }
    return Primal("lbp", objective, *words, **{**ends, **settings})
