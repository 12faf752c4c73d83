"""The surrogate likelihood: Σ w_m [log Z(scores_m) − ⟨scores_m, φ_m⟩], through marginals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlestruct.batch import Batch
from mlestruct.inference.routine import Routine
from mlestruct.objectives.base import Cheaper, Head, Objective, Values
from mlestruct.structures.base import Array
from mlestruct.trees import Tree


@dataclass(frozen=True)
class Surrogate(Objective):
    """Minus the surrogate log-likelihood; its gradient is τ − φ, exact once messages converge.

    The scores hold the bias; a dual's constant has taken off the observed outcome's share of it.
    """

    routine: Routine
    exact_gradient: bool = True

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        scores, target = heads["score"], batch.target
        assert target is not None
        log_z, tau, warm = self.routine.loosened(tol).many(batch, scores, warm)
        each = log_z - batch.observed(scores)
        if batch.constant is not None:
            each += batch.constant + batch.observed(batch.bias)
        gradient = tau - target
        if (batch.weight != 1).any():
            gradient *= batch.weights
        stalled = self.routine.stalled(warm)
        return Values(float(batch.weight @ each), {"score": gradient}, tau, warm, stalled)

    def cheaper(self, batch: Batch[Any], heads: Mapping[str, Head]) -> Cheaper | None:
        """Chains whose transitions are tied, without a table per edge."""
        if not self.routine.exact:
            return None
        from mlestruct.objectives.tied_chains import pieces

        return pieces(self.routine, batch, heads)

    def pack(self, warm: Any) -> Tree:
        return self.routine.pack(warm)

    def unpack(self, batch: Batch[Any], tree: Tree) -> Any:
        return self.routine.unpack(batch, tree)
