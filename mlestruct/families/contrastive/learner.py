"""Contrastive free energies: learn from k steps of inference that start at the data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from mlestruct import Batch, Entropy, FrankWolfe, Regulariser
from mlestruct.families.contrastive.objectives import (
    BetheSteps,
    Contrastive,
    EnergySteps,
    FrankWolfeSteps,
    GibbsSteps,
    Limit,
    MeanFieldSteps,
    TreeSteps,
)
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.inference.mean_field import MeanFieldAscent
from mlestruct.learners.primal import Primal, refuse
from mlestruct.structures.entropy import Rho
from mlestruct.structures.graph import only_graphs
from mlestruct.train.descents import SmallBatches

FREE_ENERGIES: Mapping[str, Callable[..., EnergySteps]] = {
    "bethe": BetheSteps,
    "mean_field": MeanFieldSteps,
    "trees": TreeSteps,
    "polytope": FrankWolfeSteps,
    "samples": GibbsSteps,
}
GRAPHS = ("mean_field", "trees", "samples")


def propagation(rho: Rho = 1.0) -> Limit:
    """ML-BP: messages to convergence, nodes whose neighbours hardly moved waiting."""

    def messages(batch: Batch[Any]) -> SumProduct:
        entropy = Entropy.of(batch, rho, allow_nonconvex=True)
        return SumProduct.of(entropy, schedule="residual", takeover=False)

    return Limit(messages)


def mean_fields() -> Limit:
    """ML-MF: mean field to convergence, from uniform marginals."""
    return Limit(lambda batch: MeanFieldAscent())


LIMITS: Mapping[str, Callable[..., EnergySteps]] = {"bethe": propagation, "mean_field": mean_fields}


def contrastive(
    rho: Rho = None,
    regulariser: float | Regulariser = 1.0,
    oracle: Any = None,
    route: str = "auto",
    solver: FrankWolfe | None = None,
    k: int | None = 10,
    free_energy: str | EnergySteps = "bethe",
    epsilon: float | None = None,
    small: SmallBatches | None = None,
) -> Primal:
    """min Σ w_m CF_k + R(θ), CF_k = F(data) − F(k steps on), whose gradient is τ_k − data.

    ``k=None`` is the limit, maximum likelihood under the free energy, for ``bethe`` (by belief
    propagation) and ``mean_field``.

    ``free_energy``: ``bethe`` (binary pairs, belief optimisation), ``mean_field``, ``trees``
    (structured mean field), ``polytope`` (any structure by its oracle and ``rho``; Kikuchi's on
    region graphs), ``samples`` (contrastive divergence), or a relaxation of your own. ``epsilon``
    smooths the data where a free energy has infinite slopes there. ``small`` takes stochastic
    steps, as samples need. Variables that were not seen are hidden: the data are then relaxed given
    what was.
    """
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; a contrastive free energy needs at least one step")
    relaxation = _relaxation(free_energy, k, epsilon=epsilon, rho=rho, oracle=oracle)
    refuse("contrastive", route)
    if isinstance(relaxation, GibbsSteps) and small is None:
        small = SmallBatches()
    why = "an objective that is not convex" if relaxation.exact else "a gradient of no objective"

    def objective(batch: Batch[Any]) -> Contrastive:
        if free_energy in GRAPHS:
            only_graphs(batch.structures, f"free energy {free_energy!r}")
        return Contrastive(relaxation)

    return Primal(
        "contrastive",
        objective,
        "pseudo-marginals",
        "none (a free energy)",
        regulariser,
        FrankWolfe() if solver is None else solver,
        doubt=lambda stalled: f"{type(relaxation).__name__}: {why}",
        small=small,
        partly="seen",
    )


def _relaxation(free_energy: str | EnergySteps, k: int | None, **given: Any) -> EnergySteps:
    """By name, with the settings given; an error for one that it has no use for."""
    settings = {name: value for name, value in given.items() if value is not None}
    table = LIMITS if k is None else FREE_ENERGIES
    heeded: Any = ()
    if isinstance(free_energy, str):
        if free_energy not in table:
            names = ", ".join(table)
            raise ValueError(f"no free energy {free_energy!r} at k={k}; there are {names}")
        heeded = inspect.signature(table[free_energy]).parameters
    for name, value in settings.items():
        if name not in heeded:
            raise ValueError(f"free energy {free_energy!r} has no use for {name}={value!r}")
    if not isinstance(free_energy, str):
        return free_energy
    return table[free_energy](**settings, **({} if k is None else {"steps": k}))
