"""Odd sets: is a point of the degree polytope a mixture of matchings?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.complete_kernel import symmetric

EXACT = 400  # nodes; a cut tree of that many takes seconds
SMALL = 12  # nodes, up to which cut trees take no longer than a Cholesky factor
WIDE = 4000  # nodes of a component: a Cholesky factor of more takes seconds and gigabytes
DENSE = 8  # times less than all edges, from where a graph is worth rewriting at every merger
NOTHING = 1e-13  # of a capacity
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
    if structure.graph.sides is not None:
        return True
    parts = _components(structure, tau)
    return all(len(table) and _proven(table, largest, structure) for table, largest in parts)


def in_hull(structure: Any, rows: Array, tol: float = 1e-8) -> NDArray[np.bool_]:
    """Which points are mixtures of a general graph's matchings: proof, else minimum odd cut.

    Padberg and Rao (1982): the least odd cut is among the n − 1 of a Gomory-Hu tree. O(n⁴) at
    worst, so above ``EXACT`` nodes a point that is not proven is refused, in the hull or not.
    """
    inside, n = np.asarray(structure.contains(rows, tol)), structure.n_nodes
    if structure.graph.sides is not None:
        return inside
    if structure.kind == "perfect" and n % 2:
        return np.zeros_like(inside)
    doubt = np.flatnonzero(inside & ~calm(structure, rows))
    if n > SMALL:
        doubt = np.array([m for m in doubt if not odd_set_proof(structure, rows[m])], dtype=int)
    inside[doubt] = False
    if n <= EXACT and len(doubt):
        kept = np.zeros(len(doubt), dtype=np.bool_)
        terminal = _terminals(n, structure.kind == "perfect")
        keep(rows[doubt], structure.ends, n, terminal, 1.0 - tol, kept)
        inside[doubt] = kept
    return inside


def violated_sets(structure: Any, tau: Array) -> NDArray[np.bool_]:
    """Nested odd sets (rows over the nodes) whose cut, singles included, is below 1 − 1e-8.

    None only if no odd set's is: τ, feasible for the degrees, is then a mixture of matchings.
    """
    n, perfect = structure.n_nodes, structure.kind == "perfect"
    terminal = _terminals(n, perfect)
    network = np.empty((len(terminal), len(terminal)))
    fill(tau, structure.ends, n, network)
    sets = odd_cuts(network, terminal, 1.0 - BROKEN)[:, :n]
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


def _terminals(n: int, perfect: bool) -> NDArray[np.bool_]:
    """Odd sets are those with an odd number of terminals; the node for what is single evens out."""
    return np.append(np.ones(n, dtype=np.bool_), [] if perfect else n % 2 == 1).astype(np.bool_)


@kernel
def fill(tau, ends, n, network):  # type: ignore[no-untyped-def]
    """Edges' capacities; those of one node more are what nodes that may be single have left."""
    network[:] = 0.0
    for e in range(len(tau)):
        network[ends[e, 0], ends[e, 1]] = network[ends[e, 1], ends[e, 0]] = tau[e]
    if len(network) > n:
        for v in range(n):
            network[v, n] = network[n, v] = max(1.0 - network[v, :n].sum(), 0.0)


@kernel
def keep(rows, ends, n, terminal, below, out):  # type: ignore[no-untyped-def]
    """Marks the rows in which no odd set's cut is below."""
    size = len(terminal)
    network, parent, value = np.empty((size, size)), np.empty(size, np.int64), np.empty(size)
    left = np.empty(size, np.bool_)
    for m in range(len(rows)):
        fill(rows[m], ends, n, network)
        cut_tree(network, terminal, below, parent, value, left)
        out[m] = not _odd_edges(parent, value, left, below).any()


@kernel
def _odd_edges(parent, value, terminal, below):  # type: ignore[no-untyped-def]
    """The nodes below whose tree edge, of a smaller value, an odd number of terminals hang."""
    n = len(parent)
    under = np.zeros(n, dtype=np.int64)
    for v in range(n):
        if terminal[v]:
            u = v
            while parent[u] != u:
                under[u] += 1
                u = parent[u]
    return (under % 2 == 1) & (value < below)


def odd_cuts(
    network: Array, terminal: NDArray[np.bool_], below: float = np.inf
) -> NDArray[np.bool_]:
    """Sets with an odd number of terminals and a cut under ``below``; the least one among them.

    Rows of flags: sides of a cut tree's edges, without the last node; none if no cut is so small.
    """
    parent, value = np.empty(len(network), dtype=np.int64), np.empty(len(network))
    left = np.empty(len(network), dtype=np.bool_)
    cut_tree(network, terminal, below, parent, value, left)
    inside = _hanging(parent)
    odd = (inside @ left.astype(np.int64)) % 2 == 1
    sets = inside[odd & (value < below) & (parent != np.arange(len(parent)))]
    return np.asarray(sets ^ sets[:, -1:])


def _hanging(parent: Ints) -> NDArray[np.bool_]:
    """Row v: the nodes whose way to the root passes v."""
    n = len(parent)
    inside, here = np.zeros((n, n), dtype=bool), parent.copy()
    inside[np.arange(n), np.arange(n)] = True
    for _ in range(n):
        inside[here, np.arange(n)] = True
        here = parent[here]
        if (here == parent[here]).all():
            break
    return inside


@kernel
def cut_tree(network, terminal, cap, parent, value, left):  # type: ignore[no-untyped-def]
    """Gusfield's cut tree over terminals: parents and values of least cuts by maximum flows.

    Marks those ``left``: the terminals that it is over, in whose numbers a set with a cut below
    ``cap`` is odd where it is in those of ``terminal``: pairs that no such cut parts are left out
    first. Every odd set parts one pair of any pairing (Rizzi 2002), so that often none remains. A
    flow may stop at ``cap``: no smaller cut parts its ends, which then stay together whatever is
    cut later. Flows are Dinic's, over the edges that have a capacity.
    """
    n, merged = len(network), network.copy()
    left[:] = terminal
    start, head, back, room = _lists(merged)
    level, queue, at = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    pairs = _paired(network, terminal)
    for k in range(len(pairs)):
        s, t = pairs[k]
        if _flow(start, head, back, room.copy(), s, t, cap, level, queue, at) < cap:
            continue
        left[s] = left[t] = False
        merged[s] += merged[t]
        merged[:, s] = merged[s]
        merged[t], merged[:, t], merged[s, s] = 0.0, 0.0, 0.0
        if DENSE * len(head) > n * n:
            start, head, back, room = _lists(merged)
    parent[:], value[:] = np.argmax(left), np.inf
    if not left.any():
        return
    start, head, back, room = _lists(merged)
    for s in range(n):
        t = parent[s]
        if not left[s] or s == t:
            continue
        most = room[start[s] : start[s + 1]].sum() - 1e-12
        enough = min(cap, most)  # nothing is less than all that leaves s
        value[s] = _flow(start, head, back, room.copy(), s, t, enough, level, queue, at)
        if value[s] >= enough:
            continue
        for i in range(n):
            if i != s and level[i] >= 0 and parent[i] == t:
                parent[i] = s
        if level[parent[t]] >= 0:
            parent[s], parent[t] = parent[t], s
            value[s], value[t] = value[t], value[s]
    for k in range(len(pairs)):
        s, t = pairs[k]
        if not left[s]:  # one node with its partner
            parent[t] = s


@kernel
def _paired(network, terminal):  # type: ignore[no-untyped-def]
    """Terminals in pairs between which much can flow, the surest first. O(n²)."""
    n, count = len(network), 0
    free, most = terminal.copy(), np.zeros(n)
    pairs = np.empty((terminal.sum() // 2, 2), np.int64)
    for u in range(n):
        for v in range(n):
            if terminal[u] and terminal[v] and u != v:
                most[u] = max(most[u], network[u, v])
    for u in np.argsort(-most):
        best = -1
        for v in range(n):
            if free[u] and free[v] and u != v and (best < 0 or network[u, v] > network[u, best]):
                best = v
        if best >= 0:
            free[u] = free[best] = False
            pairs[count] = u, best
            count += 1
    return pairs


@kernel
def _lists(network):  # type: ignore[no-untyped-def]
    """(where every node's edges start, their heads, their ways back, their capacities)."""
    n = len(network)
    start = np.zeros(n + 1, dtype=np.int64)
    for u in range(n):
        start[u + 1] = start[u]
        for v in range(n):
            start[u + 1] += v != u and network[u, v] > NOTHING
    head, room = np.empty(start[n], dtype=np.int64), np.empty(start[n])
    place, back = start[:n].copy(), np.empty(start[n], dtype=np.int64)
    for u in range(n):
        for v in range(u):
            if network[u, v] > NOTHING:
                a, b = place[u], place[v]
                head[a], head[b], back[a], back[b] = v, u, b, a
                room[a] = room[b] = network[u, v]
                place[u] += 1
                place[v] += 1
    return start, head, back, room


@kernel
def _short_ways(start, head, back, left, s, t):  # type: ignore[no-untyped-def]
    """What flows from s to t along ways of one and two edges, taken from ``left``."""
    total, e, f = 0.0, start[s], start[t]
    while e < start[s + 1] and f < start[t + 1]:
        if head[e] == t or head[e] == head[f]:
            onward = e if head[e] == t else back[f]
            room = min(left[e], left[onward])
            total += room
            left[e] -= room
            left[back[e]] += room
            if onward != e:
                left[onward] -= room
                left[f] += room
        if head[e] <= head[f]:
            e += 1
        else:
            f += 1
    return total


@kernel
def _flow(start, head, back, left, s, t, enough, level, queue, at):  # type: ignore[no-untyped-def]
    """The most that flows from s to t, or ``enough``; what s still reaches has a level ≥ 0."""
    total = _short_ways(start, head, back, left, s, t)
    while total < enough:
        level[:] = -1
        level[s], queue[0], first, last = 0, s, 0, 1
        while first < last and level[t] < 0:
            u = queue[first]
            first += 1
            for e in range(start[u], start[u + 1]):
                v = head[e]
                if level[v] < 0 and left[e] > NOTHING:
                    level[v], queue[last] = level[u] + 1, v
                    last += 1
        if level[t] < 0:
            return total
        at[:] = start[:-1]
        u, depth = s, 0  # ``queue`` is the path's edges from here on
        while True:
            if u == t:
                room = np.inf
                for k in range(depth):
                    room = min(room, left[queue[k]])
                total += room
                for k in range(depth - 1, -1, -1):
                    e = queue[k]
                    left[e] -= room
                    left[back[e]] += room
                    if left[e] <= NOTHING:
                        u, depth = head[back[e]], k
                if total >= enough:
                    return total
            elif at[u] < start[u + 1]:
                e = at[u]
                v = head[e]
                if left[e] > NOTHING and level[v] == level[u] + 1:
                    queue[depth] = e
                    u = v
                    depth += 1
                else:
                    at[u] += 1
            elif depth > 0:
                depth -= 1
                u = head[back[queue[depth]]]
                at[u] += 1
            else:
                break
    return total
