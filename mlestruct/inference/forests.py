"""Exact marginals of forests of factors of any order, by one sweep up and one down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.forests import sweep
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class ForwardBackward(Routine):
    """log Z and τ of labelled forests under the Bethe entropy, which is exact there.

    O(Σ table sizes · order) per example, batched over the dataset in one compiled call.
    """

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> ForwardBackward | None:
        """Forests with ρ = 1, all of whose nodes count alike."""
        for structure, counting in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not (isinstance(structure, FactorGraph) and structure.is_forest):
                return None
            if structure.weight is not None:
                return None
            if not np.array_equal(counting, structure.counting(1.0)):
                return None
        return cls()

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """Exact log Z and marginals; nothing to keep for the next call."""
        tau = np.empty(batch.size)
        log_z = sweep(batch, as_numbers(scores, "scores", batch.size), tau, best=False)
        return Beliefs(log_z, tau)
