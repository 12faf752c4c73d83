"""Odd sets: is a point of the degree polytope a mixture of matchings?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.complete_kernel import unfold

EXACT = 200  # nodes, seconds; least odd cuts of dense graphs take minutes at twice as many


def odd_set_proof(structure: Any, tau: Array) -> bool:
    """True only if τ, feasible for the degrees, is a mixture of the structure's matchings.

    An odd set S of k nodes with a cut (singles included) of at least one holds no violated
    inequality. The cut is at least k(1 − (k−1)τ_max), and at least α k(n−k)/n (perfect) or αk
    (partial) where no eigenvalue besides the constant's exceeds 1 − α: small sets pass by the
    first, large by the second once Frobenius's norm or a Cholesky factor proves α. O(n³) per
    component, .2 s at n = 2,400. False means not proven, no more.
    """
    if not structure.contains(tau):
        return False
    if structure.graph.sides is not None:
        return True
    perfect = structure.kind == "perfect"
    return all(
        _proven(table, n, largest, perfect) for table, n, largest in _components(structure, tau)
    )


def in_hull(structure: Any, tau: Array, tol: float = 1e-8) -> bool:
    """Whether a point is a mixture of a general graph's matchings: proof, else minimum odd cut.

    Padberg and Rao: the least odd cut is among the n − 1 of a Gomory-Hu tree. O(n⁴) at worst, so
    above ``EXACT`` nodes a point that is not proven is refused, in the hull or not.
    """
    if not structure.contains(tau, tol):
        return False
    if odd_set_proof(structure, tau):
        return True
    if structure.n_nodes > EXACT:
        return False
    perfect = structure.kind == "perfect"
    for table, n, _ in _components(structure, tau):
        if perfect and n % 2:
            return False
        network, terminal = _network(table + table.T, n, perfect)
        if least_odd_cut(network, terminal) < 1.0 - tol:
            return False
    return True


def _components(structure: Any, tau: Array) -> Iterator[tuple[Array, int, float]]:
    """(upper triangle of τ's matrix, nodes, largest τ) for every connected component."""
    n = structure.n_nodes
    if structure.graph.complete:
        table = np.empty((n, n))
        unfold(tau, 0, n, table)
        yield table, n, float(tau.max())
        return
    from scipy.sparse.csgraph import connected_components

    used = tau > 0
    ends = np.sort(structure.ends[used], axis=1)
    graph = sp.csr_array((tau[used], (ends[:, 0], ends[:, 1])), shape=(n, n))
    count, label = connected_components(graph, directed=False)
    for number in range(count):
        nodes = np.flatnonzero(label == number)
        part = graph[nodes][:, nodes].toarray()
        yield part, len(nodes), float(part.max())


def _proven(table: Array, n: int, largest: float, perfect: bool) -> bool:
    """One component by its upper triangle, which is overwritten."""
    if perfect and n % 2:
        return False
    # Sets of at most k nodes pass by size: the first odd size left is k + 2.
    k = int(np.floor(1.0 / max(largest, 1.0 / (n + 2)) + 1e-12))
    first = (k - 1 + k % 2) + 2
    if first > (n // 2 if perfect else n):
        return True
    alpha = n / (first * (n - first)) if perfect else 1.0 / first
    # Every eigenvalue besides the constant's (1 where perfect) is at most Frobenius's norm.
    rest = 2.0 * float(np.vdot(table, table)) - perfect
    if alpha < 1.0 and rest <= (1.0 - alpha - 1e-11) ** 2:
        return True
    np.subtract(1.0 / n if perfect else 0.0, table, out=table)
    table[np.diag_indices(n)] += 1.0 - alpha - 1e-11
    return _positive(table)


def _positive(upper: Array) -> bool:
    """Whether the symmetric matrix with this upper triangle is positive definite, surely."""
    from scipy.linalg import LinAlgError, cho_factor

    try:
        cho_factor(upper.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _network(table: Array, n: int, perfect: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Cuts of odd sets as cuts between terminals; a node that may be single has a way out."""
    if perfect:
        return table, np.ones(n, dtype=np.bool_)
    network = np.zeros((n + 1, n + 1))
    network[:n, :n] = table
    network[n, :n] = network[:n, n] = np.maximum(1.0 - table.sum(axis=0), 0.0)
    terminal = np.ones(n + 1, dtype=np.bool_)
    terminal[n] = n % 2 == 1
    return network, terminal


@kernel
def least_odd_cut(network: Array, terminal: NDArray[np.bool_]) -> float:
    """The least cut with an odd number of terminals on each side; inf if there is none.

    Gusfield's cut tree: n − 1 maximum flows on the graph itself, by scaled augmenting paths.
    """
    n = len(network)
    parent, value = np.zeros(n, dtype=np.int64), np.zeros(n)
    flow, side = np.empty((n, n)), np.empty(n, dtype=np.bool_)
    queue, before = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for s in range(1, n):
        t = parent[s]
        cut = _minimum_cut(network, s, t, flow, side, queue, before)
        value[s] = cut
        for i in range(n):
            if i != s and side[i] and parent[i] == t:
                parent[i] = s
        if side[parent[t]]:
            parent[s], parent[t] = parent[t], s
            value[s], value[t] = value[t], cut
    return _least_odd_edge(parent, value, terminal)


@kernel
def _least_odd_edge(parent: Ints, value: Array, terminal: NDArray[np.bool_]) -> float:
    """The least tree edge below which an odd number of terminals hang."""
    n = len(parent)
    below, open_ = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    root = 0
    for v in range(n):
        below[v] += terminal[v]
        if parent[v] == v:
            root = v
        else:
            open_[parent[v]] += 1
    least, ready = np.inf, [v for v in range(n) if open_[v] == 0]
    while len(ready) > 0:
        v = ready.pop()
        if v == root:
            continue
        if below[v] % 2 == 1:
            least = min(least, value[v])
        below[parent[v]] += below[v]
        open_[parent[v]] -= 1
        if open_[parent[v]] == 0:
            ready.append(parent[v])
    return least


@kernel
def _minimum_cut(network, s, t, flow, side, queue, before):  # type: ignore[no-untyped-def]
    """The value of a least s-t cut and its side of s; paths with room for ``least`` first."""
    total, least = 0.0, 0.25
    most = network[s].sum()
    flow[:] = network  # what is left of every capacity
    while least > 1e-13 and total < most - 1e-12:
        if not _path(flow, s, t, least, side, queue, before):
            least /= 8.0
            continue
        room, v = np.inf, t
        while v != s:
            room = min(room, flow[before[v], v])
            v = before[v]
        v = t
        while v != s:
            flow[before[v], v] -= room
            flow[v, before[v]] += room
            v = before[v]
        total += room
    if total >= most - 1e-12:  # nothing is less than all that leaves s
        side[:] = False
        side[s] = True
    return total


@kernel
def _path(flow, s, t, least, side, queue, before):  # type: ignore[no-untyped-def]
    """Breadth first along what has room; ``side`` is what was reached when t was not."""
    side[:] = False
    side[s], queue[0], first, last = True, s, 0, 1
    while first < last:
        u = queue[first]
        first += 1
        for v in range(len(flow)):
            if flow[u, v] > least and not side[v]:
                side[v], before[v], queue[last] = True, u, v
                last += 1
                if v == t:
                    return True
    return False
