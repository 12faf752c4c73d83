"""Procedural fitting: weights for which a few iterations of inference predict well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlestruct.batch import Batch
from mlestruct.families.fitting.implicit import surrogate_start
from mlestruct.families.fitting.losses import Loss, named
from mlestruct.families.fitting.procedural_objective import Procedural
from mlestruct.families.fitting.truncated import Iteration, Messages, beliefs
from mlestruct.inference.choose import Search, Unlearned
from mlestruct.inference.predict import Marginals, unproven
from mlestruct.learners.primal import Heads, Primal, refuse, scored
from mlestruct.oracle.registry import AnyOracle
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


def procedural(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    loss: str | Loss = "ucl",
    iterations: int = 4,
    method: Iteration | None = None,
    heads: Heads = scored,
    surrogate: bool = True,
    **settings: Any,
) -> Primal:
    """Σ_m w_m L(what T iterations believe at Φ_mθ) + R(θ): inference and its cutting short are one.

    ``method`` (default belief propagation, at ``rho`` if given) runs ``iterations`` times; beliefs
    are to be asked of the same. ``loss`` is one of :mod:`.losses`, or its name.
    ``heads`` may give every iteration weights of its own. Fits start from the convex surrogate
    likelihood, or with ``surrogate`` false from 0; ``settings`` are those of :class:`Primal`.
    """
    refuse("procedural", route, oracle=oracle)
    chosen = Messages(1.0 if rho is None else rho) if method is None else method
    objective = Procedural(named(loss), chosen, iterations)
    words = ("none", f"none (beliefs after {iterations} iterations)")
    return Primal(
        "procedural",
        lambda batch: objective,
        *words,
        doubt=lambda stalled: "the loss is not convex in θ: a stationary point at best",
        heads=heads,
        begin=surrogate_start(None, settings, heads) if surrogate else None,
        inference=Truncated(chosen, iterations, heads is not scored),
        **settings,
    )


@dataclass(frozen=True)
class Truncated(Unlearned):
    """What so many iterations believe: what a procedural fit's loss was of."""

    method: Iteration
    iterations: int
    several: bool = False
    """Iterations have weights of their own, which one set of scores does not give."""

    def recall(self, learned: Tree) -> Truncated:
        """Itself: nothing is learned of the method."""
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
