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


class Forest(NamedTuple):
    """The whole state of a search, its work space included: nothing is allocated while it runs.

    A node's vertices are a linked list, and each vertex knows its outermost node by the head of
    that list: a new blossom keeps the list of its largest child, so that most need no new head.
    """

    node: Any  # array: one NODE per vertex and blossom
    head: Array  # vertex → the first vertex of the outermost node it lies in
    owner: Array  # first vertex of an outermost node → that node
    after: Array  # vertex → the next in its node's list
    y: Array
    half: Array
    size: Array  # node → how many vertices
    queue: Array  # outer nodes whose edges are not scanned yet
    spare: Array  # unused blossom numbers
    length: Array  # lengths of queue and spare, the stamp, and one for the events
    events: Any  # what the search keeps to find its next event

    @property
    def top(self) -> Array:
        """Each vertex's outermost node."""
        return np.asarray(self.owner[self.head])


N_QUEUE, N_SPARE, STAMP, N_EVENTS = 0, 1, 2, 3


@kernel
def filled(n: int, value: float) -> Array:
    """np.full, of which Numba compiles several kernels for each type."""
    made = np.empty(n)
    for i in range(n):
        made[i] = value
    return made


@kernel
def counted(n: int, first: int, step: int) -> Array:
    """The whole numbers first, first + step and so on."""
    made = np.empty(n, np.int32)
    for i in range(n):
        made[i] = first + step * i
    return made


@kernel
def sprout(
    y: Array, mate: Array, head: Array, owner: Array, after: Array, own_y: Array, events: Any
) -> Forest:
    """A forest of single vertices with these duals and mates, and without trees: O(n).

    ``head``, ``owner``, ``after`` and ``own_y`` are memory for that, so that they may lie together.
    """
    n = y.size
    size = n + n // 2
    node: Any = np.zeros(size, NODE)
    for i in range(size):
        node.parent[i] = node.mate[i] = node.via_from[i] = node.via_to[i] = NONE
        node.base[i] = node.first[i] = node.last[i] = node.later[i] = node.earlier[i] = i
    for v in range(n):
        node.mate[v] = mate[v]
        head[v] = owner[v] = v
        after[v] = NONE
        own_y[v] = y[v]
    length = np.zeros(4, np.int64)
    length[N_SPARE] = size - n
    return Forest(
        node, head, owner, after, own_y, filled(size, 0.0), counted(size, 1, 0),
        counted(size, 0, 0), counted(size - n, size - 1, -1), length, events,
    )  # fmt: skip


@uncounted(forceinline=True)
def top(forest: Forest, v: int) -> int:
    """The outermost node that the vertex lies in."""
    node: int = forest.owner[forest.head[v]]
    return node


def label_vertex(forest: Forest, events: Any, v: int, label: int) -> None:
    """Let the events know that the vertex has this label and dual from now on."""
    raise NotImplementedError


def end_inner(forest: Forest, events: Any, node: int, time: float) -> None:
    """Let the events know when the node is used up, if it stays an inner blossom."""
    raise NotImplementedError


def row_excess(edges: Any, y: Array, v: int) -> float:
    """The greatest weight at v minus the other end's y: what v's own dual has to cover."""
    raise NotImplementedError


def tight_exposed(edges: Any, y: Array, mate: Array, v: int, need: float) -> int:
    """An exposed neighbour over an edge of v that needs exactly this dual, or NONE."""
    raise NotImplementedError


@kernel
def half_maxima(edges: Any, y: Array) -> None:
    """Half of each row's greatest weight covers every edge: one sweep over the edges."""
    zero = np.zeros(y.size)
    for v in range(y.size):
        y[v] = row_excess(edges, zero, v) / 2.0


@uncounted()
def tighten(edges: Any, y: Array, mate: Array, lowest: float) -> None:
    """Lower each dual in turn as far as it goes and match along edges that became tight."""
    for v in range(y.size):
        need = row_excess(edges, y, v)
        y[v] = max(need, lowest)
        if mate[v] == NONE and need >= lowest and need > -np.inf:
            u = tight_exposed(edges, y, mate, v, need)
            if u != NONE:
                mate[v] = u
                mate[u] = v


@uncounted()
def plant(forest: Forest, perfect: bool) -> int:
    """Let every exposed vertex that needs a mate be a tree; how many there are."""
    trees = 0
    for v in range(forest.head.size):
        if forest.node.mate[v] == NONE and (perfect or forest.y[v] > 0.0):
            make_outer(forest, v, trees, 0.0, 0.0)
            trees += 1
    return trees


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
    if node >= forest.head.size:
        end_inner(forest, forest.events, node, np.inf)


@uncounted()
def relabel(forest: Forest, node: int, label: int, change: float) -> None:
    """Label the node, whose vertices' duals change with the meaning of the clock: O(vertices)."""
    forest.node.label[node] = label
    v = forest.node.first[node]
    after = forest.after[forest.node.last[node]]
    while v != after:
        forest.y[v] += change
        label_vertex(forest, forest.events, v, label)
        v = forest.after[v]


@uncounted(forceinline=True)
def make_outer(forest: Forest, node: int, tree: int, now: float, change: float) -> None:
    """Let a node outside all rings be outer, to be scanned; its vertices' duals change by that."""
    forest.node.tree[node] = tree
    forest.half[node] -= now
    forest.queue[forest.length[N_QUEUE]] = node
    forest.length[N_QUEUE] += 1
    relabel(forest, node, OUTER, change)


@uncounted(forceinline=True)
def hang(forest: Forest, node: int, via_from: int, via_to: int, now: float) -> None:
    """Put a node, whose vertices are inner, below an outer vertex into its tree."""
    forest.node.label[node] = INNER
    forest.node.tree[node] = forest.node.tree[top(forest, via_from)]
    forest.half[node] += now
    forest.node.via_from[node] = via_from
    forest.node.via_to[node] = via_to
    enter(forest, node, top(forest, via_from))
    if node >= forest.head.size:
        end_inner(forest, forest.events, node, forest.half[node])


@uncounted(forceinline=True)
def grow(forest: Forest, u: int, v: int, now: float) -> None:
    """Put the free node at v, reached from the outer vertex u, and its mate into the tree."""
    node = top(forest, v)
    relabel(forest, node, INNER, -now)
    hang(forest, node, u, v, now)
    mate = top(forest, forest.node.mate[node])
    make_outer(forest, mate, forest.node.tree[node], now, now)
    enter(forest, mate, node)


@uncounted(forceinline=True)
def augment(forest: Forest, u: int, v: int) -> None:
    """Match outer vertex u to v outside its tree (or to NONE), flipping the path to the root."""
    while True:
        node = top(forest, u)
        former = forest.node.mate[node]
        forest.node.base[node] = u
        forest.node.mate[node] = v
        if former == NONE:
            return
        node = top(forest, former)
        v, u = forest.node.via_to[node], forest.node.via_from[node]
        forest.node.base[node] = v
        forest.node.mate[node] = u


@uncounted(forceinline=True)
def above(forest: Forest, node: int) -> int:
    """The next outer node on the way to the root, NONE at the root."""
    mate = forest.node.mate[node]
    return NONE if mate == NONE else top(forest, forest.node.via_from[top(forest, mate)])


@uncounted(forceinline=True)
def meeting(forest: Forest, u: int, v: int) -> int:
    """The first node on both walks from outer u, v to their roots, NONE in two trees.

    The walks take turns, so the cost is that of the longer way to the meeting.
    """
    one: int = top(forest, u)
    other: int = top(forest, v)
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
    link(forest, top(forest, u), top(forest, v), u, v)
    node = top(forest, u)
    while node != crown:
        below = top(forest, forest.node.mate[node])
        link(forest, below, node, forest.node.mate[node], forest.node.base[node])
        node = top(forest, forest.node.via_from[below])
        link(forest, node, below, forest.node.via_from[below], forest.node.via_to[below])
    node = top(forest, v)
    while node != crown:
        below = top(forest, forest.node.mate[node])
        link(forest, node, below, forest.node.base[node], forest.node.mate[node])
        node = top(forest, forest.node.via_from[below])
        link(forest, below, node, forest.node.via_to[below], forest.node.via_from[below])
    forest.length[N_SPARE] -= 1
    blossom = forest.spare[forest.length[N_SPARE]]
    enclose(forest, blossom, crown, now)


@uncounted()
def enclose(forest: Forest, blossom: int, crown: int, now: float) -> None:
    """Move the cycle through crown into the new blossom and fix the children's duals at now.

    The list of the largest child comes first: only the vertices of the others need a new head, each
    at most log2 n times while blossoms are made.
    """
    forest.node.base[blossom] = forest.node.base[crown]
    forest.node.mate[blossom] = forest.node.mate[crown]
    forest.node.parent[blossom] = NONE
    forest.node.label[blossom] = OUTER
    forest.node.tree[blossom] = forest.node.tree[crown]
    forest.half[blossom] = -now
    enter(forest, blossom, crown)
    child = largest = crown
    while True:
        if forest.size[child] > forest.size[largest]:
            largest = child
        child = forest.node.following[child]
        if child == crown:
            break
    child = largest
    head = forest.node.first[blossom] = forest.node.first[largest]
    forest.owner[head] = blossom
    forest.size[blossom] = 0
    while True:
        absorb(forest, blossom, child, now)
        following = forest.node.following[child]
        if following == largest:
            break
        forest.after[forest.node.last[child]] = forest.node.first[following]
        child = following
    forest.node.last[blossom] = forest.node.last[child]


@uncounted(forceinline=True)
def absorb(forest: Forest, blossom: int, child: int, now: float) -> None:
    """Take a labelled child's vertices into the blossom; those of an inner one turn outer."""
    outer = forest.node.label[child] == OUTER
    leave(forest, child)
    forest.node.parent[child] = blossom
    forest.size[blossom] += forest.size[child]
    forest.half[child] += now if outer else -now
    head, v = forest.node.first[blossom], forest.node.first[child]
    if not outer:
        forest.queue[forest.length[N_QUEUE]] = child
        forest.length[N_QUEUE] += 1
        relabel(forest, child, OUTER, 2.0 * now)
    while v != head and v != NONE:
        forest.head[v] = head
        v = forest.after[v]


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
def release(forest: Forest, blossom: int) -> None:
    """Drop an inner blossom: its children are outermost nodes, whose labels are still to be set.

    The largest child keeps the list's head, see ``enclose``.
    """
    child = start = child_with(forest, blossom, forest.node.base[blossom])
    while True:
        forest.after[forest.node.last[child]] = NONE
        child = forest.node.following[child]
        if child == start:
            break
    while True:
        forest.node.parent[child] = NONE
        forest.node.label[child] = FREE
        head = forest.node.first[child]
        forest.owner[head] = child
        v = NONE if head == forest.node.first[blossom] else head
        while v != NONE:
            forest.head[v] = head
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
    release(forest, blossom)
    rematch(forest, blossom, crown)
    hang(forest, entry, forest.node.via_from[blossom], forest.node.via_to[blossom], now)
    forward = top(forest, forest.node.mate[entry]) == forest.node.following[entry]
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
        make_outer(forest, outer, forest.node.tree[blossom], now, 2.0 * now)
        enter(forest, outer, entry)
        hang(forest, node, u, v, now)
    node = forest.node.following[crown]
    while node != crown:
        if forest.node.label[node] == FREE:
            relabel(forest, node, FREE, now)
        node = forest.node.following[node]


@uncounted(forceinline=True)
def free_tree(forest: Forest, node: int, now: float) -> None:
    """Dissolve the node's augmented tree; duals are themselves again: O(its vertices)."""
    while True:
        following = forest.node.later[node]
        change = -now if forest.node.label[node] == OUTER else now
        forest.half[node] -= change
        relabel(forest, node, FREE, change)
        leave(forest, node)
        if following == node:
            break
        node = following


@uncounted(forceinline=True)
def join(forest: Forest, u: int, v: int, now: float) -> None:
    """Match the outer vertices u and v of two trees and dissolve both."""
    augment(forest, u, v)
    augment(forest, v, u)
    free_tree(forest, top(forest, u), now)
    free_tree(forest, top(forest, v), now)


@uncounted(forceinline=True)
def reach(forest: Forest, u: int, v: int, now: float) -> bool:
    """Take the free vertex v into the tree of the outer u; True if that matched the tree's root."""
    node = top(forest, v)
    if forest.node.mate[node] != NONE:
        grow(forest, u, v, now)
        return False
    augment(forest, u, v)
    forest.node.base[node] = v
    forest.node.mate[node] = u
    free_tree(forest, top(forest, u), now)
    return True


@uncounted(forceinline=True)
def abandon(forest: Forest, u: int, now: float) -> None:
    """Let the outer vertex u stay single in its root's place and dissolve the tree."""
    augment(forest, u, NONE)
    free_tree(forest, top(forest, u), now)


@uncounted()
def unfold(forest: Forest) -> None:
    """Carry the outermost nodes' matched edges down to the vertices; blossoms stay: O(n depth)."""
    n = forest.head.size
    depth = 0
    for v in range(n):
        if forest.head[v] == v and forest.owner[v] >= n:
            forest.queue[depth] = forest.owner[v]
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
    for i in range(forest.head.size):
        v = i if forest.head[i] == i else NONE
        while v != NONE:
            order[count] = v
            place[v] = count
            count += 1
            v = forest.after[v]
