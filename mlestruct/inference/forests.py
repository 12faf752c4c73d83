"""Exact marginals of forests of factors of any order, by one sweep up and one down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.native._door import ChainShape, ForestShape, chain_marginals, forest_marginals
from mlestruct.structures.base import Array, Ints, kept
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
        scores = batch.vector(scores, "scores")
        tau, log_z, asked = np.empty(batch.size), np.empty(len(batch)), scores
        for structure, members in batch.groups():
            closed = structure.fixed == 0
            if closed.any():
                asked = scores.copy() if asked is scores else asked
                asked[batch.offsets[members][:, None] + np.flatnonzero(closed)] = -np.inf
            left = members
            chain = _chain(structure)
            if chain is not None:
                log_z[members] = _swept(chain_marginals, chain, batch, left, asked, tau)
                left = members[~np.isfinite(log_z[members])]
            if len(left):
                log_z[left] = _swept(
                    forest_marginals, forest_shape(structure), batch, left, asked, tau
                )
                _refuse_impossible(structure, left, log_z)
        return Beliefs(log_z, tau)


def _swept(
    sweep: Any,
    shape: ChainShape | ForestShape,
    batch: Batch[FactorGraph],
    members: Ints,
    scores: Array,
    tau: Array,
) -> Array:
    """Write the marginals of examples of one shape, and return their log Z."""
    log_z = np.empty(len(members))
    sweep(shape, len(members), batch.offsets[members], len(scores), scores, tau, log_z)
    return log_z


def _refuse_impossible(structure: FactorGraph, members: Ints, log_z: Array) -> None:
    lost = members[~np.isfinite(log_z[members])]
    if len(lost):
        why = structure.impossible() or "no labelling has a finite score"
        raise Infeasible(f"example {lost[0]}: {why}")


@kept
def _chain(structure: FactorGraph) -> ChainShape | None:
    """Return where a chain's tables begin; None unless factor i joins variables i and i + 1."""
    n = structure.n_nodes
    steps = np.arange(n - 1)
    expected = np.stack([steps, steps + 1], axis=1).ravel()
    if n == 1 or not structure.is_pairwise or not np.array_equal(structure.scope, expected):
        return None
    return ChainShape(n, structure.node_start, structure.table_start)
