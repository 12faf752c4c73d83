"""The questions a search asks of one vertex's edges, each answered from a dense or a sparse row.

Dense rows are read in vectorised passes: O(n), about a microsecond per thousand entries. They leave
the diagonal out by an infinite dual or by the test for the same outermost node.
"""

from typing import NamedTuple

import numpy as np

from mlestruct.kernels import kernel
from mlestruct_oracles.blossom_forest import BLOCK, N_OUTER, NONE, Array, Forest, lower, uncounted

LARGEST = 1e300  # beyond it sums of duals could overflow
FEW = 3  # with fewer outer vertices than 1 / FEW they are visited one by one
CHUNK = 256  # of a row: its least entry is looked for in one chunk only
NO_NAN = {"nnan", "nsz"}  # what a vectorised minimum needs; infinities keep their meaning


class Neighbours(NamedTuple):
    """A symmetric matrix of weights, or (where it is empty) rows of neighbours and weights."""

    matrix: Array
    start: Array
    target: Array
    weight: Array


@uncounted()
def fill_rows(ends: Array, scores: Array, start: Array, target: Array, weight: Array) -> None:
    """Every edge in the rows of both its ends; ``start`` is zero and has n + 2 places: O(m)."""
    for k in range(len(ends)):
        start[ends[k, 0] + 2] += 1
        start[ends[k, 1] + 2] += 1
    for v in range(2, start.size):
        start[v] += start[v - 1]
    for k in range(len(ends)):
        for side in range(2):
            v = ends[k, side]
            target[start[v + 1]] = ends[k, 1 - side]
            weight[start[v + 1]] = scores[k]
            start[v + 1] += 1


@kernel
def shared_duals(first: Array, last: Array, z: Array, ends: Array, total: Array) -> bool:
    """The sum of z over the sets that hold both places of a pair; False unless sets are nested.

    Set s holds places first[s] to last[s] - 1; a set comes before those inside it.
    """
    around, sums, inner = np.full(z.size, NONE, np.int64), z.copy(), np.empty(0, np.int64)
    if z.size:
        inner = np.full(max(last.max(), ends.max() + 1 if ends.size else 0), NONE, np.int64)
    open_set = NONE
    for s in range(z.size):
        while open_set != NONE and last[open_set] <= first[s]:
            open_set = around[open_set]
        if open_set != NONE:
            if last[s] > last[open_set]:
                return False
            sums[s] += sums[open_set]
        around[s] = open_set
        open_set = s
        inner[first[s] : last[s]] = s
    for k in range(len(ends)):
        s = inner[ends[k, 0]] if z.size else NONE
        while s != NONE and not first[s] <= ends[k, 1] < last[s]:
            s = around[s]
        total[k] = sums[s] if s != NONE else 0.0
    return True


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


@uncounted()
def row_excess(edges: Neighbours, y: Array, v: int) -> float:
    """The greatest weight at v minus the other end's y: what v's own dual has to cover."""
    if edges.matrix.size:
        own = y[v]
        y[v] = np.inf
        best = greatest_excess(edges.matrix[v], y)
        y[v] = own
        return best
    best = -np.inf
    for k in range(edges.start[v], edges.start[v + 1]):
        best = max(best, edges.weight[k] - y[edges.target[k]])
    return best


@uncounted()
def tight_exposed(edges: Neighbours, y: Array, mate: Array, v: int, need: float) -> int:
    """An exposed neighbour over an edge of v that needs exactly this dual, or NONE."""
    if edges.matrix.size:
        row = edges.matrix[v]
        for u in range(row.size):
            if mate[u] == NONE and row[u] - y[u] == need and u != v:
                return u
        return NONE
    for k in range(edges.start[v], edges.start[v + 1]):
        other: int = edges.target[k]
        if mate[other] == NONE and edges.weight[k] - y[other] == need:
            return other
    return NONE


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
def scan_row(edges: Neighbours, forest: Forest, u: int) -> float:
    """Record the edges of a new outer vertex; twice the time of its best edge to scanned ones.

    Edges within its own node count too, so that is a lower bound, as near_block is.
    """
    y_u, n = forest.y[u], forest.top.size
    near, near_from, free_y = forest.near, forest.near_from, forest.free_y
    best = np.inf
    if edges.matrix.size:
        best = lower_near(edges.matrix[u], y_u, u, near, near_from, forest.outer_y)
        block, top = forest.near_least
        top[:] = np.inf
        for i in range(block.size):
            a, b = i * BLOCK, min(i * BLOCK + BLOCK, n)
            block[i] = least_sum(near, free_y, a, b)
            top[i // BLOCK] = min(top[i // BLOCK], block[i])
        return best
    for k in range(edges.start[u], edges.start[u + 1]):
        v = edges.target[k]
        reach = y_u - edges.weight[k]
        if reach < near[v]:
            near[v] = reach
            near_from[v] = u
            lower(forest.near_least, v, reach + free_y[v])
        best = min(best, reach + forest.outer_y[v])
    return best


@uncounted(fastmath=NO_NAN)
def least_pair(row: Array, y_u: float, outer_y: Array, top: Array, own: int) -> float:
    best = np.inf
    for v in range(row.size):
        value = (y_u - row[v]) + outer_y[v] if top[v] != own else np.inf
        if value < best:
            best = value
    return best


@uncounted(forceinline=True)
def best_pair(edges: Neighbours, forest: Forest, u: int) -> tuple[float, int]:
    """Twice the time of the best edge to an outer vertex of another node, exactly, and its end."""
    y_u, own, outer_y, top = forest.y[u], forest.top[u], forest.outer_y, forest.top
    best, best_v = np.inf, NONE
    if edges.matrix.size:
        row = edges.matrix[u]
        if FEW * forest.length[N_OUTER] < row.size:
            for i in range(forest.length[N_OUTER]):
                v = forest.outer[i]
                value = (y_u - row[v]) + outer_y[v]
                if value < best and top[v] != own:
                    best, best_v = value, v
            return best, best_v
        first = 0
        for a in range(0, row.size, CHUNK):
            b = min(a + CHUNK, row.size)
            value = least_pair(row[a:b], y_u, outer_y[a:b], top[a:b], own)
            if value < best:
                best, first = value, a
        for v in range(first, row.size):
            if (y_u - row[v]) + outer_y[v] == best and top[v] != own:
                return best, v
        return best, NONE
    for k in range(edges.start[u], edges.start[u + 1]):
        v = edges.target[k]
        value = (y_u - edges.weight[k]) + outer_y[v]
        if value < best and top[v] != own:
            best, best_v = value, v
    return best, best_v


@uncounted(fastmath=NO_NAN)
def least_difference(a: Array, b: Array) -> float:
    best = np.inf
    for i in range(a.size):
        value = a[i] - b[i]
        if value < best:
            best = value
    return best


@uncounted(forceinline=True)
def best_near(edges: Neighbours, forest: Forest, v: int) -> tuple[float, int]:
    """The exact least of y[u] - weight over outer vertices u, and that u."""
    outer_y = forest.outer_y
    best, best_u = np.inf, NONE
    if edges.matrix.size:
        row = edges.matrix[v]
        if FEW * forest.length[N_OUTER] < row.size:
            for i in range(forest.length[N_OUTER]):
                u = forest.outer[i]
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
    for k in range(edges.start[v], edges.start[v + 1]):
        u = edges.target[k]
        value = outer_y[u] - edges.weight[k]
        if value < best:
            best, best_u = value, u
    return best, best_u


@uncounted(forceinline=True)
def edge_weight(edges: Neighbours, u: int, v: int) -> float:
    best: float = -np.inf
    if edges.matrix.size:
        best = edges.matrix[u, v]
        return best
    for k in range(edges.start[v], edges.start[v + 1]):
        if edges.target[k] == u:
            best = max(best, edges.weight[k])
    return best
