"""Whether the Bethe optimum of a bipartite perfect matching is exactly the best permutation."""

from __future__ import annotations

import numpy as np

from mlestruct.structures import BipartiteMatching
from mlestruct.structures.base import Array


def is_bethe_vertex(structure: BipartiteMatching, score: Array, vertex: Array) -> bool:
    """True iff no direction leads up from this permutation: spectral radius of rival odds ≤ 1.

    With σ the vertex and w = exp(score), the matrix w(i, σ(k)) / w(i, σ(i)), zero on the diagonal.
    At ρ = 1 the entropy's slope at a vertex depends on the direction, so that no gradient, and no
    certificate made of one, can see this. O(n³).

    >>> is_bethe_vertex(BipartiteMatching(2), np.zeros(4), np.array([1.0, 0.0, 0.0, 1.0]))
    True
    """
    if structure.kind != "perfect":
        raise ValueError(f"the rule is for perfect matchings, not {structure.kind} ones")
    table = np.where(structure.fixed == 0, -np.inf, score).reshape(structure.shape)
    sigma = vertex.reshape(structure.shape).argmax(axis=1)
    rows = np.arange(len(table))
    excess = table[:, sigma] - table[rows, sigma][:, None]
    # what two rows gain or lose together leaves every cycle alone: balance before exponentials
    balance = _potentials(excess)
    excess = excess + balance[:, None] - balance[None, :]
    odds = np.exp(np.minimum(excess, 700.0))
    odds[rows, rows] = 0.0
    return bool(np.abs(np.linalg.eigvals(odds)).max() <= 1 + 1e-12)


def _potentials(excess: Array) -> Array:
    """u with excess_ik + u_i − u_k ≤ 0 where no cycle gains: the longest paths (Bellman-Ford)."""
    u = np.zeros(len(excess))
    for _ in range(len(excess)):
        u = np.minimum(u, (u[None, :] - excess).min(axis=1))
    return u
