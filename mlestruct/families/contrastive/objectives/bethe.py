"""CF_k-Bethe: k steps of belief optimisation from the smoothed data point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mlestruct import Batch, FactorGraph
from mlestruct.families.contrastive.belief_optimisation import (
    CLIP,
    STEPS,
    TOL,
    Couplings,
    couplings,
    descend,
    logits,
    tables,
)
from mlestruct.families.contrastive.objectives.base import BeforeAfter
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class BetheSteps:
    """Binary pairwise graphs: marginals start at |y − ε|, for at 0 and 1 logits are infinite.

    Moments of the data are those of y itself. ``tol`` ends a relaxation early, once no slope by a
    logit is larger. Steps are down the slopes by marginals, or ``by="logits"``, as the paper's,
    which leave 0 and 1 slowly. O(k · edges).
    """

    steps: int = 10
    epsilon: float = 1e-4
    tol: float = 1e-6
    exact: bool = False
    by: Literal["marginals", "logits"] = "marginals"

    def __post_init__(self) -> None:
        if self.by not in ("marginals", "logits"):
            raise ValueError(f"steps are by marginals or logits, not by {self.by!r}")

    def __call__(
        self, batch: Batch[FactorGraph], scores: Array, warm: Couplings | None
    ) -> BeforeAfter:
        assert batch.target is not None
        graph = couplings(batch) if warm is None else warm
        y, z = batch.target[graph.place], batch.target[graph.place - 1]
        known, clamped = (y == 1) | (z == 1), graph.fixed >= 0
        state = np.where(clamped, graph.fixed, np.where(known, y, 0.5))
        a = logits(np.clip(state, self.epsilon, 1 - self.epsilon))
        sharp = CLIP * np.sign(state - 0.5)
        data = batch.target
        if not (known | clamped).all():
            held = known | clamped
            a = descend(graph, scores, a, held, STEPS, TOL).a
            data = tables(graph, scores, np.where(held, sharp, a))
        plain = self.by == "logits"
        found = descend(graph, scores, a, clamped, self.steps, self.tol, plain)
        tau = tables(graph, scores, np.where(clamped, sharp, found.a))
        return BeforeAfter(found.before, found.after, data, tau, graph)
