"""Mean field: the best product of node distributions found by sequential updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.inference.layouts import plan
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.lazy import getter
from mlestruct.native._door import MessageExamples, MessageGraph, ascend_products
from mlestruct.structures.base import Array, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph

__getattr__ = getter(__name__, {})


@dataclass(frozen=True)
class MeanFieldAscent(Routine):
    """The best product of node distributions that sequential coordinate ascent finds.

    ``log_z`` ≤ log Z, the maximum of ⟨score, τ⟩ + Σ H(τ_i), never falls; τ are products of its node
    marginals. Only a local maximum: the start decides which. Factors may not have forbidden
    entries, which no product of positive distributions respects. ``damping`` is the share of the
    old marginal that is kept. O(Σ table sizes · order) per sweep.
    """

    damping: float = 0.0
    tol: float = 1e-10
    sweeps: int = 1000

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping is {self.damping}; it must be at least 0 and below 1")

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """From uniform marginals, or from a τ that is given; none is handed on."""
        scores = as_numbers(scores, "scores", batch.size)
        tau = np.zeros(batch.size) if warm is None else as_numbers(warm, "start", batch.size).copy()
        log_z = np.empty(len(batch))
        for structure, members in batch.groups():
            full = compiled(structure)
            if warm is None:
                tau[batch.index(members)] = np.tile(uniform(structure), len(members))
            part = np.empty(len(members))
            examples = MessageExamples(len(part), len(scores), batch.offsets[members], scores)
            ascend_products(full, examples, self.damping, self.tol, self.sweeps, tau, part)
            log_z[members] = part
        return Beliefs(log_z, tau)


@kept
def compiled(structure: FactorGraph) -> MessageGraph:
    """For mean field, which refuses forbidden entries."""
    first, (entry, node, _), shut = structure.node_start[-1], structure.below, structure.closed()
    beside = shut.copy()
    beside[entry[shut[node]]] = False
    hard = np.flatnonzero(beside[first:])
    if len(hard):
        f = int(structure.table_of[first + hard[0]]) - structure.n_nodes
        raise ValueError(f"factor {f} has a forbidden entry; mean field takes none: use messages")
    return plan(structure, structure.counting(1.0))


def uniform(structure: FactorGraph) -> Array:
    """Uniform over every node's open states; tables are left as they come."""
    out = np.where(structure.closed(), 0.0, 1.0)
    first = int(structure.node_start[-1])
    count = np.add.reduceat(out[:first], structure.node_start[:-1])
    out[:first] /= np.repeat(count, structure.cards)
    return out
