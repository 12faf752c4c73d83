"""Exact sums as a routine, for entropies that a theorem calls exact and no faster one serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class ExactSums(Routine):
    """log Z and τ of junction forests of regions and of Ising forests, by elimination.

    The tables of a junction forest are as large as those of elimination, so sums are in reach.
    """

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> ExactSums | None:
        """Serve entropies that equal the outcomes' own."""
        return cls() if entropy.bound.kind == "exact" else None

    def many(self, batch: Batch[Any], scores: Array, warm: Any = None) -> Beliefs:
        """Compute log Z and marginals; there is nothing to keep for the next call."""
        from mlestruct.inference.exact import exact

        return exact(batch, scores)
