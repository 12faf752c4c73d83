"""Blossom kernel on a matrix: alternating trees from all exposed vertices at once.

A vertex that turns outer has its row of edges scanned once. Afterwards only lower bounds on the
times of events are kept, per vertex and per block of vertices; a bound is made exact (one row) when
it is the least of all. So a shrunk blossom or a dissolved tree costs nothing but the bounds it
made stale and that are ever needed again.

Cost: each of at most n/2 augmentations scans at most n rows, O(n³) in all;
what ends with an augmentation costs what its tree's vertices do. Rows read again because
shrinking made a bound stale could on paper exceed that; they stayed below a third of the time.
"""

import numpy as np

from mlestruct.kernels import kernel
from mlestruct_oracles.blossom_forest import (
    N_EVENTS,
    N_QUEUE,
    NONE,
    Array,
    Forest,
    abandon,
    counted,
    expand,
    filled,
    join,
    meeting,
    plant,
    reach,
    shrink,
    sprout,
    tighten,
    uncounted,
    unfold,
)
from mlestruct_oracles.blossom_rows import (
    BLOCK,
    Bounds,
    best_near,
    best_pair,
    least,
    least_sum,
    lower,
    scan_row,
    unscanned,
)


@uncounted(forceinline=True)
def scan_queue(edges: Array, forest: Forest) -> None:
    """Scan every queued outer node, then let later scans see its vertices."""
    while forest.length[N_QUEUE] > 0:
        forest.length[N_QUEUE] -= 1
        node = forest.queue[forest.length[N_QUEUE]]
        after = forest.after[forest.node.last[node]]
        v = forest.node.first[node]
        while v != after:
            forest.events.pair[v] = pair = scan_row(edges, forest, v)
            lower(forest.events.pair_least, v, pair)
            v = forest.after[v]
        v = forest.node.first[node]
        while v != after:
            forest.events.outer_y[v] = forest.y[v]
            lower(forest.events.outer_least, v, forest.y[v])
            forest.events.outer[forest.length[N_EVENTS]] = v
            forest.length[N_EVENTS] += 1
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
def next_pair(edges: Array, forest: Forest, limit: float) -> tuple[int, int, float]:
    """The outer vertices of the first tight edge between outer nodes and its time, if by limit."""
    pair, bounds = forest.events.pair, forest.events.pair_least
    while True:
        u = least_place(pair, bounds, 2.0 * limit)
        if u == NONE:
            return NONE, NONE, np.inf
        bound = pair[u]
        pair[u], v = best_pair(edges, forest, u)
        if pair[u] <= bound:
            return u, v, bound / 2.0


@uncounted(forceinline=True)
def next_near(edges: Array, forest: Forest, limit: float) -> tuple[int, float]:
    """The free vertex whose edge from an outer one is tight first and its time, if by limit."""
    near, free_y, bounds = forest.events.near, forest.events.free_y, forest.events.near_least
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
            u = forest.events.near_from[v]
            if forest.events.outer_y[u] - edges[u, v] == near[v]:
                return v, bound
            near[v], forest.events.near_from[v] = best_near(edges, forest, v)
            if near[v] + free_y[v] <= bound:
                return v, bound
            bounds.block[block] = least_sum(near, free_y, a, b)


@uncounted(forceinline=True)
def keep_outer(forest: Forest) -> None:
    """Drop from the list of scanned outer vertices those that no longer are."""
    kept = 0
    outer = forest.events.outer
    for i in range(forest.length[N_EVENTS]):
        v = outer[i]
        if forest.events.outer_y[v] < np.inf:
            outer[kept] = v
            kept += 1
    forest.length[N_EVENTS] = kept


@uncounted()
def search(edges: Array, forest: Forest, perfect: bool) -> int:
    """Grow the trees until each is augmented; how many are left because nothing can be done.

    Each turn takes the earliest of: a tight edge between outer nodes (augment or shrink), a tight
    edge to a free vertex (grow or augment), an inner blossom used up (expand) and, where vertices
    may stay single, an outer dual used up (that vertex stays single instead of its tree's root).
    Trees that are left are a witness: without the inner vertices each outer node stands alone.
    """
    trees = plant(forest, perfect)
    used_up, outer_y = forest.events.used_up, forest.events.outer_y
    now = 0.0
    while trees > 0:
        scan_queue(edges, forest)
        limit = np.inf
        inner = least_place(used_up, forest.events.used_up_least, limit)
        if inner != NONE:
            limit = used_up[inner]
        spent = NONE if perfect else least_place(outer_y, forest.events.outer_least, limit)
        if spent != NONE:
            limit = outer_y[spent]
        w, near_time = next_near(edges, forest, limit)
        u, v, pair_time = next_pair(edges, forest, min(limit, near_time))
        time = min(limit, pair_time, near_time)
        if time == np.inf:
            return trees
        now = max(now, time)
        if pair_time <= time:
            if meeting(forest, u, v) == NONE:
                join(forest, u, v, now)
                keep_outer(forest)
                trees -= 2
            else:
                shrink(forest, u, v, now)
        elif near_time <= time:
            if reach(forest, forest.events.near_from[w], w, now):
                keep_outer(forest)
                trees -= 1
        elif inner != NONE and used_up[inner] <= time:
            expand(forest, inner, now)
        else:
            abandon(forest, spent, now)
            keep_outer(forest)
            trees -= 1
    return 0


@kernel
def solve(edges: Array, y: Array, perfect: bool) -> tuple[Forest, int]:
    """Match the graph from duals that cover its edges; the forest and the trees left over."""
    n = y.size
    mate = counted(n, NONE, 0)
    tighten(edges, y, mate, -np.inf if perfect else 0.0)
    head, owner, after = counted(n, NONE, 0), counted(n, NONE, 0), counted(n, NONE, 0)
    events = unscanned(n)
    forest = sprout(y, mate, head, owner, after, filled(n, 0.0), events)
    for v in range(n):
        events.free_y[v] = y[v]
    left = search(edges, forest, perfect)
    if left == 0:
        unfold(forest)
    return forest, left
