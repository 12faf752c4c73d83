"""The blossom kernel on lists of edges: alternating trees from all exposed vertices at once.

Every vertex and blossom has one entry among the ``Times``: its next event is not before that. An
entry may be too early, since edges of trees dissolved meanwhile stay in it; when it is the least of
all, a look at the vertex's edges makes it exact. All that a scan reads of a vertex lies together in
32 bytes: with many vertices the search waits for memory above all.

Cost: each of at most n/2 augmentations scans at most all edges, O(n m log n) in all, and far less
where trees stay small; what ends with an augmentation costs what its tree's vertices do. Entries
that were too early come on top.
"""

from typing import Any, NamedTuple

import numpy as np

from mlestruct.kernels import class_of, kernel, variant
from mlestruct_oracles.blossom_forest import (
    FREE,
    INNER,
    N_EVENTS,
    N_QUEUE,
    NONE,
    Array,
    Forest,
    abandon,
    counted,
    end_inner,
    expand,
    filled,
    join,
    label_vertex,
    meeting,
    plant,
    reach,
    row_excess,
    shrink,
    sprout,
    tight_exposed,
    tighten,
    uncounted,
    unfold,
)

EDGE = np.dtype([("weight", np.float64), ("target", np.int64)])
VERTEX = np.dtype(
    [
        ("y", np.float64),
        ("near", np.float64),  # the least y[u] - weight over scanned outer vertices u, or less
        ("head", np.int32),
        ("owner", np.int32),
        ("after", np.int32),
        ("state", np.int32),  # the label, or SCANNED
    ]
)
SCANNED = 3  # an outer vertex whose edges are recorded
ROOT = 7  # of the times: entry i is the least of entries 8 (i - 6) to 8 (i - 6) + 7


class Neighbours(NamedTuple):
    """Rows of neighbours: those of v are edge[start[v]] to edge[start[v + 1] - 1]."""

    start: Array
    edge: Any  # array of EDGE


class Times(NamedTuple):
    """When each vertex's and each blossom's next event is, or earlier; each entry the least of 8.

    The entry of node i is least[forest.length[N_EVENTS] + i].
    """

    vertex: Any  # array: one VERTEX per vertex
    least: Array


@uncounted()
def fill_rows(ends: Array, scores: Array, start: Array, edge: Any) -> None:
    """Every edge in the rows of both its ends; ``start`` is zero and has n + 2 places: O(m)."""
    for k in range(len(ends)):
        start[ends[k, 0] + 2] += 1
        start[ends[k, 1] + 2] += 1
    for v in range(2, start.size):
        start[v] += start[v - 1]
    for k in range(len(ends)):
        for side in range(2):
            v = ends[k, side]
            edge.target[start[v + 1]] = ends[k, 1 - side]
            edge.weight[start[v + 1]] = scores[k]
            start[v + 1] += 1


@variant(row_excess)
def _(edges, y, v):  # type: ignore[no-untyped-def]
    if class_of(edges) is not Neighbours:
        return None

    def sparse(edges, y, v):  # type: ignore[no-untyped-def]
        best = -np.inf
        for k in range(edges.start[v], edges.start[v + 1]):
            best = max(best, edges.edge.weight[k] - y[edges.edge.target[k]])
        return best

    return sparse


@variant(tight_exposed)
def _(edges, y, mate, v, need):  # type: ignore[no-untyped-def]
    if class_of(edges) is not Neighbours:
        return None

    def sparse(edges, y, mate, v, need):  # type: ignore[no-untyped-def]
        for k in range(edges.start[v], edges.start[v + 1]):
            u = edges.edge.target[k]
            if mate[u] == NONE and edges.edge.weight[k] - y[u] == need:
                return u
        return NONE

    return sparse


@uncounted()
def set_entry(least: Array, i: int, time: float) -> None:
    """Write an entry and keep those above it the least of theirs: O(log n) if it was or is so."""
    while True:
        former, least[i] = least[i], time
        a = i & -8
        i = (i >> 3) + 6
        if i < ROOT or time == former or not (time < least[i] or former == least[i]):
            return
        time = min(
            min(min(least[a], least[a + 1]), min(least[a + 2], least[a + 3])),
            min(min(least[a + 4], least[a + 5]), min(least[a + 6], least[a + 7])),
        )


@uncounted(forceinline=True)
def set_time(forest: Forest, node: int, time: float) -> None:
    """The node's next event is not before that time."""
    set_entry(forest.events.least, forest.length[N_EVENTS] + node, time)


@uncounted(forceinline=True)
def next_node(forest: Forest) -> int:
    """The node with the least time."""
    least, leaves = forest.events.least, forest.length[N_EVENTS]
    i = ROOT
    while i < leaves:
        i = 8 * (i - 6)
        while least[i] != least[ROOT]:
            i += 1
    return i - leaves


@variant(label_vertex, forceinline=True)
def _(forest, events, v, label):  # type: ignore[no-untyped-def]
    if class_of(events) is not Times:
        return None

    def sparse(forest, events, v, label):  # type: ignore[no-untyped-def]
        events.vertex.state[v] = label
        if label == FREE:
            set_time(forest, v, events.vertex.near[v] + forest.y[v])
        elif label == INNER:
            set_time(forest, v, np.inf)

    return sparse


@variant(end_inner, forceinline=True)
def _(forest, events, node, time):  # type: ignore[no-untyped-def]
    if class_of(events) is not Times:
        return None

    def sparse(forest, events, node, time):  # type: ignore[no-untyped-def]
        set_time(forest, node, time)

    return sparse


@uncounted(forceinline=True)
def scan(edges: Neighbours, forest: Forest, u: int, perfect: bool) -> None:
    """Record the edges of a new outer vertex, and when one of them or its dual is used up."""
    vertex = forest.events.vertex
    y_u, best = vertex.y[u], np.inf
    for k in range(edges.start[u], edges.start[u + 1]):
        v = edges.edge.target[k]
        reach = y_u - edges.edge.weight[k]
        state = vertex.state[v]
        if reach < vertex.near[v]:
            vertex.near[v] = reach
            if state == FREE:
                set_time(forest, v, reach + vertex.y[v])
        if state == SCANNED:
            best = min(best, reach + vertex.y[v])
    set_time(forest, u, best / 2.0 if perfect else min(best / 2.0, y_u))


@uncounted(forceinline=True)
def scan_queue(edges: Neighbours, forest: Forest, perfect: bool) -> None:
    """Scan every queued outer node, then let later scans see its vertices."""
    while forest.length[N_QUEUE] > 0:
        forest.length[N_QUEUE] -= 1
        node = forest.queue[forest.length[N_QUEUE]]
        after = forest.after[forest.node.last[node]]
        v = forest.node.first[node]
        while v != after:
            scan(edges, forest, v, perfect)
            v = forest.after[v]
        v = forest.node.first[node]
        while v != after:
            forest.events.vertex.state[v] = SCANNED
            v = forest.after[v]


@uncounted(forceinline=True)
def best_near(edges: Neighbours, forest: Forest, v: int) -> tuple[float, int]:
    """The exact least of y[u] - weight over scanned outer vertices u, and that u."""
    vertex = forest.events.vertex
    best, best_u = np.inf, NONE
    for k in range(edges.start[v], edges.start[v + 1]):
        u = edges.edge.target[k]
        if vertex.state[u] == SCANNED:
            value = vertex.y[u] - edges.edge.weight[k]
            if value < best:
                best, best_u = value, u
    return best, best_u


@uncounted(forceinline=True)
def best_pair(edges: Neighbours, forest: Forest, u: int) -> tuple[float, int]:
    """When the best edge to an outer vertex of another node is tight, exactly, and its end."""
    vertex = forest.events.vertex
    y_u, own = vertex.y[u], vertex.head[u]
    best, best_v = np.inf, NONE
    for k in range(edges.start[u], edges.start[u + 1]):
        v = edges.edge.target[k]
        if vertex.state[v] == SCANNED and vertex.head[v] != own:
            value = (y_u - edges.edge.weight[k]) + vertex.y[v]
            if value < best:
                best, best_v = value, v
    return best / 2.0, best_v


@uncounted(forceinline=True)
def turn_free(edges: Neighbours, forest: Forest, v: int, now: float) -> int:
    """A free vertex's event; how many trees end."""
    vertex = forest.events.vertex
    vertex.near[v], u = best_near(edges, forest, v)
    time = vertex.near[v] + vertex.y[v]
    if time > now:
        set_time(forest, v, time)
        return 0
    return int(reach(forest, u, v, now))


@uncounted(forceinline=True)
def turn_outer(edges: Neighbours, forest: Forest, u: int, now: float, perfect: bool) -> int:
    """An outer vertex's event; how many trees end."""
    time, v = best_pair(edges, forest, u)
    if time <= now:
        if meeting(forest, u, v) == NONE:
            join(forest, u, v, now)
            return 2
        shrink(forest, u, v, now)
        return 0
    if not perfect and forest.events.vertex.y[u] <= now:
        abandon(forest, u, now)
        return 1
    set_time(forest, u, time if perfect else min(time, forest.events.vertex.y[u]))
    return 0


@uncounted()
def search(edges: Neighbours, forest: Forest, perfect: bool) -> int:
    """Grow the trees until each is augmented; how many are left because nothing can be done.

    The events are those of the search in a matrix, and so is the witness.
    """
    trees = plant(forest, perfect)
    now = 0.0
    while trees > 0:
        scan_queue(edges, forest, perfect)
        time = forest.events.least[ROOT]
        if time == np.inf:
            return trees
        now = max(now, time)
        node = next_node(forest)
        if node >= forest.head.size:
            expand(forest, node, now)
        elif forest.events.vertex.state[node] == FREE:
            trees -= turn_free(edges, forest, node, now)
        else:
            trees -= turn_outer(edges, forest, node, now, perfect)
    return 0


@kernel
def solve(edges: Neighbours, y: Array, perfect: bool) -> tuple[Forest, int]:
    """Match the graph from duals that cover its edges; the forest and the trees left over."""
    n = y.size
    mate = counted(n, NONE, 0)
    tighten(edges, y, mate, -np.inf if perfect else 0.0)
    vertex: Any = np.zeros(n, VERTEX)
    for v in range(n):
        vertex.near[v] = np.inf
    leaves, width = 8, 8
    while width < n + n // 2:
        leaves += width
        width *= 8
    times = Times(vertex, filled(leaves + (n + n // 2 + 7) // 8 * 8, np.inf))
    forest = sprout(y, mate, vertex.head, vertex.owner, vertex.after, vertex.y, times)
    forest.length[N_EVENTS] = leaves
    left = search(edges, forest, perfect)
    if left == 0:
        unfold(forest)
    return forest, left


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
