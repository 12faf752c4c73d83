"""Paths through a DAG: sums from the source and from the sink, exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.inference.exact import paths
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.structures import Paths
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class PathSums(Routine):
    """log Z and τ of paths under the entropy that is exact for them. O(arcs) per example."""

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> PathSums | None:
        """Paths with ρ = 1."""
        known = all(isinstance(s, Paths) for s in entropy.batch.structures)
        return cls() if known and entropy.bound.kind == "exact" else None

    def many(self, batch: Batch[Paths], scores: Array, warm: Any = None) -> Beliefs:
        """Nothing to keep for the next call."""
        tau, log_z = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            log_z[members], rows = paths.marginals(structure, batch.rows(scores, members))
            tau[batch.index(members)] = rows.ravel()
        return Beliefs(log_z, tau)
