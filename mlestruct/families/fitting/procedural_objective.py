"""Procedural fitting: the loss of what T iterations of inference believe, its exact gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.fitting.losses import Loss, ObservedTables
from mlestruct.families.fitting.truncated import Iteration, Messages
from mlestruct.families.fitting.truncated.batches import groups, rows
from mlestruct.objectives.base import Objective, Values
from mlestruct.structures.base import Array, Ints


class EqualRuns(NamedTuple):
    """Examples that run together, and what is observed of them."""

    structure: Any
    members: Ints
    units: ObservedTables


@dataclass(frozen=True)
class Procedural(Objective):
    """Σ_m w_m L(beliefs of example m after T iterations, outcome m).

    Heads in their order are scores of iteration 1, 2, …; the last serves all that follow, so one
    head shares its weights over all iterations. Gradients are exact reverse-mode adjoints:
    O(T · Σ table sizes) as the iterations themselves, twice that where the tape is checkpointed.
    """

    loss: Loss
    method: Iteration = field(default_factory=Messages)
    iterations: int = 4
    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        pieces = self._groups(batch) if warm is None else warm
        gradient = {name: np.empty(batch.size) for name in heads}
        value = 0.0
        for structure, members, units in pieces:
            scores = rows(batch, list(heads.values()), members)
            run = self.method.run(structure, scores, self.iterations, self.loss.on_factors)
            more, slope = self.loss(run.tau.reshape(-1), units)
            value += more
            pulled = run.pull(slope.reshape(run.tau.shape))
            for name, part in zip(heads, pulled, strict=True):
                gradient[name][batch.index(members)] = part.reshape(-1)
        return Values(value, gradient, None, pieces)

    def _groups(self, batch: Batch[Any]) -> list[EqualRuns]:
        return [
            EqualRuns(structure, members, self.loss.units(batch.select(members)))
            for structure, members in groups(batch)
        ]
