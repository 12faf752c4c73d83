"""Forests, and mixtures of them, with which the reweighted entropy bounds log Z above."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mlestruct.structures.base import Array, Ints

WORK = 2 * 10**7  # nodes × edges beyond which nothing is claimed; at it, about a second
INSIDE, SHARED = 1e-9, 1e-12  # what rounding may add: to a set's edges, to a node's room


def acyclic(n: int, scope: Ints, start: Ints) -> bool:
    """Nodes − components = Σ(order − 1): no cycle, and no two factors sharing two variables."""
    count = len(start) - 1
    factor = np.repeat(np.arange(count), np.diff(start))
    size = n + count
    joined = sp.coo_array((np.ones(len(scope)), (scope, n + factor)), shape=(size, size))
    components, _ = connected_components(joined, directed=False)
    return bool(len(scope) == size - components)


def in_forest_polytope(n: int, scope: Ints, rho: Array) -> bool:
    """Σ of ρ over the edges inside S ≤ |S| − 1 for every set S of nodes (Edmonds).

    Equivalently (Hakimi): for every node r the edges can be shared between their ends such that
    each node gets at most 1 and r nothing. O(n · augmentations · edges); False where unproven.
    """
    if (rho < -INSIDE).any() or (rho > 1 + INSIDE).any() or n * len(rho) > WORK:
        return False
    from mlestruct.structures.forest_kernel import shareable

    return bool(shareable(n, scope.reshape(-1, 2).copy(), np.maximum(rho, 0.0), INSIDE))


def shared(scope: Ints, rho: Array, room: Array) -> Array | None:
    """Each edge's ρ ≥ 0 shared between its ends so that no node gets more than its room (Hakimi).

    None if that is impossible. Even shares first, then paths from nodes with too much.
    """
    if rho.sum() > room.sum() + SHARED * len(room) or (room < -SHARED).any():
        return None
    from mlestruct.structures.forest_kernel import share_out

    ends = np.ascontiguousarray(scope, dtype=np.int64).reshape(-1, 2)
    share = np.empty(ends.shape)
    return share if share_out(ends, rho, room, SHARED, share) else None
