"""The questions a search asks of one vertex's edges, each answered from a row of a matrix.

Rows are read in vectorised passes: O(n), about a microsecond per thousand entries. They leave the
diagonal out by an infinite dual or by the test for the same outermost node.
"""

from typing import NamedTuple

import numpy as np

from mlestruct.kernels import class_of, kernel, variant
from mlestruct_oracles.blossom_forest import (
    FREE,
    N_EVENTS,
    NONE,
    Array,
    Forest,
    counted,
    end_inner,
    filled,
    label_vertex,
    row_excess,
    tight_exposed,
    uncounted,
)

BLOCK = 64
LARGEST = 1e300  # beyond it sums of duals could overflow
FEW = 3  # with fewer outer vertices than 1 / FEW they are visited one by one
CHUNK = 256  # of a row: its least entry is looked for in one chunk only
NO_NAN = {"nnan", "nsz"}  # what a vectorised minimum needs; infinities keep their meaning


class Bounds(NamedTuple):
    """Lower bounds on the least of each block of values, and on the least of each block of those.

    Lowered at once (``lower``) and raised when they are the least of all (``least_block``), so that
    the least of n values costs a look at 64 of them, at 64 blocks, and at n / 4096 tops.
    """

    block: Array
    top: Array


@kernel
def unbounded(n: int) -> Bounds:
    blocks = (n + BLOCK - 1) // BLOCK
    return Bounds(filled(blocks, np.inf), filled((blocks + BLOCK - 1) // BLOCK, np.inf))


class Scanned(NamedTuple):
    """When edges from scanned outer vertices are tight, as far as that is known."""

    free_y: Array  # y of free vertices, else inf
    outer_y: Array  # y of scanned outer vertices, else inf
    near: Array  # vertex → least y[u] - weight[u, v] over outer vertices u, or less
    near_from: Array  # that u, when near was written
    pair: Array  # outer vertex → twice the time an edge to another outer node is tight, or less
    used_up: Array  # node → half of outermost inner blossoms, else inf
    near_least: Bounds  # of near + free_y
    pair_least: Bounds
    outer_least: Bounds  # of outer_y
    used_up_least: Bounds
    outer: Array  # the scanned outer vertices: forest.length[N_EVENTS] of them


@uncounted(forceinline=True)
def lower(bounds: Bounds, place: int, value: float) -> None:
    """Let the bounds allow this value at this place."""
    block = place // BLOCK
    if value < bounds.block[block]:
        bounds.block[block] = value
        bounds.top[block // BLOCK] = min(bounds.top[block // BLOCK], value)


@kernel
def unscanned(n: int) -> Scanned:
    """Nothing is scanned yet, and nobody's dual is known."""
    size = n + n // 2
    return Scanned(
        filled(n, np.inf), filled(n, np.inf), filled(n, np.inf), counted(n, NONE, 0),
        filled(n, np.inf), filled(size, np.inf), unbounded(n), unbounded(n), unbounded(n),
        unbounded(size), counted(n, NONE, 0),
    )  # fmt: skip


@variant(label_vertex, forceinline=True)
def _(forest, events, v, label):  # type: ignore[no-untyped-def]
    if class_of(events) is not Scanned:
        return None

    def dense(forest, events, v, label):  # type: ignore[no-untyped-def]
        events.free_y[v] = forest.y[v] if label == FREE else np.inf
        if label == FREE:
            events.outer_y[v] = np.inf
            events.pair[v] = np.inf
            lower(events.near_least, v, events.near[v] + forest.y[v])

    return dense


@variant(end_inner, forceinline=True)
def _(forest, events, node, time):  # type: ignore[no-untyped-def]
    if class_of(events) is not Scanned:
        return None

    def dense(forest, events, node, time):  # type: ignore[no-untyped-def]
        events.used_up[node] = time
        lower(events.used_up_least, node, time)

    return dense


@uncounted()
def first_fault(weights: Array) -> tuple[int, int]:
    """The first place (i, j) unlike its mirror image or not a weight, or (-1, -1): O(n²)."""
    n = weights.shape[0]
    tile = 64
    for top in range(0, n, tile):
        for left in range(top, n, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(max(left, i + 1), min(left + tile, n)):
                    weight = weights[i, j]
                    finite = -LARGEST < weight < LARGEST
                    if not (weight == weights[j, i] and (finite or weight == -np.inf)):
                        return i, j
    return -1, -1


@uncounted(fastmath=NO_NAN)
def greatest_excess(row: Array, y: Array) -> float:
    best = -np.inf
    for u in range(row.size):
        excess = row[u] - y[u]
        if excess > best:
            best = excess
    return best


@variant(row_excess)
def _(edges, y, v):  # type: ignore[no-untyped-def]
    if class_of(edges) is not None:
        return None

    def dense(edges, y, v):  # type: ignore[no-untyped-def]
        own = y[v]
        y[v] = np.inf
        best = greatest_excess(edges[v], y)
        y[v] = own
        return best

    return dense


@variant(tight_exposed)
def _(edges, y, mate, v, need):  # type: ignore[no-untyped-def]
    if class_of(edges) is not None:
        return None

    def dense(edges, y, mate, v, need):  # type: ignore[no-untyped-def]
        row = edges[v]
        for u in range(row.size):
            if mate[u] == NONE and row[u] - y[u] == need and u != v:
                return u
        return NONE

    return dense


@uncounted(fastmath=NO_NAN)
def lower_near(
    row: Array, y_u: float, u: int, near: Array, near_from: Array, outer_y: Array
) -> float:
    """Lower near by the edges of u; the least slack to scanned outer vertices comes back."""
    best = np.inf
    for v in range(row.size):
        reach = y_u - row[v]
        if reach < near[v]:
            near[v] = reach
            near_from[v] = u
        pair = reach + outer_y[v]
        if pair < best:
            best = pair
    return best


@uncounted(fastmath=NO_NAN)
def least(values: Array, first: int, last: int) -> float:
    """The least of values[first:last]: a slice would be counted up and down, which takes longer.

    Four quarters at a time: one minimum would wait for the one before it.
    """
    q = (last - first) // 4
    a = b = c = d = np.inf
    for i in range(first, first + q):
        a, b = min(a, values[i]), min(b, values[i + q])
        c, d = min(c, values[i + 2 * q]), min(d, values[i + 3 * q])
    for i in range(first + 4 * q, last):
        a = min(a, values[i])
    return min(min(a, b), min(c, d))


@uncounted(fastmath=NO_NAN)
def least_sum(u: Array, v: Array, first: int, last: int) -> float:
    """The least u_i + v_i from first to last, as ``least``."""
    q = (last - first) // 4
    a = b = c = d = np.inf
    for i in range(first, first + q):
        a, b = min(a, u[i] + v[i]), min(b, u[i + q] + v[i + q])
        c, d = min(c, u[i + 2 * q] + v[i + 2 * q]), min(d, u[i + 3 * q] + v[i + 3 * q])
    for i in range(first + 4 * q, last):
        a = min(a, u[i] + v[i])
    return min(min(a, b), min(c, d))


@uncounted(forceinline=True)
def scan_row(edges: Array, forest: Forest, u: int) -> float:
    """Record the edges of a new outer vertex; twice the time of its best edge to scanned ones.

    Edges within its own node count too, so that is a lower bound, as near_block is.
    """
    events, n = forest.events, forest.head.size
    near, free_y = events.near, events.free_y
    best = lower_near(edges[u], forest.y[u], u, near, events.near_from, events.outer_y)
    block, top = events.near_least
    top[:] = np.inf
    for i in range(block.size):
        a, b = i * BLOCK, min(i * BLOCK + BLOCK, n)
        block[i] = least_sum(near, free_y, a, b)
        top[i // BLOCK] = min(top[i // BLOCK], block[i])
    return best


@uncounted(fastmath=NO_NAN)
def least_pair(row: Array, y_u: float, outer_y: Array, head: Array, own: int) -> float:
    best = np.inf
    for v in range(row.size):
        value = (y_u - row[v]) + outer_y[v] if head[v] != own else np.inf
        if value < best:
            best = value
    return best


@uncounted(forceinline=True)
def best_pair(edges: Array, forest: Forest, u: int) -> tuple[float, int]:
    """Twice the time of the best edge to an outer vertex of another node, exactly, and its end."""
    row, y_u, head = edges[u], forest.y[u], forest.head
    own, outer, outer_y = head[u], forest.events.outer, forest.events.outer_y
    best, best_v = np.inf, NONE
    if FEW * forest.length[N_EVENTS] < row.size:
        for i in range(forest.length[N_EVENTS]):
            v = outer[i]
            value = (y_u - row[v]) + outer_y[v]
            if value < best and head[v] != own:
                best, best_v = value, v
        return best, best_v
    first = 0
    for a in range(0, row.size, CHUNK):
        b = min(a + CHUNK, row.size)
        value = least_pair(row[a:b], y_u, outer_y[a:b], head[a:b], own)
        if value < best:
            best, first = value, a
    for v in range(first, row.size):
        if (y_u - row[v]) + outer_y[v] == best and head[v] != own:
            return best, v
    return best, NONE


@uncounted(fastmath=NO_NAN)
def least_difference(a: Array, b: Array) -> float:
    best = np.inf
    for i in range(a.size):
        value = a[i] - b[i]
        if value < best:
            best = value
    return best


@uncounted(forceinline=True)
def best_near(edges: Array, forest: Forest, v: int) -> tuple[float, int]:
    """The exact least of y[u] - weight over outer vertices u, and that u."""
    row, outer, outer_y = edges[v], forest.events.outer, forest.events.outer_y
    best, best_u = np.inf, NONE
    if FEW * forest.length[N_EVENTS] < row.size:
        for i in range(forest.length[N_EVENTS]):
            u = outer[i]
            value = outer_y[u] - row[u]
            if value < best:
                best, best_u = value, u
        return best, best_u
    first = 0
    for a in range(0, row.size, CHUNK):
        b = min(a + CHUNK, row.size)
        value = least_difference(outer_y[a:b], row[a:b])
        if value < best:
            best, first = value, a
    for u in range(first, row.size):
        if outer_y[u] - row[u] == best:
            return best, u
    return best, NONE
