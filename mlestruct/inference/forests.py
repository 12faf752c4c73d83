"""Exact marginals of forests of factors of any order, by one sweep up and one down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.native._door import ChainShape, chain_marginals, forest_marginals
from mlestruct.structures.base import Array, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.forests import forest_shape
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class ForwardBackward(Routine):
    """log Z and τ of labelled forests under the Bethe entropy, which is exact there.

    O(Σ table sizes · order) per example, batched over the dataset in one compiled call. Chains
    run in the linear domain, and again by the general kernel where that could have underflowed.
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
        scores = as_numbers(scores, "scores", batch.size)
        tau, log_z, asked = np.empty(batch.size), np.empty(len(batch)), scores
        sweeps: Any = (chain_marginals, _chain), (forest_marginals, forest_shape)
        for structure, members in batch.groups():
            closed, left = structure.fixed == 0, members
            if closed.any():
                asked = scores.copy() if asked is scores else asked
                asked[batch.offsets[members][:, None] + np.flatnonzero(closed)] = -np.inf
            for sweep, made in sweeps:
                if len(left) and (shape := made(structure)) is not None:
                    found, at = np.empty(len(left)), batch.offsets[left]
                    sweep(shape, len(left), at, len(scores), asked, tau, found)
                    log_z[left] = found
                    left = left[~np.isfinite(found)]
            if len(left):
                why = structure.impossible() or "no labelling has a finite score"
                raise Infeasible(f"example {left[0]}: {why}")
        return Beliefs(log_z, tau)


@kept
def _chain(structure: FactorGraph) -> ChainShape | None:
    """Return where a chain's tables begin; None unless factor i joins variables i and i + 1."""
    n = structure.n_nodes
    steps = np.arange(n - 1)
    expected = np.stack([steps, steps + 1], axis=1).ravel()
    if n == 1 or not structure.is_pairwise or not np.array_equal(structure.scope, expected):
        return None
    return ChainShape(n, structure.node_start, structure.table_start)
