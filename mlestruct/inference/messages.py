"""Where marginals are cheaper than oracle calls: which routine serves an entropy."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple, Protocol

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.structures.base import Array


class Beliefs(NamedTuple):
    """log Z per example, a feasible τ, and what the next call at nearby scores may start from."""

    log_z: Array
    tau: Array
    warm: Any = None


class Messages(Protocol):
    """Computes log Z and the maximiser τ of ⟨score, τ⟩ + H(τ) directly, for a whole batch.

    Interface: ``serve(entropy)`` → a routine for this entropy, or None; ``many(batch, scores,
    warm)`` → :class:`Beliefs`. τ is always feasible (repaired where iterations stopped short):
    :func:`mlestruct.dual.certificate` at τ then pays for what is missing, and nothing is silent.
    """

    @classmethod
    def serve(cls, entropy: Entropy) -> Messages | None: ...

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs: ...


ROUTINES = (
    "graph.forward_backward:ForwardBackward",
    "exact.path_sums:PathSums",
    "matching.scaling:Scaling",
    "graph.sum_product:SumProduct",
)
"""Tried in this order: exact ones first, then the fastest."""


def routine(entropy: Entropy) -> Messages | None:
    """The first routine that serves the entropy; None means Frank-Wolfe."""
    if entropy.temperature != 1:
        return None
    for place in ROUTINES:
        module, name = place.split(":")
        kind = getattr(importlib.import_module(f"mlestruct.inference.{module}"), name)
        found: Messages | None = kind.serve(entropy)
        if found is not None:
            return found
    return None
