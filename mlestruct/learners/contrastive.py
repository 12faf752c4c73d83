"""Contrastive free energies: learn from k steps of inference that start at the data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.learners.primal import Primal, refuse
from mlestruct.objectives.contrastive import (
    BetheSteps,
    Contrastive,
    FrankWolfeSteps,
    GibbsSteps,
    MeanFieldSteps,
    Relaxation,
    TreeSteps,
)
from mlestruct.regulariser import Regulariser
from mlestruct.reweighting import Rho
from mlestruct.train import SmallBatches

FREE_ENERGIES: Mapping[str, Callable[..., Relaxation]] = {
    "bethe": BetheSteps,
    "mean_field": MeanFieldSteps,
    "trees": TreeSteps,
    "polytope": FrankWolfeSteps,
    "samples": GibbsSteps,
}


def contrastive(
    rho: Rho = None,
    regulariser: float | Regulariser = 1.0,
    oracle: Any = None,
    route: str = "auto",
    solver: FrankWolfe | None = None,
    k: int = 10,
    free_energy: str | Relaxation = "bethe",
    epsilon: float | None = None,
    small: SmallBatches | None = None,
) -> Primal:
    """min Σ w_m CF_k + R(θ), CF_k = F(data) − F(k steps on), whose gradient is τ_k − data.

    ``free_energy``: ``bethe`` (binary pairs, belief optimisation), ``mean_field``, ``trees``
    (structured mean field), ``polytope`` (any structure by its oracle and ``rho``; Kikuchi's on
    region graphs), ``samples`` (contrastive divergence), or a relaxation of your own. ``epsilon``
    smooths the data where a free energy has infinite slopes there. ``small`` takes stochastic
    steps, as samples need. Hidden variables have no vertex in the batch's target
    (:func:`mlestruct.learners.pseudo_likelihood.partly_observed`).
    """
    if k < 1:
        raise ValueError(f"k is {k}; a contrastive free energy needs at least one step")
    relaxation = _relaxation(free_energy, k, epsilon=epsilon, rho=rho, oracle=oracle)
    refuse("contrastive", route)
    if isinstance(relaxation, GibbsSteps) and small is None:
        small = SmallBatches()
    return Primal(
        "contrastive",
        lambda batch: Contrastive(relaxation),
        f"what {k} steps from the data reach",
        "none (a free energy of pseudo-marginals)",
        regulariser,
        FrankWolfe() if solver is None else solver,
        doubt=lambda pieces: f"the gradient of {k} steps is not that of any objective",
        small=small,
    )


def _relaxation(free_energy: str | Relaxation, k: int, **given: Any) -> Relaxation:
    """By name, with the settings given; an error for one that it has no use for."""
    settings = {name: value for name, value in given.items() if value is not None}
    heeded: Any = ()
    if isinstance(free_energy, str):
        if free_energy not in FREE_ENERGIES:
            names = ", ".join(FREE_ENERGIES)
            raise ValueError(f"no free energy {free_energy!r}; there are {names}")
        heeded = inspect.signature(FREE_ENERGIES[free_energy]).parameters
    for name, value in settings.items():
        if name not in heeded:
            raise ValueError(f"free energy {free_energy!r} has no use for {name}={value!r}")
    if isinstance(free_energy, str):
        return FREE_ENERGIES[free_energy](steps=k, **settings)
    return free_energy
