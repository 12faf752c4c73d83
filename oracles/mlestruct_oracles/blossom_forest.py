"""The alternating trees of a search and its nested blossoms, as flat arrays for Numba kernels.

A node below n is a vertex, a node from n on a blossom. Duals: y per vertex and half the z per
blossom, so that an edge inside blossoms is tight when y[u] + y[v] + 2 * sum(half) equals its weight.
During the search the duals of labelled nodes are stored relative to the clock ``now`` (an outer vertex
stores y + now, an inner one y - now; halves the other way round), so time costs nothing until a
label changes. Half-integers stay exact in float64, hence integer weights give exact answers.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

FREE, OUTER, INNER = 0, 1, 2
NONE = -1


class Forest(NamedTuple):
    """The whole state of a search, its work space included: nothing is allocated while it runs."""

    top: np.ndarray  # vertex → the outermost node it lies in
    parent: np.ndarray  # node → the blossom directly around it, or NONE
    base: np.ndarray  # node → its vertex at the matched edge (kept up to date for outermost nodes)
    mate: np.ndarray  # node → the vertex at the other end of that edge, or NONE
    following: np.ndarray  # child → next child around its blossom's odd cycle
    previous: np.ndarray
    link_from: np.ndarray  # the cycle's edge from a child (a vertex in it) to the next
    link_to: np.ndarray
    first: np.ndarray  # node → its vertices as a linked list
    last: np.ndarray
    after: np.ndarray
    label: np.ndarray  # FREE, OUTER or INNER, of outermost nodes
    tree: np.ndarray  # labelled outermost node → its tree's number
    via_from: np.ndarray  # inner node → the tree edge that reached it: from an outer vertex
    via_to: np.ndarray
    mark: np.ndarray  # node → stamp of the last walk to the root that passed it
    y: np.ndarray
    half: np.ndarray
    free_y: np.ndarray  # y of free vertices, else inf
    outer_y: np.ndarray  # y of scanned outer vertices, else inf
    near: np.ndarray  # vertex → least y[u] - weight[u, v] over outer vertices u, or less
    near_from: np.ndarray  # that u, when near was written
    pair: np.ndarray  # outer vertex → twice the time its best edge to an outer one is tight, or less
    near_block: np.ndarray  # least near + free_y of each block of vertices, or less
    pair_block: np.ndarray
    inner: np.ndarray  # outermost inner blossoms
    queue: np.ndarray  # outer nodes whose edges are not scanned yet
    spare: np.ndarray  # unused blossom numbers
    count: np.ndarray  # lengths of inner, queue and spare, and the stamp


N_INNER, N_QUEUE, N_SPARE, STAMP = 0, 1, 2, 3
BLOCK = 64


@njit(cache=True, nogil=True)
def allocate(n):
    """A forest of n single vertices without trees, y zero: O(n)."""
    size = n + n // 2
    blocks = (n + BLOCK - 1) // BLOCK
    node = np.arange(size).astype(np.int32)
    none = np.full(size, NONE, np.int32)
    blank = np.zeros(size, np.int32)
    never = np.full(n, np.inf)
    count = np.zeros(4, np.int64)
    count[N_SPARE] = size - n
    return Forest(
        node[:n].copy(), none.copy(), node.copy(), none.copy(),
        blank.copy(), blank.copy(), blank.copy(), blank.copy(),
        node.copy(), node.copy(), none[:n].copy(),
        np.zeros(size, np.int8), none.copy(), none.copy(), none.copy(), np.zeros(size, np.int64),
        np.zeros(n), np.zeros(size), np.zeros(n), never.copy(),
        never.copy(), none[:n].copy(), never.copy(),
        np.full(blocks, np.inf), np.full(blocks, np.inf),
        blank.copy(), blank.copy(), node[n:][::-1].copy(), count,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def make_outer(forest, node, tree, now):
    forest.label[node] = OUTER
    forest.tree[node] = tree
    forest.half[node] -= now
    forest.queue[forest.count[N_QUEUE]] = node
    forest.count[N_QUEUE] += 1
    v = forest.first[node]
    while v != NONE:
        forest.y[v] += now
        forest.free_y[v] = np.inf
        v = forest.after[v]


@njit(cache=True, nogil=True)
def make_inner(forest, node, via_from, via_to, now):
    forest.label[node] = INNER
    forest.tree[node] = forest.tree[forest.top[via_from]]
    forest.half[node] += now
    forest.via_from[node] = via_from
    forest.via_to[node] = via_to
    if node >= forest.top.size:
        forest.inner[forest.count[N_INNER]] = node
        forest.count[N_INNER] += 1
    v = forest.first[node]
    while v != NONE:
        forest.y[v] -= now
        forest.free_y[v] = np.inf
        v = forest.after[v]


@njit(cache=True, nogil=True)
def make_free(forest, v, y):
    forest.y[v] = y
    forest.free_y[v] = y
    forest.outer_y[v] = np.inf
    forest.pair[v] = np.inf
    block = v // BLOCK
    forest.near_block[block] = min(forest.near_block[block], forest.near[v] + y)


@njit(cache=True, nogil=True)
def grow(forest, u, v, now):
    """Put the free node at v, reached from the outer vertex u, and its mate into the tree."""
    node = forest.top[v]
    make_inner(forest, node, u, v, now)
    make_outer(forest, forest.top[forest.mate[node]], forest.tree[node], now)


@njit(cache=True, nogil=True)
def augment(forest, u, v):
    """Match the outer vertex u to v outside its tree (or to NONE), flipping the path to the root."""
    while True:
        node = forest.top[u]
        former = forest.mate[node]
        forest.base[node] = u
        forest.mate[node] = v
        if former == NONE:
            return
        node = forest.top[former]
        v, u = forest.via_to[node], forest.via_from[node]
        forest.base[node] = v
        forest.mate[node] = u


@njit(cache=True, nogil=True)
def meeting(forest, u, v):
    """The first node on both walks from outer u and v to their roots, NONE in two trees: O(depth)."""
    if forest.tree[forest.top[u]] != forest.tree[forest.top[v]]:
        return NONE
    forest.count[STAMP] += 1
    stamp = forest.count[STAMP]
    node = forest.top[u]
    forest.mark[node] = stamp
    while forest.mate[node] != NONE:
        node = forest.top[forest.via_from[forest.top[forest.mate[node]]]]
        forest.mark[node] = stamp
    node = forest.top[v]
    while forest.mark[node] != stamp:
        node = forest.top[forest.via_from[forest.top[forest.mate[node]]]]
    return node


@njit(cache=True, nogil=True)
def link(forest, a, b, u, v):
    forest.following[a] = b
    forest.previous[b] = a
    forest.link_from[a] = u
    forest.link_to[a] = v


@njit(cache=True, nogil=True)
def shrink(forest, u, v, now):
    """Make one outer blossom of the odd cycle that the edge between outer vertices u, v closes.

    Its formerly inner children are queued: their vertices, outer now, are still to be scanned.
    """
    crown = meeting(forest, u, v)
    link(forest, forest.top[u], forest.top[v], u, v)
    node = forest.top[u]
    while node != crown:
        below = forest.top[forest.mate[node]]
        link(forest, below, node, forest.mate[node], forest.base[node])
        above = forest.top[forest.via_from[below]]
        link(forest, above, below, forest.via_from[below], forest.via_to[below])
        node = above
    node = forest.top[v]
    while node != crown:
        below = forest.top[forest.mate[node]]
        link(forest, node, below, forest.base[node], forest.mate[node])
        above = forest.top[forest.via_from[below]]
        link(forest, below, above, forest.via_to[below], forest.via_from[below])
        node = above
    forest.count[N_SPARE] -= 1
    blossom = forest.spare[forest.count[N_SPARE]]
    enclose(forest, blossom, crown, now)


@njit(cache=True, nogil=True)
def enclose(forest, blossom, crown, now):
    """Move the cycle through crown into the new blossom and fix the children's duals at now."""
    forest.base[blossom] = forest.base[crown]
    forest.mate[blossom] = forest.mate[crown]
    forest.parent[blossom] = NONE
    forest.label[blossom] = OUTER
    forest.tree[blossom] = forest.tree[crown]
    forest.half[blossom] = -now
    forest.first[blossom] = forest.first[crown]
    child = crown
    while True:
        outer = forest.label[child] == OUTER
        forest.parent[child] = blossom
        forest.half[child] += now if outer else -now
        if not outer:
            forest.queue[forest.count[N_QUEUE]] = child
            forest.count[N_QUEUE] += 1
        v = forest.first[child]
        while v != NONE:
            forest.top[v] = blossom
            if not outer:
                forest.y[v] += 2.0 * now
            v = forest.after[v]
        following = forest.following[child]
        if following == crown:
            break
        forest.after[forest.last[child]] = forest.first[following]
        child = following
    forest.last[blossom] = forest.last[child]
    keep_inner(forest)


@njit(cache=True, nogil=True)
def keep_inner(forest):
    """Drop from the list of inner blossoms those that no longer are outermost and inner."""
    kept = 0
    for i in range(forest.count[N_INNER]):
        node = forest.inner[i]
        if forest.parent[node] == NONE and forest.label[node] == INNER:
            forest.inner[kept] = node
            kept += 1
    forest.count[N_INNER] = kept


@njit(cache=True, nogil=True)
def child_with(forest, blossom, v):
    node = v
    while forest.parent[node] != blossom:
        node = forest.parent[node]
    return node


@njit(cache=True, nogil=True)
def rematch(forest, blossom, crown):
    """Give the blossom's matched edge to its child crown and pair the others around the cycle."""
    forest.base[crown] = forest.base[blossom]
    forest.mate[crown] = forest.mate[blossom]
    child = forest.following[crown]
    while child != crown:
        other = forest.following[child]
        forest.base[child] = forest.mate[other] = forest.link_from[child]
        forest.mate[child] = forest.base[other] = forest.link_to[child]
        child = forest.following[other]


@njit(cache=True, nogil=True)
def release(forest, blossom, now):
    """Set an inner blossom's children free at now, as outermost nodes, and drop the blossom."""
    child = start = child_with(forest, blossom, forest.base[blossom])
    while True:
        forest.after[forest.last[child]] = NONE
        child = forest.following[child]
        if child == start:
            break
    while True:
        forest.parent[child] = NONE
        forest.label[child] = FREE
        v = forest.first[child]
        while v != NONE:
            forest.top[v] = child
            make_free(forest, v, forest.y[v] + now)
            v = forest.after[v]
        child = forest.following[child]
        if child == start:
            break
    forest.label[blossom] = FREE
    forest.parent[blossom] = blossom  # unused
    keep_inner(forest)
    forest.spare[forest.count[N_SPARE]] = blossom
    forest.count[N_SPARE] += 1


@njit(cache=True, nogil=True)
def expand(forest, blossom, now):
    """Undo an inner blossom whose dual is used up: the even way through its cycle stays in the tree.

    The other children are free again; those that turn outer are queued for scanning.
    """
    crown = child_with(forest, blossom, forest.base[blossom])
    entry = child_with(forest, blossom, forest.via_to[blossom])
    release(forest, blossom, now)
    rematch(forest, blossom, crown)
    make_inner(forest, entry, forest.via_from[blossom], forest.via_to[blossom], now)
    forward = forest.top[forest.mate[entry]] == forest.following[entry]
    node = entry
    while node != crown:
        if forward:
            outer = forest.following[node]
            node, u, v = forest.following[outer], forest.link_from[outer], forest.link_to[outer]
        else:
            outer = forest.previous[node]
            node = forest.previous[outer]
            u, v = forest.link_to[node], forest.link_from[node]
        make_outer(forest, outer, forest.tree[blossom], now)
        make_inner(forest, node, u, v, now)


@njit(cache=True, nogil=True)
def free_tree(forest, tree, now):
    """Dissolve a tree that was augmented; its duals are stored themselves again: O(n)."""
    n = forest.top.size
    for v in range(n):
        node = forest.top[v]
        if forest.tree[node] == tree:
            if forest.label[node] == OUTER:
                make_free(forest, v, forest.y[v] - now)
            elif forest.label[node] == INNER:
                make_free(forest, v, forest.y[v] + now)
    for v in range(n):
        node = forest.top[v]
        if forest.tree[node] == tree:
            if forest.label[node] == OUTER:
                forest.half[node] += now
            elif forest.label[node] == INNER:
                forest.half[node] -= now
            forest.label[node] = FREE
    keep_inner(forest)


@njit(cache=True, nogil=True)
def unfold(forest):
    """Carry the outermost nodes' matched edges down to the vertices; the blossoms stay: O(n depth)."""
    n = forest.top.size
    depth = 0
    for v in range(n):
        node = v
        if forest.top[v] >= n and forest.first[forest.top[v]] == v:
            forest.queue[depth] = forest.top[v]
            depth += 1
    while depth > 0:
        depth -= 1
        blossom = forest.queue[depth]
        crown = child_with(forest, blossom, forest.base[blossom])
        rematch(forest, blossom, crown)
        child = crown
        while True:
            if child >= n:
                forest.queue[depth] = child
                depth += 1
            child = forest.following[child]
            if child == crown:
                break


@njit(cache=True, nogil=True)
def odd_sets(forest, nodes):
    """The vertices of the given blossoms, one after the other, with their bounds: O(their sizes)."""
    bounds = np.zeros(nodes.size + 1, np.int64)
    for fill in range(2):
        members = np.empty(bounds[-1], np.int64)
        position = 0
        for i in range(nodes.size):
            v = forest.first[nodes[i]]
            while True:
                if fill:
                    members[position] = v
                position += 1
                if v == forest.last[nodes[i]]:
                    break
                v = forest.after[v]
            bounds[i + 1] = position
    return members, bounds
