"""Blossom kernel: alternating trees from all exposed vertices at once, over a dense or sparse graph.

A vertex that turns outer has its row of edges scanned once. Afterwards only lower bounds on the
times of events are kept, per vertex and per block of vertices; a bound is made exact (one row) when
it is the least of all. So a shrunk blossom or a dissolved tree costs nothing but the bounds it
made stale and that are ever needed again.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from mlestruct_oracles.blossom_forest import (
    BLOCK,
    FREE,
    N_INNER,
    N_QUEUE,
    NONE,
    OUTER,
    allocate,
    augment,
    expand,
    free_tree,
    grow,
    make_outer,
    meeting,
    shrink,
    unfold,
)

NO_NAN = {"nnan", "nsz"}  # what a vectorised minimum needs; infinities keep their meaning


class Edges(NamedTuple):
    """A symmetric matrix of weights, or (where it is empty) rows of neighbours and weights."""

    matrix: np.ndarray
    start: np.ndarray
    target: np.ndarray
    weight: np.ndarray


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


# One function per question asked of a row, dense and sparse. Dense rows leave the diagonal out by
# an infinite dual or by the test for the same outermost node.


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def greatest_excess(row, y):
    best = -np.inf
    for u in range(row.size):
        excess = row[u] - y[u]
        if excess > best:
            best = excess
    return best


@njit(cache=True, nogil=True)
def row_excess(edges, y, v):
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


@njit(cache=True, nogil=True)
def tight_exposed(edges, y, mate, v, need):
    """An exposed neighbour over an edge of v that needs exactly this dual, or NONE."""
    if edges.matrix.size:
        row = edges.matrix[v]
        for u in range(row.size):
            if mate[u] == NONE and row[u] - y[u] == need and u != v:
                return u
        return NONE
    for k in range(edges.start[v], edges.start[v + 1]):
        u = edges.target[k]
        if mate[u] == NONE and edges.weight[k] - y[u] == need:
            return u
    return NONE


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def scan_block(row, y_u, u, near, near_from, free_y, outer_y, top, own):
    """A block's share of a scan: near is lowered; least near + free_y and least pair come back."""
    best_near, best_pair = np.inf, np.inf
    for v in range(row.size):
        reach = y_u - row[v]
        if reach < near[v]:
            near[v] = reach
            near_from[v] = u
        sum_near = near[v] + free_y[v]
        if sum_near < best_near:
            best_near = sum_near
        sum_pair = reach + outer_y[v] if top[v] != own else np.inf
        if sum_pair < best_pair:
            best_pair = sum_pair
    return best_near, best_pair


@njit(cache=True, nogil=True)
def scan_row(edges, forest, u):
    """Record the edges of a new outer vertex; twice the time of its best edge to scanned ones."""
    y_u, own, n = forest.y[u], forest.top[u], forest.top.size
    near, near_from, free_y = forest.near, forest.near_from, forest.free_y
    best = np.inf
    if edges.matrix.size:
        row = edges.matrix[u]
        for block in range(forest.near_block.size):
            a, b = block * BLOCK, min(block * BLOCK + BLOCK, n)
            forest.near_block[block], pair = scan_block(
                row[a:b], y_u, u, near[a:b], near_from[a:b], free_y[a:b],
                forest.outer_y[a:b], forest.top[a:b], own,
            )  # fmt: skip
            best = min(best, pair)
        return best
    for k in range(edges.start[u], edges.start[u + 1]):
        v = edges.target[k]
        reach = y_u - edges.weight[k]
        if reach < near[v]:
            near[v] = reach
            near_from[v] = u
            block = v // BLOCK
            forest.near_block[block] = min(forest.near_block[block], reach + free_y[v])
        if forest.top[v] != own:
            best = min(best, reach + forest.outer_y[v])
    return best


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def least_pair(row, y_u, outer_y, top, own):
    best = np.inf
    for v in range(row.size):
        value = (y_u - row[v]) + outer_y[v] if top[v] != own else np.inf
        if value < best:
            best = value
    return best


@njit(cache=True, nogil=True)
def best_pair(edges, forest, u):
    """The exact least of weight-free time to outer vertices of other nodes, and that vertex."""
    y_u, own, outer_y = forest.y[u], forest.top[u], forest.outer_y
    best, best_v = np.inf, NONE
    if edges.matrix.size:
        row = edges.matrix[u]
        best = least_pair(row, y_u, outer_y, forest.top, own)
        if best < np.inf:
            for v in range(row.size):
                if (y_u - row[v]) + outer_y[v] == best and forest.top[v] != own:
                    return best, v
        return best, NONE
    for k in range(edges.start[u], edges.start[u + 1]):
        v = edges.target[k]
        value = (y_u - edges.weight[k]) + outer_y[v]
        if value < best and forest.top[v] != own:
            best, best_v = value, v
    return best, best_v


@njit(cache=True, nogil=True, fastmath=NO_NAN)
def least_difference(a, b):
    best = np.inf
    for i in range(a.size):
        value = a[i] - b[i]
        if value < best:
            best = value
    return best


@njit(cache=True, nogil=True)
def best_near(edges, forest, v):
    """The exact least of y[u] - weight over outer vertices u, and that u."""
    outer_y = forest.outer_y
    best, best_u = np.inf, NONE
    if edges.matrix.size:
        row = edges.matrix[v]
        best = least_difference(outer_y, row)
        if best < np.inf:
            for u in range(row.size):
                if outer_y[u] - row[u] == best:
                    return best, u
        return best, NONE
    for k in range(edges.start[v], edges.start[v + 1]):
        u = edges.target[k]
        value = outer_y[u] - edges.weight[k]
        if value < best:
            best, best_u = value, u
    return best, best_u


@njit(cache=True, nogil=True)
def edge_weight(edges, u, v):
    if edges.matrix.size:
        return edges.matrix[u, v]
    best = -np.inf
    for k in range(edges.start[v], edges.start[v + 1]):
        if edges.target[k] == u:
            best = max(best, edges.weight[k])
    return best


# The start: feasible duals, tightened in one sweep with a greedy matching.


@njit(cache=True, nogil=True)
def half_maxima(edges, y):
    """Half of each row's greatest weight covers every edge: one sweep over the edges."""
    zero = np.zeros(y.size)
    for v in range(y.size):
        y[v] = row_excess(edges, zero, v) / 2.0


@njit(cache=True, nogil=True)
def cover(edges, y):
    """Raise any duals until every edge is covered: one sweep over the edges."""
    for v in range(y.size):
        y[v] = max(y[v], row_excess(edges, y, v))


@njit(cache=True, nogil=True)
def tighten(edges, y, mate, lowest):
    """Lower each dual in turn as far as it goes and match along edges that became tight."""
    for v in range(y.size):
        need = row_excess(edges, y, v)
        y[v] = max(need, lowest)
        if mate[v] == NONE and need >= lowest and need > -np.inf:
            u = tight_exposed(edges, y, mate, v, need)
            if u != NONE:
                mate[v] = u
                mate[u] = v


# The search.


@njit(cache=True, nogil=True)
def scan_queue(edges, forest):
    """Scan every queued outer node, then let later scans see its vertices."""
    while forest.count[N_QUEUE] > 0:
        forest.count[N_QUEUE] -= 1
        node = forest.queue[forest.count[N_QUEUE]]
        last = forest.last[node]
        v = forest.first[node]
        while True:
            forest.pair[v] = pair = scan_row(edges, forest, v)
            forest.pair_block[v // BLOCK] = min(forest.pair_block[v // BLOCK], pair)
            forest.outer_y[v] = forest.y[v]
            if v == last:
                break
            v = forest.after[v]


@njit(cache=True, nogil=True)
def least_block(bounds):
    best = 0
    for block in range(1, bounds.size):
        if bounds[block] < bounds[best]:
            best = block
    return best


@njit(cache=True, nogil=True)
def next_pair(edges, forest, limit):
    """The outer vertices of the first tight edge between outer nodes and its time, if by limit."""
    n = forest.top.size
    while True:
        block = least_block(forest.pair_block)
        if not forest.pair_block[block] <= 2.0 * limit or forest.pair_block[block] == np.inf:
            return NONE, NONE, np.inf
        u = block * BLOCK
        for other in range(u + 1, min(u + BLOCK, n)):
            if forest.pair[other] < forest.pair[u]:
                u = other
        bound = forest.pair[u]
        if bound <= forest.pair_block[block] and bound < np.inf:
            forest.pair[u], v = best_pair(edges, forest, u)
            if forest.pair[u] <= bound:
                return u, v, forest.pair[u] / 2.0
        forest.pair_block[block] = bound


@njit(cache=True, nogil=True)
def next_near(edges, forest, limit):
    """The free vertex whose edge from an outer one is tight first and its time, if by limit."""
    n = forest.top.size
    while True:
        block = least_block(forest.near_block)
        if not forest.near_block[block] <= limit or forest.near_block[block] == np.inf:
            return NONE, np.inf
        v = block * BLOCK
        for other in range(v + 1, min(v + BLOCK, n)):
            if forest.near[other] + forest.free_y[other] < forest.near[v] + forest.free_y[v]:
                v = other
        bound = forest.near[v] + forest.free_y[v]
        if bound <= forest.near_block[block] and bound < np.inf:
            u = forest.near_from[v]
            if forest.outer_y[u] - edge_weight(edges, u, v) != forest.near[v]:
                forest.near[v], forest.near_from[v] = best_near(edges, forest, v)
            if forest.near[v] + forest.free_y[v] <= bound:
                return v, bound
        forest.near_block[block] = bound


@njit(cache=True, nogil=True)
def least_inner(forest):
    best = NONE
    for i in range(forest.count[N_INNER]):
        node = forest.inner[i]
        if best == NONE or forest.half[node] < forest.half[best]:
            best = node
    return best


@njit(cache=True, nogil=True)
def least_outer(forest):
    best = 0
    for v in range(1, forest.top.size):
        if forest.outer_y[v] < forest.outer_y[best]:
            best = v
    return best


@njit(cache=True, nogil=True)
def join(forest, u, v, now):
    """Match the outer vertices u and v of two trees and dissolve both."""
    one, other = forest.tree[forest.top[u]], forest.tree[forest.top[v]]
    augment(forest, u, v)
    augment(forest, v, u)
    free_tree(forest, one, now)
    free_tree(forest, other, now)


@njit(cache=True, nogil=True)
def reach(forest, v, now):
    """Take the free vertex v into the tree; True if that matched the tree's root."""
    u, node = forest.near_from[v], forest.top[v]
    if forest.mate[node] != NONE:
        grow(forest, u, v, now)
        return False
    tree = forest.tree[forest.top[u]]
    augment(forest, u, v)
    forest.base[node] = v
    forest.mate[node] = u
    free_tree(forest, tree, now)
    return True


@njit(cache=True, nogil=True)
def plant(forest, perfect):
    """Let every exposed vertex that needs a mate be a tree; how many there are."""
    trees = 0
    forest.free_y[:] = forest.y
    for v in range(forest.top.size):
        if forest.mate[v] == NONE and (perfect or forest.y[v] > 0.0):
            make_outer(forest, v, trees, 0.0)
            trees += 1
    return trees


@njit(cache=True, nogil=True)
def search(edges, forest, perfect):
    """Grow the trees until each is augmented; how many are left because nothing can be done.

    Each turn takes the earliest of: a tight edge between outer nodes (augment or shrink), a tight
    edge to a free vertex (grow or augment), an inner blossom used up (expand) and, where vertices
    may stay single, an outer dual used up (that vertex stays single instead of its tree's root).
    Trees that are left are a witness: without the inner vertices the outer nodes are odd components.
    """
    trees = plant(forest, perfect)
    now = 0.0
    while trees > 0:
        scan_queue(edges, forest)
        inner = least_inner(forest)
        limit = np.inf if inner == NONE else forest.half[inner]
        spent = NONE if perfect else least_outer(forest)
        if not perfect:
            limit = min(limit, forest.outer_y[spent])
        u, v, pair_time = next_pair(edges, forest, limit)
        w, near_time = next_near(edges, forest, min(limit, pair_time))
        time = min(limit, pair_time, near_time)
        if time == np.inf:
            return trees
        now = max(now, time)
        if pair_time <= time:
            if meeting(forest, u, v) == NONE:
                join(forest, u, v, now)
                trees -= 2
            else:
                shrink(forest, u, v, now)
        elif near_time <= time:
            trees -= reach(forest, w, now)
        elif inner != NONE and forest.half[inner] <= time:
            expand(forest, inner, now)
        else:
            tree = forest.tree[forest.top[spent]]
            augment(forest, spent, NONE)
            free_tree(forest, tree, now)
            trees -= 1
    return 0


@njit(cache=True, nogil=True)
def solve(edges, y, perfect):
    """Match the graph from any duals that cover its edges; the forest and the trees left over."""
    forest = allocate(y.size)
    forest.y[:] = y
    tighten(edges, forest.y, forest.mate, -np.inf if perfect else 0.0)
    left = search(edges, forest, perfect)
    if left == 0:
        unfold(forest)
    return forest, left
