"""Exact log Z and arc probabilities of paths through a DAG, batched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.native._door import Dag, path_marginals
from mlestruct.structures import Paths
from mlestruct.structures.base import Array, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy


@dataclass(frozen=True)
class PathSums(Routine):
    """log Z and τ of paths under the entropy that is exact for them. O(arcs) per example."""

    exact = True

    @classmethod
    def serve(cls, entropy: Entropy) -> PathSums | None:
        """Paths with ρ = 1."""
        known = all(isinstance(part.structure, Paths) for part in entropy.parts)
        return (
            cls() if known and all(part.bound.kind == "exact" for part in entropy.parts) else None
        )

    def many(self, batch: Batch[Paths], scores: Array, warm: Any = None) -> Beliefs:
        """Exact sums; no warm start is kept for the next call."""
        scores = batch.vector(scores, "scores")
        tau, log_z = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            log_z[members], rows = marginals(structure, batch.rows(scores, members))
            tau[batch.index(members)] = rows.ravel()
        return Beliefs(log_z, tau)


def marginals(paths: Paths, scores: Array) -> tuple[Array, Array]:
    """One pass from the source and one from the sink, for every row. O(arcs) a row."""
    log_z, tau = np.empty(len(scores)), np.zeros_like(scores)
    path_marginals(graph_of(paths), len(scores), scores, tau, log_z)
    lost = np.flatnonzero(~np.isfinite(log_z))
    if len(lost):
        why = paths.impossible() or "no path has a finite score"
        raise Infeasible(f"example {lost[0]}: {why}")
    return log_z, tau


@kept
def graph_of(paths: Paths) -> Dag:
    """Return the graph as kernels take it."""
    ends, order = paths.arcs.ravel(), paths.usable
    return Dag(paths.n_nodes, paths.source, paths.sink, len(paths.arcs), len(order), ends, order)
