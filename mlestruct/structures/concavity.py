"""When a reweighted entropy is concave (Heskes), and when it mixes forests: a bound above."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from mlestruct.native._door import EdgeShares, relieve_node
from mlestruct.structures.base import Array, Ints

TOL = 1e-12  # what rounding may leave of a payment


def payments(counting: Array, over: Ints) -> Array | None:
    """What α pays for i, for each (α, i) in ``over``: x ≥ 0; None if impossible.

    Σ_α c_α H_α is concave if c_i + Σ_α x_αi ≥ 0 and c_α ≥ Σ_i x_αi: then it is a sum of entropies
    H_i and conditional entropies H_α − H_i. A transport problem: impossible where all together
    have too little, solved where even shares suffice, and an LP between the two.
    """
    counting, over = np.asarray(counting, dtype=float), np.asarray(over, dtype=np.int64)
    paid = np.zeros(len(over))
    demand = np.maximum(-counting, 0.0)
    if not (demand > TOL).any():
        return paid
    supply = np.maximum(counting, 0.0)
    used = np.flatnonzero((supply[over[:, 0]] > TOL) & (demand[over[:, 1]] > TOL))
    arcs = over[used]
    needy = np.flatnonzero(demand > TOL)
    if len(arcs) == 0 or not np.isin(needy, arcs[:, 1]).all():
        return None
    payers, takers = np.unique(arcs[:, 0], return_inverse=True)
    if supply[payers].sum() + TOL * len(counting) < demand.sum():
        return None
    even = supply[arcs[:, 0]] / np.bincount(takers)[takers]
    if (np.bincount(arcs[:, 1], even, len(counting)) >= demand).all():
        paid[used] = even
        return paid
    n, m = len(counting), len(arcs)
    columns = np.arange(m)
    pays = sp.csr_array((np.ones(m), (arcs[:, 0], columns)), shape=(n, m))
    gets = sp.csr_array((-np.ones(m), (arcs[:, 1], columns)), shape=(n, m))
    rows: Any = sp.vstack([pays, gets])
    result = linprog(np.zeros(m), rows, np.r_[supply + TOL, TOL - demand], method="highs")
    if result.status != 0:
        return None
    paid[used] = result.x
    return paid


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


def _even_shares(scope: Ints, rho: Array, room: Array) -> EdgeShares:
    """Share every edge evenly between its ends."""
    ends, n = np.ascontiguousarray(scope, dtype=np.int64).ravel(), len(room)
    share = np.repeat(rho / 2, 2)
    around = np.argsort(ends, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    load = np.bincount(ends, weights=share, minlength=n).astype(np.float64)
    came, queue = np.full(n, -1), np.empty(n, dtype=np.int64)
    return EdgeShares(n, len(rho), ends, start, around, share, load, room, came, queue)


def _relieve_all(shares: EdgeShares, tol: float) -> bool:
    """Return whether no node holds more than its room, after shares were moved."""
    above = np.flatnonzero(shares.load > shares.room + tol)
    return all(relieve_node(shares, int(v), tol) for v in above)
