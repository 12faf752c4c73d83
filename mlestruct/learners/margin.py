"""Structured SVM: the same dual at temperature zero, with the loss as bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.learners.convex import Learner
from mlestruct.reweighting import Rho
from mlestruct.structures.base import Array, Structure

Loss = Callable[[Structure, Array], tuple[Array, float]]


def hamming(structure: Structure, vertex: Array) -> tuple[Array, float]:
    """The structure's own Hamming loss: wrong variables, rows or coordinates."""
    return structure.loss(vertex)


def ssvm(
    loss: Loss = hamming, temperature: float = 0.0, rho: Rho = None, **settings: Any
) -> Learner:
    """R(θ) + Σ_m max_y [loss(y) + ⟨θ, φ(y)⟩ − ⟨θ, φ_m⟩], minimised through its dual.

    ``loss(structure, vertex)`` returns (ℓ, constant) with loss(s) = ⟨ℓ, s⟩ + constant. A positive
    ``temperature`` T replaces max by T·log Σ exp(·/T), or its surrogate with ``rho``.
    """

    def surrogate(batch: Batch[Any]) -> tuple[Batch[Any], Entropy]:
        target = batch.target
        assert target is not None
        parts = [loss(batch.structure(m), target[batch.coordinates(m)]) for m in range(len(batch))]
        observed = batch.totals(batch.bias * target)
        shaped = replace(
            batch,
            bias=batch.bias + np.concatenate([bias for bias, _ in parts]),
            constant=np.array([constant for _, constant in parts]) - observed,
        )
        return shaped, Entropy.of(shaped, rho, temperature=temperature)

    return Learner("ssvm", surrogate, rho=rho, **settings)
