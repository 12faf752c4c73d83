"""Sharing edge weights between their ends by augmenting paths; apart, because it needs Numba."""

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints


@kernel
def shareable(n: int, ends: Ints, rho: Array, tol: float) -> bool:
    """For every node r: can edges be shared so that each node gets ≤ 1 and r nothing?"""
    room = np.ones(n)
    share = np.empty(ends.shape)
    start, around, load = _rows(n, ends, rho, share)
    came, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for v in range(n):
        if not _relieve(v, start, around, ends, share, load, room, tol, came, queue):
            return False
    for r in range(n):
        room[r] = 0.0
        if not _relieve(r, start, around, ends, share, load, room, tol, came, queue):
            return False
        room[r] = 1.0
    return True


@kernel
def share_out(ends: Ints, rho: Array, room: Array, tol: float, share: Array) -> bool:
    """Share each edge between its ends so that no node gets more than its room, if possible."""
    n = len(room)
    start, around, load = _rows(n, ends, rho, share)
    came, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for v in range(n):
        if not _relieve(v, start, around, ends, share, load, room, tol, came, queue):
            return False
    return True


@kernel
def _rows(n: int, ends: Ints, rho: Array, share: Array) -> tuple[Ints, Ints, Array]:
    """The edges around every node (2 e + side), even shares, and what nodes hold of them."""
    m = len(ends)
    start = np.zeros(n + 1, dtype=np.int64)
    for e in range(m):
        start[ends[e, 0] + 1] += 1
        start[ends[e, 1] + 1] += 1
    start = np.cumsum(start)
    place, around = start[:-1].copy(), np.empty(2 * m, dtype=np.int64)
    load = np.zeros(n)
    for e in range(m):
        for side in range(2):
            around[place[ends[e, side]]] = 2 * e + side
            place[ends[e, side]] += 1
            share[e, side] = rho[e] / 2
            load[ends[e, side]] += rho[e] / 2
    return start, around, load


@kernel
def _relieve(
    v: int,
    start: Ints,
    around: Ints,
    ends: Ints,
    share: Array,
    load: Array,
    room: Array,
    tol: float,
    came: Ints,
    queue: Ints,
) -> bool:
    """Move what v holds above its room to nodes with room left, along shortest paths.

    ``came`` is −1 everywhere, and again at the end: a path costs what it passes, not n.
    """
    least = 1e-3 * tol / len(load)
    while load[v] > room[v] + tol:
        came[v] = -2
        queue[0] = v
        first, last, goal = 0, 1, -1
        while first < last and goal < 0:
            u = queue[first]
            first += 1
            for k in range(start[u], start[u + 1]):
                e, side = around[k] // 2, around[k] % 2
                w = ends[e, 1 - side]
                if share[e, side] > least and came[w] == -1:
                    came[w] = around[k]
                    queue[last] = w
                    last += 1
                    if load[w] < room[w] - least:
                        goal = w
                        break
        if goal < 0:
            for i in range(last):
                came[queue[i]] = -1
            return False
        sent, node = min(load[v] - room[v], room[goal] - load[goal]), goal
        while node != v:
            e, side = came[node] // 2, came[node] % 2
            sent, node = min(sent, share[e, side]), ends[e, side]
        load[v] -= sent
        load[goal] += sent
        node = goal
        while node != v:
            e, side = came[node] // 2, came[node] % 2
            share[e, side] -= sent
            share[e, 1 - side] += sent
            node = ends[e, side]
        for i in range(last):
            came[queue[i]] = -1
    return True
