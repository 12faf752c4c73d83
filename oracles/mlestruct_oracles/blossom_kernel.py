"""Dense blossom kernel: one shortest augmenting path search per vertex that a greedy start left single.

Per search O(n²): every vertex turns outer at most once (one row of the weights read), and the best
edge between two outer nodes is kept per node, a blossom's from its own row of best edges.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from mlestruct_oracles.blossom_forest import (
    INNER,
    N_INNER,
    N_OUTER,
    N_QUEUE,
    NONE,
    allocate,
    augment,
    begin,
    expand,
    grow,
    settle,
    shrink,
    unfold,
)

BLOCK = 64
NO_NAN = {"nnan", "nsz"}  # what a vectorised minimum needs; infinities keep their meaning


class Pairs(NamedTuple):
    """Best edges between outer nodes: per node the best one, per blossom a row over all vertices."""

    value: np.ndarray
    row: np.ndarray
    row_from: np.ndarray
    block: np.ndarray  # least reach of each block of vertices
    tight: np.ndarray  # free vertices at tight edges


@njit(cache=True, nogil=True)
def first_fault(weights):
    """The first place (i, j) that is NaN, +inf or unlike its mirror image, or (-1, -1): O(n²)."""
    n = weights.shape[0]
    tile = 64
    for top in range(0, n, tile):
        for left in range(top, n, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(max(left, i + 1), min(left + tile, n)):
                    if not (weights[i, j] == weights[j, i] and weights[i, j] < np.inf):
                        return i, j
    return -1, -1


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def row_excess(row, y):
    """The greatest weight minus y: what the row's own dual has to cover."""
    best = -np.inf
    for u in range(row.size):
        excess = row[u] - y[u]
        if excess > best:
            best = excess
    return best


@njit(cache=True, nogil=True)
def cover(weights, y, lowest):
    """Raise warm-start duals until every edge is covered: one sweep, O(n²)."""
    for v in range(y.size):
        own = y[v]
        y[v] = np.inf  # leaves the diagonal out
        need = row_excess(weights[v], y)
        y[v] = max(own, need, lowest)


@njit(cache=True, nogil=True)
def tighten(weights, forest, lowest):
    """Lower each dual in turn as far as it goes and match along edges that became tight: O(n²)."""
    y, mate = forest.y, forest.mate
    for v in range(y.size):
        row = weights[v]
        y[v] = np.inf
        need = row_excess(row, y)
        y[v] = max(need, lowest)
        if mate[v] == NONE and need >= lowest and need > -np.inf:
            for u in range(y.size):
                if mate[u] == NONE and row[u] - y[u] == need and u != v:
                    mate[v] = u
                    mate[u] = v
                    break


@njit(cache=True, nogil=True)
def half_maxima(weights, y):
    """Half of each row's greatest weight covers every edge: O(n²)."""
    zero = np.zeros(y.size)
    for v in range(y.size):
        zero[v] = np.inf
        y[v] = row_excess(weights[v], zero) / 2.0
        zero[v] = 0.0


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def scan_vertex(row, y_u, u, near, near_from, outer_y):
    """Record the edges of a new outer vertex; the value of its best edge to the scanned ones."""
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


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def least_sum(a, b, first, last):
    best = np.inf
    for i in range(first, last):
        value = a[i] + b[i]
        if value < best:
            best = value
    return best


@njit(cache=True, nogil=True)
def merge_row(values, sources, best, best_from):
    for v in range(best.size):
        if values[v] < best[v]:
            best[v] = values[v]
            best_from[v] = sources[v]


@njit(cache=True, nogil=True)
def scan_single(weights, forest, pairs, u):
    pairs.value[u] = scan_vertex(
        weights[u], forest.y[u], u, forest.near, forest.near_from, forest.outer_y
    )


@njit(cache=True, nogil=True)
def scan_members(weights, forest, pairs, blossom, node):
    """Scan the node's vertices into near and into the row of the blossom around them."""
    n = forest.top.size
    row, row_from = pairs.row[blossom - n], pairs.row_from[blossom - n]
    last = forest.last[node]
    u = forest.first[node]
    while True:
        y_u = forest.y[u]
        scan_vertex(weights[u], y_u, u, forest.near, forest.near_from, forest.outer_y)
        scan_vertex(weights[u], y_u, u, row, row_from, forest.outer_y)
        if u == last:
            return
        u = forest.after[u]


@njit(cache=True, nogil=True)
def best_of_row(forest, pairs, blossom):
    n = forest.top.size
    return least_sum(pairs.row[blossom - n], forest.outer_y, 0, n)


@njit(cache=True, nogil=True)
def ends_of_best(weights, forest, pairs, node):
    """The edge behind an outer node's best value, looked for only when its time has come: O(n)."""
    n = forest.top.size
    value = pairs.value[node]
    for v in range(n):
        if forest.outer_y[v] < np.inf and forest.top[v] != node:
            if node < n:
                if (forest.y[node] - weights[node, v]) + forest.outer_y[v] == value:
                    return node, v
            elif pairs.row[node - n, v] + forest.outer_y[v] == value:
                return pairs.row_from[node - n, v], v
    return NONE, NONE


@njit(cache=True, nogil=True)
def show(forest, node):
    v = forest.first[node]
    while v != NONE:
        forest.outer_y[v] = forest.y[v]
        v = forest.after[v]


@njit(cache=True, nogil=True)
def scan_queue(weights, forest, pairs):
    """Scan every queued outer node: O(n) per vertex."""
    n = forest.top.size
    while forest.count[N_QUEUE] > 0:
        forest.count[N_QUEUE] -= 1
        node = forest.queue[forest.count[N_QUEUE]]
        if node < n:
            scan_single(weights, forest, pairs, node)
        else:
            pairs.row[node - n] = np.inf
            scan_members(weights, forest, pairs, node, node)
            pairs.value[node] = best_of_row(forest, pairs, node)
        show(forest, node)


@njit(cache=True, nogil=True)
def scan_cycle(weights, forest, pairs, blossom):
    """The row of a new blossom from its children's rows; inner children are scanned: O(n size)."""
    n = forest.top.size
    row, row_from = pairs.row[blossom - n], pairs.row_from[blossom - n]
    row[:] = np.inf
    child = start = child_of(forest, blossom)
    while True:
        if forest.label[child] == INNER:
            scan_members(weights, forest, pairs, blossom, child)
        elif child >= n:
            merge_row(pairs.row[child - n], pairs.row_from[child - n], row, row_from)
        else:
            y_u = forest.y[child]
            scan_vertex(weights[child], y_u, child, row, row_from, forest.outer_y)
        child = forest.following[child]
        if child == start:
            break
    pairs.value[blossom] = best_of_row(forest, pairs, blossom)
    show(forest, blossom)


@njit(cache=True, nogil=True)
def child_of(forest, blossom):
    node = forest.first[blossom]
    while forest.parent[node] != blossom:
        node = forest.parent[node]
    return node


@njit(cache=True, nogil=True)
def least_pair(forest, pairs):
    best = NONE
    for i in range(forest.count[N_OUTER]):
        node = forest.outer[i]
        if best == NONE or pairs.value[node] < pairs.value[best]:
            best = node
    return best


@njit(cache=True, nogil=True)
def least_inner(forest):
    best = NONE
    for i in range(forest.count[N_INNER]):
        node = forest.inner[i]
        if best == NONE or forest.half[node] < forest.half[best]:
            best = node
    return best


@njit(cache=True, nogil=True)
def least_outer_y(forest):
    best = NONE
    for v in range(forest.top.size):
        if forest.outer_y[v] < np.inf and (best == NONE or forest.y[v] < forest.y[best]):
            best = v
    return best


@njit(cache=True, nogil=True)
def least_reach(forest, pairs):
    """The earliest time an edge to a free vertex turns tight, and that time per block of vertices."""
    n = forest.top.size
    best = np.inf
    for block in range(pairs.block.size):
        first = block * BLOCK
        least = least_sum(forest.near, forest.free_y, first, min(first + BLOCK, n))
        pairs.block[block] = least
        if least < best:
            best = least
    return best


@njit(cache=True, nogil=True)
def gather_tight(forest, pairs, now):
    """List the free vertices at tight edges; an exposed one ends the list and is its last."""
    n = forest.top.size
    found = 0
    for block in range(pairs.block.size):
        if pairs.block[block] <= now:
            for v in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
                if forest.near[v] + forest.free_y[v] <= now:
                    pairs.tight[found] = v
                    found += 1
                    if forest.mate[forest.top[v]] == NONE:
                        return found, True
    return found, False


@njit(cache=True, nogil=True)
def reach(forest, pairs, now):
    """Grow the tree over every tight edge to a free vertex, or augment it over one: True if so."""
    found, exposed = gather_tight(forest, pairs, now)
    if exposed:
        v = pairs.tight[found - 1]
        u = forest.near_from[v]
        augment(forest, u, v)
        node = forest.top[v]
        forest.base[node] = v
        forest.mate[node] = u
        return True
    for i in range(found):
        v = pairs.tight[i]
        if forest.free_y[v] < np.inf:
            grow(forest, forest.near_from[v], v, now)
    return False


@njit(cache=True, nogil=True)
def search(weights, forest, pairs, root, perfect):
    """Grow one tree until it can be augmented; False if no perfect matching exists.

    Each turn takes the earliest of: a tight edge to a free vertex (grow or augment), a tight edge
    between outer nodes (shrink), an inner blossom used up (expand) and, where vertices may stay
    single, an outer dual used up (leave that vertex single instead of the root). The labels of a
    failed search are its witness: without the inner vertices the outer nodes are odd components.
    """
    begin(forest, root)
    now = 0.0
    while True:
        scan_queue(weights, forest, pairs)
        pair = least_pair(forest, pairs)
        inner = least_inner(forest)
        pair_time = pairs.value[pair] / 2.0
        inner_time = np.inf if inner == NONE else forest.half[inner]
        reach_time = least_reach(forest, pairs)
        time = min(reach_time, pair_time, inner_time)
        if not perfect:
            spent = least_outer_y(forest)
            if forest.y[spent] <= time:
                augment(forest, spent, NONE)
                settle(forest, max(now, forest.y[spent]))
                forest.y[spent] = 0.0
                return True
        if time == np.inf:
            return False
        now = max(now, time)
        if reach_time <= now:
            if reach(forest, pairs, now):
                settle(forest, now)
                return True
        elif pair_time <= now:
            u, v = ends_of_best(weights, forest, pairs, pair)
            scan_cycle(weights, forest, pairs, shrink(forest, u, v, now))
        else:
            expand(forest, inner, now)


@njit(cache=True, nogil=True)
def solve(weights, forest, pairs, perfect):
    """Match every vertex (or, if not perfect, all that should be); the root of a failure or NONE."""
    for v in range(forest.top.size):
        root = forest.top[v]
        if forest.mate[root] == NONE and (perfect or forest.y[forest.base[root]] > 0.0):
            if not search(weights, forest, pairs, root, perfect):
                return root
    unfold(forest)
    return NONE


@njit(cache=True, nogil=True)
def allocate_pairs(n):
    """Work space of the dense searches; the rows cost memory only where blossoms form."""
    count = n // 2
    return Pairs(
        np.empty(n + count),
        np.empty((count, n)),
        np.empty((count, n), np.int32),
        np.empty((n + BLOCK - 1) // BLOCK),
        np.empty(n, np.int32),
    )


@njit(cache=True, nogil=True)
def match_dense(weights, y, lowest):
    """Match a dense graph from any starting duals; the forest, and the failed root or NONE.

    lowest is -inf for perfect matchings and 0 where vertices may stay single.
    """
    forest = allocate(y.size)
    forest.y[:] = y
    tighten(weights, forest, lowest)
    failed = solve(weights, forest, allocate_pairs(y.size), lowest < 0.0)
    return forest, failed
