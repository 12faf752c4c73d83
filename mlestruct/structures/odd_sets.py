"""Odd sets: is a point of the degree polytope a mixture of matchings?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.native._door import odd_sets_cut_tree
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.graph_edges import symmetric

EXACT = 400  # nodes; a cut tree of that many takes seconds
SMALL = 12  # nodes, up to which cut trees take no longer than a Cholesky factor
WIDE = 4000  # nodes of a component: a Cholesky factor of more takes seconds and gigabytes
BROKEN = 1e-8  # what a broken set's cut lacks of one


def odd_set_proof(structure: Any, tau: Array) -> bool:
    """True only if τ, feasible for the degrees, is a mixture of the structure's matchings.

    An odd set S of k nodes with a cut (singles included) of at least one holds no violated
    inequality. The cut is at least k(1 − (k−1)τ_max), and at least α k(n−k)/n (perfect) or αk
    (partial) where no eigenvalue besides the constant's exceeds 1 − α: small sets pass by the
    first, large by the second once Frobenius's norm or a Cholesky factor proves α. O(n³) per
    component, .2 s at n = 2,400; larger ones than ``WIDE`` of a sparse graph are not tried. False
    means not proven, no more.
    """
    if not structure.contains(tau):
        return False
    if not structure.odd:
        return True
    parts = _components(structure, tau)
    return all(len(table) and _proven(table, largest, structure) for table, largest in parts)


def in_hull(structure: Any, rows: Array, tol: float = 1e-8) -> NDArray[np.bool_]:
    """Which points are mixtures of a general graph's matchings: proof, else minimum odd cut.

    Padberg and Rao (1982): the least odd cut is among the n − 1 of a Gomory-Hu tree. O(n⁴) at
    worst, so above ``EXACT`` nodes a point that is not proven is refused, in the hull or not.
    """
    inside, n = np.asarray(structure.contains(rows, tol)), structure.n_nodes
    if not structure.odd:
        return inside
    if structure.kind == "perfect" and n % 2:
        return np.zeros_like(inside)
    doubt = np.flatnonzero(inside & ~calm(structure, rows))
    if n > SMALL:
        doubt = np.array([m for m in doubt if not odd_set_proof(structure, rows[m])], dtype=int)
    inside[doubt] = False
    if n <= EXACT and len(doubt):
        inside[doubt] = [not len(violated_sets(structure, rows[m], 1.0 - tol)) for m in doubt]
    return inside


def violated_sets(structure: Any, tau: Array, below: float = 1.0 - BROKEN) -> NDArray[np.bool_]:
    """Nested odd sets (rows over the nodes) whose cut, singles included, is ``below`` one.

    None only if no odd set's is: τ, feasible for the degrees, is then a mixture of matchings.
    Edges and slacks have capacities τ; odd sets have an odd number of terminals. A node more takes
    what nodes that may stay single have left, and evens the terminals out.
    """
    n, perfect = structure.n_nodes, structure.kind == "perfect"
    size, (u, v) = n + (not perfect), structure.ends.T
    network, terminal = np.zeros((size, size)), np.arange(size) < n + n % 2
    network[u, v] = network[v, u] = as_numbers(tau, "tau")
    if not perfect:
        network[n, :n] = network[:n, n] = np.maximum(1.0 - network.sum(axis=1)[:n], 0.0)
    sets = odd_cuts(network, terminal, below)[:, :n]
    return np.asarray(sets ^ (perfect & (2 * sets.sum(axis=1, keepdims=True) > n)))


def _components(structure: Any, tau: Array) -> Iterator[tuple[Array, float]]:
    """(τ's matrix, largest τ) for every connected component; no matrix of one that is too wide."""
    n = structure.n_nodes
    if structure.graph.complete:
        yield symmetric(tau, n), float(tau.max())
        return
    from scipy.sparse.csgraph import connected_components

    used = tau > 0
    ends = np.sort(structure.ends[used], axis=1)
    graph = sp.csr_array((tau[used], (ends[:, 0], ends[:, 1])), shape=(n, n))
    count, label = connected_components(graph, directed=False)
    for number in range(count):
        nodes = np.flatnonzero(label == number)
        if len(nodes) > WIDE:
            yield np.empty((0, 0)), 1.0
            return
        part = graph[nodes][:, nodes].toarray()
        part += part.T
        yield part, float(part.max())


def calm(structure: Any, rows: Array) -> NDArray[np.bool_]:
    """Rows, feasible for the degrees, that sums of squares alone prove to be mixtures. O(edges)."""
    return _calm(structure.n_nodes, rows.max(axis=1), (rows * rows).sum(axis=1), structure)[0]


def _calm(n: int, largest: Any, squares: Any, structure: Any) -> tuple[NDArray[np.bool_], Any]:
    """(proven without eigenvalues, the α that they have to show)."""
    perfect = structure.kind == "perfect"
    # Sets of at most k nodes pass by size: the first odd size left is k + 2.
    k = np.floor(1.0 / np.maximum(largest, 1.0 / (n + 2)) + 1e-12)
    first = k + 1 + k % 2
    alpha = n / (first * np.maximum(n - first, 1.0)) if perfect else 1.0 / first
    # Every eigenvalue besides the constant's (1 where perfect) is at most Frobenius's norm.
    even = (alpha < 1.0) & (2.0 * squares - perfect <= np.maximum(1.0 - alpha - 1e-11, 0.0) ** 2)
    return (first > (n // 2 if perfect else n)) | even, alpha


def _proven(table: Array, largest: float, structure: Any) -> bool:
    """Whether one component is proven to meet every odd set; its matrix is overwritten."""
    n, perfect = len(table), structure.kind == "perfect"
    if perfect and n % 2:
        return False
    sure, alpha = _calm(n, largest, float(np.vdot(table, table)) / 2.0, structure)
    if sure:
        return True
    np.subtract(1.0 / n if perfect else 0.0, table, out=table)
    table[np.diag_indices(n)] += 1.0 - alpha - 1e-11
    from scipy.linalg import LinAlgError, cholesky

    try:
        cholesky(table.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def odd_cuts(
    network: Array, terminal: NDArray[np.bool_], below: float = np.inf
) -> NDArray[np.bool_]:
    """Sets with an odd number of terminals and a cut under ``below``; the least one among them.

    Rows of flags: sides of a cut tree's edges, without the last node; none if no cut is so small.
    """
    size = len(network)
    parent, value = np.empty(size, dtype=np.int64), np.empty(size)
    odd_sets_cut_tree(size, network, terminal, below, parent, value)
    every, here = np.arange(size), parent.copy()
    inside = np.eye(size, dtype=bool)  # row v: the nodes whose way to the root passes v
    while not inside[here, every].all():
        inside[here, every] = True
        here = parent[here]
    odd = (inside @ terminal.astype(np.int64)) % 2 == 1
    sets = inside[odd & (value < below) & (parent != np.arange(len(parent)))]
    return np.asarray(sets ^ sets[:, -1:])
