"""Stochastic steps: proximal, on a few examples at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.lbfgs import Descent, Step
from mlestruct.objectives import Head, Objective
from mlestruct.objectives.base import EvaluationPoint, ShardSummand, chosen
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass(frozen=True)
class SmallBatches:
    """Proximal steps on ``size`` examples at a time, drawn without replacement each epoch.

    θ ← prox(θ − η_t g) with g the mean gradient and η_t = step / (1 + step · t · λ/M) (Bottou):
    no line search, so it serves objectives whose gradient is not their value's.
    """

    size: int = 32
    step: float = 0.1
    seed: int = 0

    def run(
        self,
        objective: Objective,
        batch: Batch[Any],
        heads: Mapping[str, Head],
        regulariser: Regulariser,
        theta: Array,
        since: Tree = None,
    ) -> Descent:
        """A step per epoch, which asks for Σ at its end; the same seed gives the same bits."""
        rng, count, time_ = np.random.default_rng(self.seed), len(batch), 0
        lam = regulariser.lam / count
        if since is not None:
            theta, time_, rng.bit_generator.state = since

        def where() -> Tree:
            return theta, time_, rng.bit_generator.state

        while True:
            order = rng.permutation(count)
            for first in range(0, count, self.size):
                members = np.sort(order[first : first + self.size])
                part = ShardSummand(objective, batch.select(members), chosen(heads, batch, members))
                gradient = part(EvaluationPoint(theta)).gradient
                eta = self.step / (1.0 + self.step * time_ * float(lam.min()))
                theta = theta - eta * (gradient / len(members))
                theta = _prox(regulariser, theta, eta, lam, count)
                time_ += 1
            value, gradient = yield theta
            yield Step(theta, value + regulariser.value(theta), gradient, True, where)


def _prox(regulariser: Regulariser, theta: Array, eta: float, lam: Array, count: int) -> Array:
    """argmin ½‖θ' − θ‖² + η R(θ')/M within the bounds."""
    pull = theta + eta * lam * regulariser.prior
    shrunk = np.sign(pull) * np.maximum(np.abs(pull) - eta * regulariser.l1 / count, 0.0)
    return np.clip(shrunk / (1.0 + eta * lam), regulariser.lower, regulariser.upper)
