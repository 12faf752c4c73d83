"""Exact log Z and arc probabilities of paths through a DAG, batched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.errors import Infeasible
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.kernels import kernel
from mlestruct.structures import Paths
from mlestruct.structures.base import Array, Ints


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
    _sweep(paths.arcs, paths.usable, paths.n_nodes, paths.source, paths.sink, scores, log_z, tau)
    if np.isneginf(log_z).any():
        why = paths.impossible() or "no path has a finite score"
        raise Infeasible(f"example {int(np.isneginf(log_z).argmax())}: {why}")
    return log_z, tau


@kernel
def _sweep(
    arcs: Ints,
    order: Ints,
    n_nodes: int,
    source: int,
    sink: int,
    scores: Array,
    log_z: Array,
    tau: Array,
) -> None:
    before, after = np.empty(n_nodes), np.empty(n_nodes)
    for m in range(len(scores)):
        before[:] = -np.inf
        before[source] = 0.0
        for e in order:
            u, v = arcs[e]
            if u != sink:
                before[v] = _add(before[v], before[u] + scores[m, e])
        from_sink(arcs, order, source, sink, scores[m], after)
        log_z[m] = before[sink]
        if log_z[m] == -np.inf:
            continue
        for e in order:
            u, v = arcs[e]
            if u != sink and v != source:
                tau[m, e] = np.exp(before[u] + scores[m, e] + after[v] - log_z[m])


@kernel
def from_sink(arcs: Ints, order: Ints, source: int, sink: int, score: Array, after: Array) -> None:
    """log Σ over paths from every node to the sink."""
    after[:] = -np.inf
    after[sink] = 0.0
    for k in range(len(order) - 1, -1, -1):
        u, v = arcs[order[k]]
        if u != sink:
            after[u] = _add(after[u], score[order[k]] + after[v])


@kernel
def _add(a: float, b: float) -> float:
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + np.log(np.exp(a - top) + np.exp(b - top))
