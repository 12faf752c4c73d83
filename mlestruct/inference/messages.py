"""Where marginals are cheaper than oracle calls: which routine serves an entropy."""

from __future__ import annotations

from typing import Any, Protocol

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.structures.base import Array


class Messages(Protocol):
    """Computes log Z and the maximiser τ of ⟨score, τ⟩ + H(τ) directly.

    Interface: ``supports(structure, counting)`` → bool; ``many(batch, scores, warm)`` →
    (log Z per example, feasible τ, state to start the next call from).
    """

    def supports(self, structure: Any, counting: Array) -> bool: ...

    def many(
        self, batch: Batch[Any], scores: Array, warm: Array | None = None
    ) -> tuple[Array, Array, Array | None]: ...


def routine(entropy: Entropy) -> Messages | None:
    """The first routine that serves every structure of the batch, or None: then Frank-Wolfe."""
    from mlestruct.inference.forward_backward import ForwardBackward
    from mlestruct.inference.scaling import Scaling

    if entropy.temperature != 1:
        return None
    pairs = list(zip(entropy.batch.structures, entropy.counting, strict=True))
    known: tuple[Messages, ...] = (ForwardBackward(), Scaling())
    for messages in known:
        if all(messages.supports(structure, counting) for structure, counting in pairs):
            return messages
    return None
