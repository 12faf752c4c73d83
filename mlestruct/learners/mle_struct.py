"""MLE-Struct: maximum likelihood with log Z replaced by a reweighted Bethe surrogate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.learners.convex import Learner
from mlestruct.reweighting import Rho


def mle_struct(rho: Rho = None, **settings: Any) -> Learner:
    """Σ_m [⟨θ, φ_m⟩ − log Z_ρ(θ, x_m)] − R(θ), maximised over θ through its dual.

    ``rho`` reweights the entropy (default: the structure's own, an upper bound on log Z, exact on
    chains, trees and paths); ``settings`` are those of :class:`Learner`.
    """

    def surrogate(batch: Batch[Any]) -> tuple[Batch[Any], Entropy]:
        entropy = Entropy.of(batch, rho)
        if batch.target is None or not batch.bias.any():
            return batch, entropy
        observed = batch.observed(batch.bias)  # part of the likelihood, not of θ's
        return replace(batch, constant=-observed), entropy

    return Learner("mle_struct", surrogate, rho=rho, **settings)
