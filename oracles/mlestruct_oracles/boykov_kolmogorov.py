"""Boykov and Kolmogorov's two search trees, compiled (PAMI 2004): minimum cuts that can resume."""

from typing import Any

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Ints, Marks, Shorts

Index = int | np.integer[Any]

# Edge e is the arcs there and back, kept in the order of their tails: arcs start[i] to start[i + 1]
# leave node i for head[a], twin[a] is the way back, rest[a] what still fits. excess[i] is what the
# source can still bring to i, negative what i can still send to the sink. tree has a row a node:
# the arc to its parent, when its distance to the root was last known, that distance, its flags.
# A ring is a queue of nodes: entries, and where it begins and how many it has.
# Unsigned indices spare Numba's test for negative ones.

NONE, ROOT, ORPHAN = -1, -2, -3
PARENT, TIME, DISTANCE, FLAGS = 0, 1, 2, 3
SINK, QUEUED = 1, 2
FAR = 1 << 30

_at = np.uint32


@kernel
def cut(ends: Ints, capacity: Array, pull: Array, flow: Array) -> Marks:
    n = len(pull)
    start, head, twin, arc = _adjacency(ends, n)
    rest, excess = np.empty(len(head)), -pull
    for e in range(len(ends)):
        # Any flow within the capacities is a start: what it leaves is an equivalent graph.
        sent = min(max(flow[e], -capacity[e]), capacity[e])
        rest[arc[e]], rest[twin[arc[e]]] = capacity[e] - sent, capacity[e] + sent
        excess[ends[e, 0]] -= sent
        excess[ends[e, 1]] += sent
    _push_short(start, head, twin, rest, excess)
    sink = _search(start, head, twin, rest, excess)
    for e in range(len(ends)):
        flow[e] = capacity[e] - rest[arc[e]]
    return sink


@kernel
def _adjacency(ends: Ints, n: int) -> tuple[Shorts, Shorts, Shorts, Shorts]:
    """The arcs in the order of their tails, and for each edge its arc from first to second end."""
    start, m = np.zeros(n + 1, dtype=np.int32), len(ends)
    for e in range(m):
        start[ends[e, 0] + 1] += 1
        start[ends[e, 1] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    free = start[:-1].copy()
    head, twin = np.empty(2 * m, dtype=np.int32), np.empty(2 * m, dtype=np.int32)
    arc = np.empty(m, dtype=np.int32)
    for e in range(m):
        i, j = ends[e]
        there, back = free[i], free[j]
        free[i] += 1
        free[j] += 1
        head[there], head[back], twin[there], twin[back], arc[e] = j, i, back, there, there
    return start, head, twin, arc


@kernel
def _push_short(start: Shorts, head: Shorts, twin: Shorts, rest: Array, excess: Array) -> None:
    """Flow along paths of one and two edges, without trees; saves up to a third of the time."""
    for i in range(len(excess)):
        for a in range(start[i], start[i + 1]):
            j = _at(head[a])
            if excess[i] > 0 and excess[j] < 0:
                sent = min(min(excess[i], -excess[j]), rest[a])
                rest[a] -= sent
                rest[_at(twin[a])] += sent
                excess[i] -= sent
                excess[j] += sent
    for k in range(len(excess)):
        for a in range(start[k], start[k + 1]):
            if excess[_at(head[a])] > 0 and rest[_at(twin[a])] > 0:
                _push_through(k, a, start, head, twin, rest, excess)


@kernel
def _push_through(
    k: int, a: int, start: Shorts, head: Shorts, twin: Shorts, rest: Array, excess: Array
) -> None:
    """Flow from the head of a, one of k's arcs, through k to k's other neighbours."""
    i, into = _at(head[a]), _at(twin[a])
    for c in range(start[k], start[k + 1]):
        j = _at(head[c])
        if excess[j] < 0:
            sent = min(min(excess[i], -excess[j]), min(rest[into], rest[c]))
            rest[into] -= sent
            rest[a] += sent
            rest[c] -= sent
            rest[_at(twin[c])] += sent
            excess[i] -= sent
            excess[j] += sent


@kernel
def _search(start: Shorts, head: Shorts, twin: Shorts, rest: Array, excess: Array) -> Marks:
    """Maximum flow; True for the nodes from which the sink can still be reached."""
    n, now = len(excess), 0
    tree = np.zeros((n, 4), dtype=np.int32)
    active, orphans = np.empty(n + 3, dtype=np.int32), np.empty(n + 3, dtype=np.int32)
    active[:2] = orphans[:2] = 0
    for i in range(n):
        tree[i, PARENT] = NONE
        if excess[i] != 0:
            tree[i, PARENT], tree[i, DISTANCE] = ROOT, 1
            tree[i, FLAGS] = SINK if excess[i] < 0 else 0
            _activate(tree, active, i)
    current = NONE
    while True:
        if current == NONE:
            current = _next_active(tree, active)
            if current == NONE:
                break
        bridge = _grow(current, start, head, twin, rest, tree, active)
        now += 1
        if bridge == NONE:
            current = NONE
            continue
        # The node stays at work and counts as queued while its tree is repaired.
        tree[current, FLAGS] |= QUEUED
        _augment(bridge, head, twin, rest, excess, tree, orphans)
        while orphans[1] > 0:
            _adopt(_take(orphans), now, start, head, twin, rest, tree, active, orphans)
        tree[current, FLAGS] &= SINK
        if tree[current, PARENT] == NONE:
            current = NONE
    sink = np.empty(n, dtype=np.bool_)
    for i in range(n):
        sink[i] = tree[i, PARENT] != NONE and (tree[i, FLAGS] & SINK) == SINK
    return sink


@kernel(forceinline=True)
def _append(ring: Shorts, i: Index) -> None:
    place = ring[0] + ring[1]
    size = len(ring) - 2
    ring[_at(2 + (place if place < size else place - size))] = i
    ring[1] += 1


@kernel(forceinline=True)
def _prepend(ring: Shorts, i: Index) -> None:
    ring[0] = ring[0] - 1 if ring[0] > 0 else len(ring) - 3
    ring[_at(2 + ring[0])] = i
    ring[1] += 1


@kernel(forceinline=True)
def _take(ring: Shorts) -> int:
    i = ring[_at(2 + ring[0])]
    ring[0] = ring[0] + 1 if ring[0] < len(ring) - 3 else 0
    ring[1] -= 1
    return int(i)


@kernel(forceinline=True)
def _activate(tree: Shorts, active: Shorts, i: Index) -> None:
    if not tree[i, FLAGS] & QUEUED:
        tree[i, FLAGS] |= QUEUED
        _append(active, i)


@kernel(forceinline=True)
def _next_active(tree: Shorts, active: Shorts) -> int:
    while active[1] > 0:
        i = _take(active)
        tree[_at(i), FLAGS] &= SINK
        if tree[_at(i), PARENT] != NONE:
            return i
    return NONE


@kernel(forceinline=True)
def _grow(
    current: int,
    start: Shorts,
    head: Shorts,
    twin: Shorts,
    rest: Array,
    tree: Shorts,
    active: Shorts,
) -> int:
    """Takes free neighbours into the node's tree; the first arc from source's to sink's tree."""
    i = _at(current)
    side, known, distance = tree[i, FLAGS] & SINK, tree[i, TIME], tree[i, DISTANCE]
    for a in range(start[i], start[i + 1]):
        back, j = twin[_at(a)], _at(head[_at(a)])
        if (rest[_at(back)] if side else rest[_at(a)]) <= 0:
            continue
        if tree[j, PARENT] == NONE:
            tree[j, FLAGS] = (tree[j, FLAGS] & QUEUED) | side
            _activate(tree, active, j)
        elif (tree[j, FLAGS] & SINK) != side:
            return int(back if side else a)
        elif tree[j, TIME] > known or tree[j, DISTANCE] <= distance:
            continue
        tree[j, PARENT], tree[j, TIME], tree[j, DISTANCE] = back, known, distance + 1
    return NONE


@kernel(forceinline=True)
def _augment(
    bridge: int,
    head: Shorts,
    twin: Shorts,
    rest: Array,
    excess: Array,
    tree: Shorts,
    orphans: Shorts,
) -> None:
    """Sends all that fits from root to root over the bridge; cut-off nodes become orphans."""
    there, back = _at(bridge), _at(twin[_at(bridge)])
    first, second = _at(head[back]), _at(head[there])
    sent, node = rest[there], first
    while tree[node, PARENT] != ROOT:
        a = _at(tree[node, PARENT])
        sent, node = min(sent, rest[_at(twin[a])]), _at(head[a])
    sent, node = min(sent, excess[node]), second
    while tree[node, PARENT] != ROOT:
        a = _at(tree[node, PARENT])
        sent, node = min(sent, rest[a]), _at(head[a])
    sent = min(sent, -excess[node])
    rest[there] -= sent
    rest[back] += sent
    while tree[first, PARENT] != ROOT:
        a = _at(tree[first, PARENT])
        _send(_at(twin[a]), a, first, sent, rest, tree, orphans)
        first = _at(head[a])
    while tree[second, PARENT] != ROOT:
        a = _at(tree[second, PARENT])
        _send(a, _at(twin[a]), second, sent, rest, tree, orphans)
        second = _at(head[a])
    excess[first] -= sent
    excess[second] += sent
    for root in (first, second):
        if excess[root] == 0:
            tree[root, PARENT] = ORPHAN
            _prepend(orphans, root)


@kernel(forceinline=True)
def _send(
    there: Index, back: Index, node: Index, sent: float, rest: Array, tree: Shorts, orphans: Shorts
) -> None:
    """Moves flow over one tree arc; a full one leaves the node below it an orphan."""
    rest[there] -= sent
    rest[back] += sent
    if rest[there] == 0:
        tree[node, PARENT] = ORPHAN
        _prepend(orphans, node)


@kernel(forceinline=True)
def _adopt(
    orphan: int,
    now: int,
    start: Shorts,
    head: Shorts,
    twin: Shorts,
    rest: Array,
    tree: Shorts,
    active: Shorts,
    orphans: Shorts,
) -> None:
    """The nearest rooted neighbour of the same tree becomes the parent, else the node is free."""
    i = _at(orphan)
    side = tree[i, FLAGS] & SINK
    parent, least = NONE, FAR
    for a in range(start[i], start[i + 1]):
        j = _at(head[_at(a)])
        if (rest[_at(a)] if side else rest[_at(twin[_at(a)])]) <= 0:
            continue
        if tree[j, PARENT] == NONE or (tree[j, FLAGS] & SINK) != side:
            continue
        distance = _root_distance(j, now, head, tree)
        if distance < least:
            parent, least = a, distance
    tree[i, PARENT], tree[i, TIME], tree[i, DISTANCE] = parent, now, least + 1
    if parent == NONE:
        _release(orphan, start, head, twin, rest, tree, active, orphans)


@kernel(forceinline=True)
def _root_distance(node: Index, now: Index, head: Shorts, tree: Shorts) -> int:
    """Steps to the root, FAR if an orphan is on the way; notes them for those it passed."""
    steps, above = 0, _at(node)
    while tree[above, TIME] != now:
        a = tree[above, PARENT]
        if a == ORPHAN:
            return FAR
        if a == ROOT:
            tree[above, TIME], tree[above, DISTANCE] = now, 1
            break
        steps += 1
        above = _at(head[_at(a)])
    distance = steps + tree[above, DISTANCE]
    steps, above = distance, _at(node)
    while tree[above, TIME] != now:
        tree[above, TIME], tree[above, DISTANCE] = now, steps
        steps -= 1
        above = _at(head[_at(tree[above, PARENT])])
    return int(distance)


@kernel
def _release(
    orphan: int,
    start: Shorts,
    head: Shorts,
    twin: Shorts,
    rest: Array,
    tree: Shorts,
    active: Shorts,
    orphans: Shorts,
) -> None:
    """A freed node's children become orphans; neighbours that may take it in become active."""
    i = _at(orphan)
    side = tree[i, FLAGS] & SINK
    for a in range(start[i], start[i + 1]):
        j = _at(head[_at(a)])
        above = tree[j, PARENT]
        if above == NONE or (tree[j, FLAGS] & SINK) != side:
            continue
        if (rest[_at(a)] if side else rest[_at(twin[_at(a)])]) > 0:
            _activate(tree, active, j)
        if above >= 0 and head[_at(above)] == orphan:
            tree[j, PARENT] = ORPHAN
            _append(orphans, j)
