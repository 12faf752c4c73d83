"""Blossom kernel: alternating trees from all exposed vertices at once, dense or sparse rows.

A vertex that turns outer has its row of edges scanned once. Afterwards only lower bounds on the
times of events are kept, per vertex and per block of vertices; a bound is made exact (one row) when
it is the least of all. So a shrunk blossom or a dissolved tree costs nothing but the bounds it
made stale and that are ever needed again.

Cost: each of at most n/2 augmentations scans at most n rows, O(n³) in all, O(n m) of sparse ones;
what ends with an augmentation costs what its tree's vertices do. Rows read again because
shrinking made a bound stale could on paper exceed that; they stayed below a third of the time.
"""

import numpy as np

from mlestruct.kernels import kernel
from mlestruct_oracles.blossom_forest import (
    BLOCK,
    N_OUTER,
    N_QUEUE,
    NONE,
    Array,
    Bounds,
    Forest,
    allocate,
    augment,
    expand,
    free_tree,
    grow,
    keep_outer,
    lower,
    make_outer,
    meeting,
    shrink,
    uncounted,
    unfold,
)
from mlestruct_oracles.blossom_rows import (
    Neighbours,
    best_near,
    best_pair,
    edge_weight,
    least,
    least_sum,
    row_excess,
    scan_row,
    tight_exposed,
)


@kernel
def half_maxima(edges: Neighbours, y: Array) -> None:
    """Half of each row's greatest weight covers every edge: one sweep over the edges."""
    zero = np.zeros(y.size)
    for v in range(y.size):
        y[v] = row_excess(edges, zero, v) / 2.0


@uncounted()
def tighten(edges: Neighbours, forest: Forest, lowest: float) -> None:
    """Lower each dual in turn as far as it goes and match along edges that became tight."""
    y, mate = forest.y, forest.node.mate
    for v in range(y.size):
        need = row_excess(edges, y, v)
        y[v] = max(need, lowest)
        if mate[v] == NONE and need >= lowest and need > -np.inf:
            u = tight_exposed(edges, y, mate, v, need)
            if u != NONE:
                mate[v] = u
                mate[u] = v


@uncounted(forceinline=True)
def scan_queue(edges: Neighbours, forest: Forest) -> None:
    """Scan every queued outer node, then let later scans see its vertices."""
    while forest.length[N_QUEUE] > 0:
        forest.length[N_QUEUE] -= 1
        node = forest.queue[forest.length[N_QUEUE]]
        after = forest.after[forest.node.last[node]]
        v = forest.node.first[node]
        while v != after:
            forest.pair[v] = pair = scan_row(edges, forest, v)
            lower(forest.pair_least, v, pair)
            v = forest.after[v]
        v = forest.node.first[node]
        while v != after:
            forest.outer_y[v] = forest.y[v]
            lower(forest.outer_least, v, forest.y[v])
            if edges.matrix.size:
                forest.outer[forest.length[N_OUTER]] = v
                forest.length[N_OUTER] += 1
            v = forest.after[v]


@uncounted(forceinline=True)
def least_block(bounds: Bounds, limit: float) -> int:
    """The block with the least bound, NONE if that is beyond the limit or never.

    Tops that were too low are raised on the way.
    """
    while True:
        top = 0
        for i in range(1, bounds.top.size):
            if bounds.top[i] < bounds.top[top]:
                top = i
        bound, block = bounds.top[top], top * BLOCK
        if not bound <= limit or bound == np.inf:
            return NONE
        bounds.top[top] = least(bounds.block, block, min(block + BLOCK, bounds.block.size))
        if bounds.top[top] == bound:
            while bounds.block[block] != bound:
                block += 1
            return block


@uncounted(forceinline=True)
def least_place(values: Array, bounds: Bounds, limit: float) -> int:
    """The first place of the least value, NONE if that is beyond the limit or never."""
    while True:
        block = least_block(bounds, limit)
        if block == NONE:
            return NONE
        bound, place = bounds.block[block], block * BLOCK
        bounds.block[block] = least(values, place, min(place + BLOCK, values.size))
        if bounds.block[block] == bound:
            while values[place] != bound:
                place += 1
            return place


@uncounted(forceinline=True)
def next_pair(edges: Neighbours, forest: Forest, limit: float) -> tuple[int, int, float]:
    """The outer vertices of the first tight edge between outer nodes and its time, if by limit."""
    pair, bounds = forest.pair, forest.pair_least
    while True:
        u = least_place(pair, bounds, 2.0 * limit)
        if u == NONE:
            return NONE, NONE, np.inf
        bound = pair[u]
        pair[u], v = best_pair(edges, forest, u)
        if pair[u] <= bound:
            return u, v, bound / 2.0


@uncounted(forceinline=True)
def next_near(edges: Neighbours, forest: Forest, limit: float) -> tuple[int, float]:
    """The free vertex whose edge from an outer one is tight first and its time, if by limit."""
    near, free_y, bounds = forest.near, forest.free_y, forest.near_least
    while True:
        block = least_block(bounds, limit)
        if block == NONE:
            return NONE, np.inf
        bound = bounds.block[block]
        a, b = block * BLOCK, min(block * BLOCK + BLOCK, near.size)
        bounds.block[block] = least_sum(near, free_y, a, b)
        if bounds.block[block] == bound:
            v = a
            while near[v] + free_y[v] != bound:
                v += 1
            u = forest.near_from[v]
            if forest.outer_y[u] - edge_weight(edges, u, v) == near[v]:
                return v, bound
            near[v], forest.near_from[v] = best_near(edges, forest, v)
            if near[v] + free_y[v] <= bound:
                return v, bound
            bounds.block[block] = least_sum(near, free_y, a, b)


@uncounted(forceinline=True)
def join(forest: Forest, u: int, v: int, now: float) -> None:
    """Match the outer vertices u and v of two trees and dissolve both."""
    augment(forest, u, v)
    augment(forest, v, u)
    free_tree(forest, forest.top[u], now)
    free_tree(forest, forest.top[v], now)
    keep_outer(forest)


@uncounted(forceinline=True)
def reach(forest: Forest, v: int, now: float) -> bool:
    """Take the free vertex v into the tree; True if that matched the tree's root."""
    u, node = forest.near_from[v], forest.top[v]
    if forest.node.mate[node] != NONE:
        grow(forest, u, v, now)
        return False
    augment(forest, u, v)
    forest.node.base[node] = v
    forest.node.mate[node] = u
    free_tree(forest, forest.top[u], now)
    keep_outer(forest)
    return True


@uncounted()
def plant(forest: Forest, perfect: bool) -> int:
    """Let every exposed vertex that needs a mate be a tree; how many there are."""
    trees = 0
    for v in range(forest.top.size):
        forest.free_y[v] = forest.y[v]
        if forest.node.mate[v] == NONE and (perfect or forest.y[v] > 0.0):
            make_outer(forest, v, trees, 0.0)
            trees += 1
    return trees


@uncounted()
def search(edges: Neighbours, forest: Forest, perfect: bool) -> int:
    """Grow the trees until each is augmented; how many are left because nothing can be done.

    Each turn takes the earliest of: a tight edge between outer nodes (augment or shrink), a tight
    edge to a free vertex (grow or augment), an inner blossom used up (expand) and, where vertices
    may stay single, an outer dual used up (that vertex stays single instead of its tree's root).
    Trees that are left are a witness: without the inner vertices each outer node stands alone.
    """
    trees = plant(forest, perfect)
    now = 0.0
    while trees > 0:
        scan_queue(edges, forest)
        limit = np.inf
        inner = least_place(forest.used_up, forest.used_up_least, limit)
        if inner != NONE:
            limit = forest.used_up[inner]
        spent = NONE if perfect else least_place(forest.outer_y, forest.outer_least, limit)
        if spent != NONE:
            limit = forest.outer_y[spent]
        w, near_time = next_near(edges, forest, limit)
        u, v, pair_time = next_pair(edges, forest, min(limit, near_time))
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
        elif inner != NONE and forest.used_up[inner] <= time:
            expand(forest, inner, now)
        else:
            augment(forest, spent, NONE)
            free_tree(forest, forest.top[spent], now)
            keep_outer(forest)
            trees -= 1
    return 0


@kernel
def solve(edges: Neighbours, y: Array, perfect: bool) -> tuple[Forest, int]:
    """Match the graph from duals that cover its edges; the forest and the trees left over."""
    forest = allocate(y.size)
    for v in range(y.size):
        forest.y[v] = y[v]
    tighten(edges, forest, -np.inf if perfect else 0.0)
    left = search(edges, forest, perfect)
    if left == 0:
        unfold(forest)
    return forest, left
