"""Implicit fitting: the loss of beliefs that minimise a convex free energy, differentiated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.fitting.condensed import Condensed, Optima, recalled
from mlestruct.families.fitting.losses import Loss, ObservedTables
from mlestruct.objectives.base import Objective, Values
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass
class Warm:
    """What is observed, and the last beliefs: where the next inference starts."""

    units: ObservedTables
    optima: Optima | None = None


@dataclass(frozen=True)
class Implicit(Objective):
    """Σ_m w_m L(b_m, outcome m) with b = argmin Σ w b log b − ⟨score, b⟩ over the local polytope.

    Heads are ``score``, and ``weight`` where the coefficients w are learned too (an exponential
    link keeps them positive); else w are the counting numbers of ``rho``. The gradient is exact at
    the optimum: one linear solve per example (:func:`Condensed.respond`). Of beliefs that are cut
    short it is the same expression, as in the thesis, and no derivative.
    """

    loss: Loss
    rho: Rho = None
    inference: Condensed = field(default_factory=Condensed)
    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        warm = Warm(self.loss.units(batch)) if warm is None else warm
        weight = heads["weight"] if "weight" in heads else self.inference.weights(batch, self.rho)
        optima = self.inference.minimise(batch, heads["score"], weight, warm.optima)
        value, slope = self.loss(optima.tau, warm.units)
        failed = self.inference.failed(optima)
        value = np.inf if failed.any() else value  # no line search is to go there
        m = self.inference.respond(batch, weight + optima.slack, optima.tau, slope)
        gradient = {"score": -m}
        if "weight" in heads:
            gradient["weight"] = m * (np.log(optima.tau) + 1.0)
        return Values(value, gradient, optima.tau, Warm(warm.units, optima), int(failed.sum()))

    def pack(self, warm: Warm) -> Tree:
        return None if warm.optima is None else tuple(warm.optima)

    def unpack(self, batch: Batch[Any], tree: Tree) -> Warm:
        return Warm(self.loss.units(batch), recalled(batch, tree))
