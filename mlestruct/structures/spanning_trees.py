"""Edge appearance probabilities ρ of spanning trees: the weights under which TRW bounds log Z."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlestruct.native._door import SparseFactor, inverse_differences, invert_columns
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.graph_edges import checked_edges, net_outflow

WORK = 10**7  # products of one native call: some .1 s


def components(n: int, edges: ArrayLike) -> Ints:
    """The connected component of every node; isolated nodes are components of their own."""
    from scipy.sparse.csgraph import connected_components

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
    row = np.zeros(n, dtype=np.int64)  # the row of a node in the factor counted from 1, else 0
    row[kept] = factor.perm_r + 1
    lower = sp.csc_array(factor.L)
    lower.sort_indices()
    shape = SparseFactor(
        len(kept), lower.nnz, lower.indptr, lower.indices, lower.data, factor.U.diagonal()
    )
    inverse, differences, left = np.zeros(lower.nnz), np.empty((len(pairs), 2)), len(kept)
    while left:
        left = invert_columns(shape, left, WORK, inverse)
    inverse_differences(shape, inverse, len(pairs), row[pairs], differences)
    return np.maximum(differences, 0.0)


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
