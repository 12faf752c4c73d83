"""CF at k = ∞: maximum likelihood under whatever free energy inference minimises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.contrastive.objectives.base import BeforeAfter, clamped
from mlestruct.inference.routine import Routine
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Limit:
    """F_0 − F_∞ with F_∞ = −log Z, and F_0 = −log Z(clamped) where labels are hidden.

    ``messages`` makes the routine for a batch: mean field gives ML-MF, belief propagation ML-BP.
    Started anywhere, so with cycles it may end above F_0 and CF may be negative.
    """

    messages: Callable[[Batch[Any]], Routine]
    exact: bool = True

    def __call__(self, batch: Batch[Any], scores: Array, warm: Any) -> BeforeAfter:
        assert batch.target is not None
        if warm is None:
            held = clamped(batch)
            warm = self.messages(batch), held, None if held is None else self.messages(held)
        routine, held, given = warm
        end, tau, _ = routine.many(batch, scores)
        start, data = batch.totals(scores * batch.target), batch.target
        if held is not None:
            start, data, _ = given.many(held, scores)
        return BeforeAfter(-np.asarray(start), -end, data, tau, warm)
