"""Forests, and mixtures of them, with which the reweighted entropy bounds log Z above."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mlestruct.native._door import Sharing, relieve_node
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
    room = np.ones(n)
    shares = _even_shares(scope, np.maximum(rho, 0.0), room)
    if not _relieve_all(shares, INSIDE):
        return False
    for r in range(n):
        room[r] = 0.0
        if not relieve_node(shares, r, INSIDE):
            return False
        room[r] = 1.0
    return True


def shared(scope: Ints, rho: Array, room: Array) -> Array | None:
    """Each edge's ρ ≥ 0 shared between its ends so that no node gets more than its room (Hakimi).

    None if that is impossible. Even shares first, then paths from nodes with too much.
    """
    if rho.sum() > room.sum() + SHARED * len(room) or (room < -SHARED).any():
        return None
    shares = _even_shares(scope, rho, room.copy())
    return shares.share.reshape(-1, 2) if _relieve_all(shares, SHARED) else None


def _even_shares(scope: Ints, rho: Array, room: Array) -> Sharing:
    """Share every edge evenly between its ends."""
    ends, n = np.ascontiguousarray(scope, dtype=np.int64).ravel(), len(room)
    share = np.repeat(rho / 2, 2)
    around = np.argsort(ends, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    load = np.bincount(ends, weights=share, minlength=n)
    came, queue = np.full(n, -1), np.empty(n, dtype=np.int64)
    return Sharing(n, len(rho), ends, start, around, share, load, room, came, queue)


def _relieve_all(shares: Sharing, tol: float) -> bool:
    """Return whether no node holds more than its room, after shares were moved."""
    above = np.flatnonzero(shares.load > shares.room + tol)
    return all(relieve_node(shares, int(v), tol) for v in above)
