"""Procedural fitting: weights for which a few iterations of inference predict well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlestruct import Batch
from mlestruct.families.fitting.implicit import surrogate_start
from mlestruct.families.fitting.losses import Loss, named, where_seen
from mlestruct.families.fitting.truncated import Iteration, Messages, beliefs, groups, rows
from mlestruct.inference import Marginals
from mlestruct.inference.choose import Inference, Search
from mlestruct.inference.predict import unproven
from mlestruct.learners.primal import Heads, Primal, refuse, scored
from mlestruct.learning.problem import Objective, Values
from mlestruct.oracle.registry import AnyOracle
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array
from mlestruct.structures.entropy import Rho


def procedural(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    loss: str | Loss = "ucl",
    iterations: int = 4,
    method: Iteration | None = None,
    **settings: Any,
) -> Primal:
    """Σ_m w_m L(beliefs after T iterations at Φ_mθ) + R(θ): fits inference that is cut short.

    ``method`` (default belief propagation, at ``rho`` if given) runs ``iterations`` times, in the
    fit and in predictions alike. ``loss`` is one of :mod:`.losses`, or its name.
    ``heads`` may give every iteration weights of its own. Fits start from the convex surrogate
    likelihood, or with ``begin=None`` from 0; ``settings`` are those of :class:`Primal`.
    """
    refuse("procedural", route, oracle=oracle)
    chosen = Messages(1.0 if rho is None else rho) if method is None else method
    objective = Procedural(named(loss), chosen, iterations)
    words = ("none", f"none (beliefs after {iterations} iterations)")
    heads: Heads = settings.pop("heads", scored)
    own = {
        "doubt": lambda stalled: "the loss is not convex in θ: a stationary point at best",
        "heads": where_seen(objective.loss, heads),
        "begin": surrogate_start(None, settings, heads),
        "inference": Truncated(chosen, iterations, heads is not scored),
        "partly": "seen",
    }
    return Primal("procedural", lambda batch: objective, *words, **{**own, **settings})


@dataclass(frozen=True)
class Truncated(Inference):
    """What so many iterations believe: what a procedural fit's loss was of."""

    method: Iteration
    iterations: int
    several: bool = False
    """Iterations have weights of their own, which one set of scores does not give."""

    def recall(self, learned: Tree) -> Truncated:
        """The inference itself: a fit learns nothing of the method."""
        return self

    def marginals(
        self, batch: Batch[Any], scores: Array, oracle: AnyOracle = None, solver: Search = None
    ) -> Marginals:
        if self.several:
            raise ValueError(
                "these iterations have weights of their own: ask truncated.beliefs with a set of "
                "scores for each, or set infer="
            )
        tau = beliefs(batch, [scores], self.method, self.iterations)
        return unproven(tau, len(batch), f"{self}: they bound nothing")

    def __str__(self) -> str:
        return f"what {self.iterations} iterations of messages believe"


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

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        pieces = warm
        if pieces is None:  # examples that run together, and what is observed of them
            each = groups(batch)
            pieces = [(s, some, self.loss.units(batch.select(some))) for s, some in each]
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
