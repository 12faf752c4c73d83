"""Where the Bethe optimum of a bipartite matching is a permutation, and nothing else is proven."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array


def vertex_proof(scores: Array, partner: ArrayLike, rounds: int = 200) -> bool:
    """True only if the Bethe maximiser (ρ = 1) over perfect matchings is this permutation exactly.

    It is iff the matrix exp(W[i, σ(k)] − W[i, σ(i)]) with zero diagonal has spectral radius ≤ 1;
    then log Z is the permutation's score. For any positive r the largest (Mr)_i / r_i is an upper
    bound (Collatz and Wielandt), so a power iteration that stops early proves less, never more.
    """
    sigma = np.asarray(partner)
    table = np.asarray(scores, dtype=float).reshape(len(sigma), len(sigma))[:, sigma]
    ratio = np.exp(np.minimum(table - np.diag(table)[:, None], 300.0))
    np.fill_diagonal(ratio, 0.0)
    r = np.ones(len(sigma))
    for _ in range(rounds):
        grown = ratio @ r
        if (grown <= r * (1.0 - 1e-12)).all():
            return True
        r = r + grown  # of I + M: positive, and no period
        r /= r.max()
        r = np.maximum(r, 1e-280)
    return False
