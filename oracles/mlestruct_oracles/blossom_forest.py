"""The alternating trees of a search and its nested blossoms, as flat arrays for Numba kernels.

A node below n is a vertex, a node from n on a blossom. Duals: y per vertex and half the z per
blossom: an edge inside blossoms is tight when y[u] + y[v] + 2 * sum(half) equals its weight.
During the search the duals of labelled nodes are stored relative to the clock ``now`` (an outer
vertex stores y + now, an inner one y - now; halves the other way round): time costs nothing until
a label changes. Half-integers are exact in float64, hence whole weights give exact answers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlestruct.kernels import kernel

Array = NDArray[Any]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
FREE, OUTER, INNER = 0, 1, 2
NONE = -1


def uncounted(**options: Any) -> Callable[[Kernel], Kernel]:
    """A kernel that allocates nothing, compiled without counts of who holds an array.

    Taking an array out of a tuple counts it up and down, atomically: two thirds of the time of a
    search through a sparse graph.
    """
    return kernel(_nrt=False, **options)


NODE = np.dtype(
    [
        ("parent", np.int32),  # the blossom directly around, or NONE
        ("base", np.int32),  # the vertex at the matched edge (kept up to date on outermost nodes)
        ("mate", np.int32),  # the vertex at the other end of that edge, or NONE
        ("following", np.int32),  # the next child around the blossom's odd cycle
        ("previous", np.int32),
        ("link_from", np.int32),  # the cycle's edge from this child (a vertex in it) to the next
        ("link_to", np.int32),
        ("first", np.int32),  # the vertices as a linked list, continued by Forest.after
        ("last", np.int32),
        ("label", np.int32),  # FREE, OUTER or INNER, of outermost nodes
        ("tree", np.int32),  # the tree's number, of labelled outermost nodes
        ("via_from", np.int32),  # of inner nodes: the tree edge that reached them, outer end first
        ("via_to", np.int32),
        ("mark", np.int32),  # stamp of the last walk to a root that passed
        ("later", np.int32),  # the ring of its tree's outermost nodes
        ("earlier", np.int32),
    ]
)


class Bounds(NamedTuple):
    """Lower bounds on the least of each block of values, and on the least of each block of those.

    Lowered at once (``lower``) and raised when they are the least of all (``least_block``), so that
    the least of n values costs a look at 64 of them, at 64 blocks, and at n / 4096 tops.
    """

    block: Array
    top: Array


class Forest(NamedTuple):
    """The whole state of a search, its work space included: nothing is allocated while it runs."""

    node: Any  # array: one NODE per vertex and blossom
    top: Array  # vertex → the outermost node it lies in
    after: Array  # vertex → the next in its node's list
    y: Array
    half: Array
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
    outer: Array  # scanned outer vertices, of dense rows
    queue: Array  # outer nodes whose edges are not scanned yet
    spare: Array  # unused blossom numbers
    length: Array  # lengths of outer, queue and spare, and the stamp


N_OUTER, N_QUEUE, N_SPARE, STAMP = 0, 1, 2, 3
BLOCK = 64


@kernel
def unbounded(n: int) -> Bounds:
    blocks = (n + BLOCK - 1) // BLOCK
    return Bounds(_filled(blocks, np.inf), _filled((blocks + BLOCK - 1) // BLOCK, np.inf))


@kernel
def _filled(n: int, value: float) -> Array:
    """np.full, of which Numba compiles several kernels for each type."""
    made = np.empty(n)
    for i in range(n):
        made[i] = value
    return made


@kernel
def _counted(n: int, first: int, step: int) -> Array:
    """The whole numbers first, first + step and so on."""
    made = np.empty(n, np.int32)
    for i in range(n):
        made[i] = first + step * i
    return made


@uncounted(forceinline=True)
def lower(bounds: Bounds, place: int, value: float) -> None:
    """Let the bounds allow this value at this place."""
    block = place // BLOCK
    if value < bounds.block[block]:
        bounds.block[block] = value
        bounds.top[block // BLOCK] = min(bounds.top[block // BLOCK], value)


@kernel
def allocate(n: int) -> Forest:
    """A forest of n single vertices without trees, y zero: O(n)."""
    size = n + n // 2
    node: Any = np.zeros(size, NODE)
    for i in range(size):
        node.parent[i] = node.mate[i] = node.via_from[i] = node.via_to[i] = NONE
        node.base[i] = node.first[i] = node.last[i] = node.later[i] = node.earlier[i] = i
    length = np.zeros(4, np.int64)
    length[N_SPARE] = size - n
    return Forest(
        node, _counted(n, 0, 1), _counted(n, NONE, 0), _filled(n, 0.0), _filled(size, 0.0),
        _filled(n, 0.0), _filled(n, np.inf), _filled(n, np.inf), _counted(n, NONE, 0),
        _filled(n, np.inf), _filled(size, np.inf), unbounded(n), unbounded(n), unbounded(n),
        unbounded(size), _counted(n, NONE, 0), _counted(size, 0, 0),
        _counted(size - n, size - 1, -1), length,
    )  # fmt: skip


@uncounted(forceinline=True)
def enter(forest: Forest, node: int, beside: int) -> None:
    """Put the node into the ring of its tree, beside a node that is in it."""
    following = forest.node.later[beside]
    forest.node.later[beside] = forest.node.earlier[following] = node
    forest.node.later[node] = following
    forest.node.earlier[node] = beside


@uncounted(forceinline=True)
def leave(forest: Forest, node: int) -> None:
    """Take the node out of the ring of its tree; nothing keeps it from being used up either."""
    before, after = forest.node.earlier[node], forest.node.later[node]
    forest.node.later[before] = after
    forest.node.earlier[after] = before
    forest.node.later[node] = forest.node.earlier[node] = node
    forest.used_up[node] = np.inf


@uncounted(forceinline=True)
def make_outer(forest: Forest, node: int, tree: int, now: float) -> None:
    forest.node.label[node] = OUTER
    forest.node.tree[node] = tree
    forest.half[node] -= now
    forest.queue[forest.length[N_QUEUE]] = node
    forest.length[N_QUEUE] += 1
    v = forest.node.first[node]
    while v != NONE:
        forest.y[v] += now
        forest.free_y[v] = np.inf
        v = forest.after[v]


@uncounted(forceinline=True)
def make_inner(forest: Forest, node: int, via_from: int, via_to: int, now: float) -> None:
    forest.node.label[node] = INNER
    forest.node.tree[node] = forest.node.tree[forest.top[via_from]]
    forest.half[node] += now
    forest.node.via_from[node] = via_from
    forest.node.via_to[node] = via_to
    enter(forest, node, forest.top[via_from])
    if node >= forest.top.size:
        forest.used_up[node] = forest.half[node]
        lower(forest.used_up_least, node, forest.half[node])
    v = forest.node.first[node]
    while v != NONE:
        forest.y[v] -= now
        forest.free_y[v] = np.inf
        v = forest.after[v]


@uncounted(forceinline=True)
def make_free(forest: Forest, v: int, y: Array) -> None:
    forest.y[v] = y
    forest.free_y[v] = y
    forest.outer_y[v] = np.inf
    forest.pair[v] = np.inf
    lower(forest.near_least, v, forest.near[v] + y)


@uncounted(forceinline=True)
def grow(forest: Forest, u: int, v: int, now: float) -> None:
    """Put the free node at v, reached from the outer vertex u, and its mate into the tree."""
    node = forest.top[v]
    make_inner(forest, node, u, v, now)
    mate = forest.top[forest.node.mate[node]]
    make_outer(forest, mate, forest.node.tree[node], now)
    enter(forest, mate, node)


@uncounted(forceinline=True)
def augment(forest: Forest, u: int, v: int) -> None:
    """Match outer vertex u to v outside its tree (or to NONE), flipping the path to the root."""
    while True:
        node = forest.top[u]
        former = forest.node.mate[node]
        forest.node.base[node] = u
        forest.node.mate[node] = v
        if former == NONE:
            return
        node = forest.top[former]
        v, u = forest.node.via_to[node], forest.node.via_from[node]
        forest.node.base[node] = v
        forest.node.mate[node] = u


@uncounted(forceinline=True)
def above(forest: Forest, node: int) -> int:
    """The next outer node on the way to the root, NONE at the root."""
    mate = forest.node.mate[node]
    return NONE if mate == NONE else forest.top[forest.node.via_from[forest.top[mate]]]


@uncounted(forceinline=True)
def meeting(forest: Forest, u: int, v: int) -> int:
    """The first node on both walks from outer u, v to their roots, NONE in two trees.

    The walks take turns, so the cost is that of the longer way to the meeting.
    """
    one: int = forest.top[u]
    other: int = forest.top[v]
    if forest.node.tree[one] != forest.node.tree[other]:
        return NONE
    forest.length[STAMP] += 1
    stamp = forest.length[STAMP]
    while one == NONE or forest.node.mark[one] != stamp:
        if one != NONE:
            forest.node.mark[one] = stamp
            one = above(forest, one)
        one, other = (one, other) if other == NONE else (other, one)
    return one


@uncounted(forceinline=True)
def link(forest: Forest, a: int, b: int, u: int, v: int) -> None:
    forest.node.following[a] = b
    forest.node.previous[b] = a
    forest.node.link_from[a] = u
    forest.node.link_to[a] = v


@uncounted()
def shrink(forest: Forest, u: int, v: int, now: float) -> None:
    """Make one outer blossom of the odd cycle that the edge between outer vertices u, v closes.

    Its formerly inner children are queued: their vertices, outer now, are still to be scanned.
    """
    crown = meeting(forest, u, v)
    link(forest, forest.top[u], forest.top[v], u, v)
    node = forest.top[u]
    while node != crown:
        below = forest.top[forest.node.mate[node]]
        link(forest, below, node, forest.node.mate[node], forest.node.base[node])
        node = forest.top[forest.node.via_from[below]]
        link(forest, node, below, forest.node.via_from[below], forest.node.via_to[below])
    node = forest.top[v]
    while node != crown:
        below = forest.top[forest.node.mate[node]]
        link(forest, node, below, forest.node.base[node], forest.node.mate[node])
        node = forest.top[forest.node.via_from[below]]
        link(forest, below, node, forest.node.via_to[below], forest.node.via_from[below])
    forest.length[N_SPARE] -= 1
    blossom = forest.spare[forest.length[N_SPARE]]
    enclose(forest, blossom, crown, now)


@uncounted()
def enclose(forest: Forest, blossom: int, crown: int, now: float) -> None:
    """Move the cycle through crown into the new blossom and fix the children's duals at now."""
    forest.node.base[blossom] = forest.node.base[crown]
    forest.node.mate[blossom] = forest.node.mate[crown]
    forest.node.parent[blossom] = NONE
    forest.node.label[blossom] = OUTER
    forest.node.tree[blossom] = forest.node.tree[crown]
    forest.half[blossom] = -now
    forest.node.first[blossom] = forest.node.first[crown]
    enter(forest, blossom, crown)
    child = crown
    while True:
        outer = forest.node.label[child] == OUTER
        leave(forest, child)
        forest.node.parent[child] = blossom
        forest.half[child] += now if outer else -now
        if not outer:
            forest.queue[forest.length[N_QUEUE]] = child
            forest.length[N_QUEUE] += 1
        v = forest.node.first[child]
        while v != NONE:
            forest.top[v] = blossom
            if not outer:
                forest.y[v] += 2.0 * now
            v = forest.after[v]
        following = forest.node.following[child]
        if following == crown:
            break
        forest.after[forest.node.last[child]] = forest.node.first[following]
        child = following
    forest.node.last[blossom] = forest.node.last[child]


@uncounted(forceinline=True)
def child_with(forest: Forest, blossom: int, v: int) -> int:
    node = v
    while forest.node.parent[node] != blossom:
        node = forest.node.parent[node]
    return node


@uncounted()
def rematch(forest: Forest, blossom: int, crown: int) -> None:
    """Give the blossom's matched edge to its child crown and pair the others around the cycle."""
    forest.node.base[crown] = forest.node.base[blossom]
    forest.node.mate[crown] = forest.node.mate[blossom]
    child = forest.node.following[crown]
    while child != crown:
        other = forest.node.following[child]
        forest.node.base[child] = forest.node.mate[other] = forest.node.link_from[child]
        forest.node.mate[child] = forest.node.base[other] = forest.node.link_to[child]
        child = forest.node.following[other]


@uncounted()
def release(forest: Forest, blossom: int, now: float) -> None:
    """Set an inner blossom's children free at now, as outermost nodes, and drop the blossom."""
    child = start = child_with(forest, blossom, forest.node.base[blossom])
    while True:
        forest.after[forest.node.last[child]] = NONE
        child = forest.node.following[child]
        if child == start:
            break
    while True:
        forest.node.parent[child] = NONE
        forest.node.label[child] = FREE
        v = forest.node.first[child]
        while v != NONE:
            forest.top[v] = child
            make_free(forest, v, forest.y[v] + now)
            v = forest.after[v]
        child = forest.node.following[child]
        if child == start:
            break
    forest.node.label[blossom] = FREE
    forest.node.parent[blossom] = blossom  # unused
    leave(forest, blossom)
    forest.spare[forest.length[N_SPARE]] = blossom
    forest.length[N_SPARE] += 1


@uncounted()
def expand(forest: Forest, blossom: int, now: float) -> None:
    """Undo an inner blossom whose dual is used up: its cycle's even way stays in the tree.

    The other children are free again; those that turn outer are queued for scanning.
    """
    crown = child_with(forest, blossom, forest.node.base[blossom])
    entry = child_with(forest, blossom, forest.node.via_to[blossom])
    release(forest, blossom, now)
    rematch(forest, blossom, crown)
    make_inner(forest, entry, forest.node.via_from[blossom], forest.node.via_to[blossom], now)
    forward = forest.top[forest.node.mate[entry]] == forest.node.following[entry]
    node = entry
    while node != crown:
        if forward:
            outer = forest.node.following[node]
            node, u, v = (
                forest.node.following[outer],
                forest.node.link_from[outer],
                forest.node.link_to[outer],
            )
        else:
            outer = forest.node.previous[node]
            node = forest.node.previous[outer]
            u, v = forest.node.link_to[node], forest.node.link_from[node]
        make_outer(forest, outer, forest.node.tree[blossom], now)
        enter(forest, outer, entry)
        make_inner(forest, node, u, v, now)


@uncounted(forceinline=True)
def free_tree(forest: Forest, node: int, now: float) -> None:
    """Dissolve the node's augmented tree; duals are themselves again: O(its vertices)."""
    while True:
        following = forest.node.later[node]
        change = -now if forest.node.label[node] == OUTER else now
        v = forest.node.first[node]
        while v != NONE:
            make_free(forest, v, forest.y[v] + change)
            v = forest.after[v]
        forest.half[node] -= change
        forest.node.label[node] = FREE
        leave(forest, node)
        if following == node:
            break
        node = following


@uncounted(forceinline=True)
def keep_outer(forest: Forest) -> None:
    """Drop from the list of scanned outer vertices those that no longer are."""
    kept = 0
    for i in range(forest.length[N_OUTER]):
        v = forest.outer[i]
        if forest.outer_y[v] < np.inf:
            forest.outer[kept] = v
            kept += 1
    forest.length[N_OUTER] = kept


@uncounted()
def unfold(forest: Forest) -> None:
    """Carry the outermost nodes' matched edges down to the vertices; blossoms stay: O(n depth)."""
    n = forest.top.size
    depth = 0
    for v in range(n):
        if forest.top[v] >= n and forest.node.first[forest.top[v]] == v:
            forest.queue[depth] = forest.top[v]
            depth += 1
    while depth > 0:
        depth -= 1
        blossom = forest.queue[depth]
        crown = child_with(forest, blossom, forest.node.base[blossom])
        rematch(forest, blossom, crown)
        child = crown
        while True:
            if child >= n:
                forest.queue[depth] = child
                depth += 1
            child = forest.node.following[child]
            if child == crown:
                break


@uncounted()
def in_order(forest: Forest, order: Array, place: Array) -> None:
    """Order the vertices so that those of every blossom are neighbours; each one's place: O(n)."""
    count = 0
    for i in range(forest.top.size):
        v = forest.node.first[forest.top[i]]
        if v != i:
            continue
        while v != NONE:
            order[count] = v
            place[v] = count
            count += 1
            v = forest.after[v]
