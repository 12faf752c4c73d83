"""Spanning trees: the edge weights ρ under which TRW bounds log Z, and when an entropy is concave.

Concave by Heskes's condition; a mixture of forests, and so a bound above, by Edmonds's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from mlestruct.native._door import EdgeShares, relieve_node
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.graph_edges import checked_edges, net_outflow


def components(n: int, edges: ArrayLike) -> Ints:
    """The connected component of every node; isolated nodes are components of their own."""
    pairs = checked_edges(n, edges)
    graph = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def edge_appearance(n: int, edges: ArrayLike) -> Array:
    """P(edge in a random spanning tree), its effective resistance.

    Sums to n − components; bridges get 1.

    >>> edge_appearance(3, [(0, 1), (1, 2), (0, 2)]).round(4).tolist()
    [0.6667, 0.6667, 0.6667]
    """
    return np.minimum(rooted_appearance(n, edges).sum(axis=1), 1.0)


def rooted_appearance(n: int, edges: ArrayLike) -> Array:
    """P(edge in a random spanning tree, and this end of it nearer the root), for both ends.

    Their sum does not depend on the root; every node but the root is the farther end of one edge
    of every tree. With the inverse G of the Laplacian with grounded roots it is G_jj − G_ij for
    the end i of an edge to j. One sparse factorisation, and the inverse where the factor has
    entries; a grid's eigenvectors are products of cosines, and its probabilities a few products of
    matrices of its width and height, with every node equally likely the root.
    """
    pairs = checked_edges(n, edges)
    if len(pairs) == 0:
        return np.zeros((0, 2))
    shape = _grid_shape(n, pairs)
    return _of_grid(*shape, pairs) if shape else _factored(n, pairs)


def _factored(n: int, pairs: Ints) -> Array:
    from scipy.sparse.linalg import splu

    kept = np.setdiff1d(np.arange(n), np.unique(components(n, pairs), return_index=True)[1])
    ends = net_outflow(n, pairs)[kept]  # the first node of every component is grounded
    factor = splu(
        sp.csc_array(ends @ ends.T),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    lower = sp.csc_array(factor.L)
    lower.sort_indices()
    G, row = _inverse_within(lower, factor.U.diagonal()), np.full(n, -1)  # -1: grounded
    row[kept] = factor.perm_r
    i, j = row[pairs].T
    low, own = np.minimum(i, j), np.append(G.diagonal(), 0.0)
    between = np.where(low >= 0, G[np.maximum(i, j), np.maximum(low, 0)], 0.0)
    return np.maximum(np.stack([own[j] - between, own[i] - between], axis=1), 0.0)


def _inverse_within(lower: sp.csc_array, pivot: Array) -> sp.csc_array:
    """The entries of (L D Lᵀ)⁻¹ where L has some (Takahashi, Fagan and Chin 1973).

    From the last column on, with Z the inverse, R the rows of L below the diagonal of column j and
    l its entries: Z(R, j) = −Z(R, R) l, and Z(j, j) = 1 / D(j) − lᵀ Z(R, j). R is among the rows of
    the column that R begins with, whose part of Z is kept until all columns have read it.
    """
    start, parts = lower.indptr, dict[int, tuple[Ints, Array]]()
    first = lower.indices[start[:-1][np.diff(start) > 1] + 1]
    readers, inverse = np.bincount(first, minlength=len(pivot)), np.empty(lower.nnz)
    for j in reversed(range(len(pivot))):
        below = slice(start[j] + 1, start[j + 1])
        rows, column, block = lower.indices[below], lower.data[below], np.zeros((0, 0))
        if len(rows):
            known, whole = parts[rows[0]]
            at = np.searchsorted(known, rows)
            block = whole[at[:, None], at]
            readers[rows[0]] -= 1
            if not readers[rows[0]]:
                del parts[rows[0]]
        found = -block @ column
        inverse[start[j]], inverse[below] = 1.0 / pivot[j] - column @ found, found
        if readers[j]:
            own = np.append(inverse[start[j]], found)[:, None]
            parts[j] = np.append(j, rows), np.block([own, np.vstack([found, block])])
    return sp.csc_array((inverse, lower.indices, start), lower.shape)


def _grid_shape(n: int, pairs: Ints) -> tuple[int, int] | None:
    """Rows and columns, if these are all edges of a grid numbered row by row, in any order."""
    low, step = pairs.min(axis=1), np.abs(pairs[:, 1] - pairs[:, 0])
    columns = int(step.max())
    if columns < 2 or n % columns or len(pairs) != 2 * n - n // columns - columns:
        return None
    down = step == columns
    right = (step == 1) & (low % columns < columns - 1)
    whole = len(np.unique(low[down])) == down.sum() == n - columns
    whole &= len(np.unique(low[right])) == right.sum() == len(pairs) - down.sum()
    return (n // columns, columns) if whole else None


def _of_grid(rows: int, columns: int, pairs: Ints) -> Array:
    """With G the Laplacian's pseudo-inverse: a sum over modes, the constant one left out."""
    (slow, across), (fast, along) = _path_modes(rows), _path_modes(columns)
    total = slow[:, None] + fast
    total[0, 0] = np.inf
    low = pairs.min(axis=1)
    row, column = np.divmod(low, columns)
    vertical = np.abs(pairs[:, 1] - pairs[:, 0]) == columns
    here, there = np.empty(len(pairs)), np.empty(len(pairs))
    for out, sign, near in ((here, -1.0, slice(1, None)), (there, 1.0, slice(None, -1))):
        down = sign * across[near] * (across[:-1] - across[1:]) @ (1.0 / total) @ (along**2).T
        right = across**2 @ (1.0 / total) @ (sign * along[near] * (along[:-1] - along[1:])).T
        out[vertical] = down[row[vertical], column[vertical]]
        out[~vertical] = right[row[~vertical], column[~vertical]]
    first = pairs[:, 0] == low
    return np.stack([np.where(first, here, there), np.where(first, there, here)], axis=1)


def _path_modes(length: int) -> tuple[Array, Array]:
    """Eigenvalues of a path's Laplacian, and its eigenvectors as columns."""
    wave = np.arange(length)
    mode = np.cos(np.pi * np.outer(wave + 0.5, wave) / length) * np.sqrt(2.0 / length)
    mode[:, 0] = np.sqrt(1.0 / length)
    return 2.0 - 2.0 * np.cos(np.pi * wave / length), mode


def heaviest_tree(n: int, edges: ArrayLike, weights: ArrayLike) -> Array:
    """0/1 indicator of a maximum-weight spanning forest."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    pairs, value = checked_edges(n, edges), as_numbers(weights, "weights")
    # a spanning forest has a fixed number of edges, so any shift to positive costs is harmless
    cost = 1.0 + value.max(initial=0.0) - value
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    places = low.astype(np.int32), high.astype(np.int32)  # before SciPy 1.17 no others are read
    tree = minimum_spanning_tree(sp.csr_array((cost, places), shape=(n, n))).tocoo()
    return np.isin(low * n + high, tree.row.astype(np.int64) * n + tree.col).astype(float)


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
    from scipy.optimize import linprog  # a tenth of a second to load

    result = linprog(np.zeros(m), rows, np.r_[supply + TOL, TOL - demand], method="highs")
    if result.status != 0:
        return None
    paid[used] = result.x
    return paid


LARGE = 2 * 10**7  # nodes × edges beyond which nothing is claimed; at it, about a second
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
    if (rho < -INSIDE).any() or (rho > 1 + INSIDE).any() or n * len(rho) > LARGE:
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
