"""Contrastive free energies: learn from k steps of inference that start at the data."""

from __future__ import annotations

from typing import Any

from mlestruct import Batch
from mlestruct.families.contrastive.objectives import (
    BetheSteps,
    Contrastive,
    EnergySteps,
    Limit,
    MeanFieldSteps,
)
from mlestruct.inference.mean_field import MeanFieldAscent
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners.primal import Primal, by_slopes, refuse
from mlestruct.structures.entropy import Entropy, Rho
from mlestruct.structures.graph import only_graphs


def propagation(rho: Rho = 1.0) -> Limit:
    """ML-BP: messages to convergence, nodes whose neighbours hardly moved waiting."""

    def messages(batch: Batch[Any]) -> SumProduct:
        entropy = Entropy.of(batch, rho, allow_nonconvex=True)
        return SumProduct.of(entropy, schedule="residual", takeover=False)

    return Limit(messages)


def contrastive(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    k: int | None = 10,
    free_energy: str | EnergySteps = "bethe",
    epsilon: float | None = None,
    **settings: Any,
) -> Primal:
    """min Σ w_m CF_k + R(θ), CF_k = F(data) − F(k steps on), whose gradient is τ_k − data.

    ``k=None`` is the limit, maximum likelihood under the free energy, by belief propagation or
    mean field. ``free_energy``: ``bethe`` (binary pairs, belief optimisation), ``mean_field``, or a
    relaxation of your own (:class:`.EnergySteps`). ``epsilon`` smooths the data where Bethe's has
    infinite slopes. ``settings`` are those of :class:`Primal`. Variables that were not seen are
    hidden: the data are then relaxed given what was.
    """
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; a contrastive free energy needs at least one step")
    refuse("contrastive", route, rho=rho, oracle=oracle)
    if epsilon is not None and (free_energy != "bethe" or k is None):
        raise ValueError(f"free energy {free_energy!r} has no use for epsilon={epsilon!r}")
    if not isinstance(free_energy, str):
        relaxation = free_energy
    elif free_energy == "bethe" and k is not None:
        relaxation = BetheSteps(k, 1e-4 if epsilon is None else epsilon)
    elif free_energy in ("bethe", "mean_field"):
        ascent = Limit(lambda batch: MeanFieldAscent())
        limit = propagation() if free_energy == "bethe" else ascent
        relaxation = limit if k is None else MeanFieldSteps(k)
    else:
        names = "bethe, mean_field, or a relaxation of your own (papers/relaxations.py has some)"
        raise ValueError(f"no free energy {free_energy!r}; there are {names}")
    why = "an objective that is not convex" if relaxation.exact else "a gradient of no objective"

    def objective(batch: Batch[Any]) -> Contrastive:
        if isinstance(relaxation, MeanFieldSteps):
            only_graphs(batch.structures, "free energy 'mean_field'")
        return Contrastive(relaxation)

    words = ("pseudo-marginals", "none (a free energy)")
    own: dict[str, Any] = {"partly": "seen", "steps": None if relaxation.exact else by_slopes}
    own["doubt"] = lambda stalled: f"{type(relaxation).__name__}: {why}"
    return Primal("contrastive", objective, *words, **{**own, **settings})
