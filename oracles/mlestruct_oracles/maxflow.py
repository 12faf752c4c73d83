"""Minimum cuts of undirected graphs with whole-number capacities: PyMaxflow, ortools, or our own.

Capacities and pulls are whole numbers (held as float64) and small enough that the solver's own
arithmetic never rounds, so a cut is exactly minimal; `Backend.largest` says how small. What
rounding to whole numbers costs is the caller's to account for (`qpbo` adds it to its bound).

All back ends return the same cut, the one with the fewest nodes on the sink's side.
PyMaxflow and ortools hold the GIL; PyMaxflow is GPL and ends the process when memory runs out.
The compiled one is Boykov and Kolmogorov's algorithm too (PAMI 2004). It releases the GIL and can
start from the flow of an earlier, similar graph. Up to 2³⁰ edges.
"""

import importlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Shorts = NDArray[np.int32]
Index = int | np.integer[Any]

log = logging.getLogger("mlestruct")


@dataclass(frozen=True)
class Backend:
    """A max-flow solver: `cut(ends, capacity, pull, flow)` → True for nodes on the sink's side.

    `largest(arcs)` is the largest capacity it adds without rounding in a graph with so many arcs,
    `together` the number of flow nodes up to which solving many small models as one graph pays.
    Where it `resumes`, it starts from `flow` (along each edge) and leaves the new flow there.
    """

    name: str
    cut: Callable[[Ints, Floats, Floats, Floats], Bools]
    largest: Callable[[int], float]
    together: int
    resumes: bool = False


def min_cut(
    ends: Ints, capacity: Floats, pull: Floats, backend: Backend, flow: Floats | None = None
) -> Bools:
    """The side of each node in the cut least in Σ capacity of cut edges + Σ |pull| of denied nodes.

    A node with positive pull wants the sink's side (True), with negative pull the source's.
    `flow` along the edges, whole numbers, is where a resuming back end starts; it is overwritten.
    """
    _gate(ends, capacity, pull, backend)
    if flow is None:
        flow = np.zeros(len(capacity))
    _gate_numbers("flow", flow, -(2.0**53), 2.0**53, backend)
    if not len(pull):
        return np.zeros(0, dtype=np.bool_)
    return backend.cut(ends, capacity, pull, flow)


def _gate(ends: Ints, capacity: Floats, pull: Floats, backend: Backend) -> None:
    # PyMaxflow loops for ever on NaN and infinity and answers wrongly on negative capacities.
    largest = backend.largest(len(capacity) + len(pull))
    _gate_numbers("capacity", capacity, 0.0, largest, backend)
    _gate_numbers("pull", pull, -largest, largest, backend)
    if ends.shape != (len(capacity), 2):
        raise ValueError(f"edges have shape {ends.shape}, wanted {(len(capacity), 2)}")
    if len(ends) and not (ends.min() >= 0 and ends.max() < len(pull)):
        raise ValueError(f"edges must join nodes 0 to {len(pull) - 1}")


def _gate_numbers(name: str, values: Floats, least: float, most: float, backend: Backend) -> None:
    wrong = ~((values >= least) & (values <= most) & (values == np.rint(values)))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"{name}[{place}] = {values[place]} must be a whole number between {least} and {most}"
            f" for {backend.name}"
        )


def resolve(backend: "str | Backend | None") -> Backend:
    """The back end of that name; None takes PyMaxflow where it is installed, else ortools."""
    if isinstance(backend, Backend):
        return backend
    if backend is None:
        return _default()
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r} is not one of {sorted(BACKENDS)}")
    return BACKENDS[backend]


@cache
def _default() -> Backend:
    # Cached, so that the take-over is said once.
    try:
        _pymaxflow()
    except ImportError as missing:
        log.warning("PyMaxflow is not available (%s): ortools takes over", missing)
        return BACKENDS["ortools"]
    return BACKENDS["pymaxflow"]


def _pymaxflow() -> ModuleType:
    module = importlib.import_module("maxflow")
    # The package `maxflow` on PyPI is another one and overwrites PyMaxflow's module.
    if not hasattr(module, "GraphFloat"):
        raise ImportError("the module `maxflow` is not PyMaxflow's")
    return module


def _cut_pymaxflow(ends: Ints, capacity: Floats, pull: Floats, flow: Floats) -> Bools:
    graph: Any = _pymaxflow().GraphFloat(len(pull), len(capacity))
    nodes = np.arange(len(pull))
    graph.add_nodes(len(pull))
    if len(capacity):
        graph.add_edges(ends[:, 0], ends[:, 1], capacity, capacity)
    graph.add_grid_tedges(nodes, np.maximum(-pull, 0.0), np.maximum(pull, 0.0))
    graph.maxflow()
    side: Bools = graph.get_grid_segments(nodes)
    return side


def _cut_ortools(ends: Ints, capacity: Floats, pull: Floats, flow: Floats) -> Bools:
    # A plain import here, not at the top: ortools and highspy cannot live in one process.
    solver: Any = importlib.import_module("ortools.graph.python.max_flow").SimpleMaxFlow()
    source, sink = len(pull), len(pull) + 1
    nodes = np.arange(len(pull))
    tails = np.concatenate([ends[:, 0], ends[:, 1], np.where(pull < 0, source, nodes)])
    heads = np.concatenate([ends[:, 1], ends[:, 0], np.where(pull < 0, nodes, sink)])
    amounts = np.concatenate([capacity, capacity, np.abs(pull)]).astype(np.int64)
    solver.add_arcs_with_capacity(tails, heads, amounts)
    status = solver.solve(source, sink)
    if status != solver.OPTIMAL:
        raise RuntimeError(f"ortools ended with {status} on {len(pull)} nodes")
    side = np.zeros(len(pull) + 2, dtype=np.bool_)
    side[np.asarray(solver.get_sink_side_min_cut(), dtype=np.int64)] = True
    return side[: len(pull)]


def _largest_double(arcs: int) -> float:
    # An arc's residual reaches twice its capacity, which must stay within a double's 53 bits.
    return 2.0**52


def _largest_int64(arcs: int) -> float:
    # All arcs together must stay below 2⁶³, undirected ones count twice.
    return min(2.0**52, 2.0 ** (61 - math.ceil(math.log2(max(arcs, 1)))))


# --- the compiled back end: Boykov and Kolmogorov's two search trees ------------------------------
#
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


@njit(cache=True, nogil=True)
def _cut_compiled(ends: Ints, capacity: Floats, pull: Floats, flow: Floats) -> Bools:
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _push_short(start: Shorts, head: Shorts, twin: Shorts, rest: Floats, excess: Floats) -> None:
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


@njit(cache=True, nogil=True)
def _push_through(
    k: int, a: int, start: Shorts, head: Shorts, twin: Shorts, rest: Floats, excess: Floats
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


@njit(cache=True, nogil=True)
def _search(start: Shorts, head: Shorts, twin: Shorts, rest: Floats, excess: Floats) -> Bools:
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


@njit(cache=True, nogil=True, forceinline=True)
def _append(ring: Shorts, i: Index) -> None:
    place = ring[0] + ring[1]
    size = len(ring) - 2
    ring[_at(2 + (place if place < size else place - size))] = i
    ring[1] += 1


@njit(cache=True, nogil=True, forceinline=True)
def _prepend(ring: Shorts, i: Index) -> None:
    ring[0] = ring[0] - 1 if ring[0] > 0 else len(ring) - 3
    ring[_at(2 + ring[0])] = i
    ring[1] += 1


@njit(cache=True, nogil=True, forceinline=True)
def _take(ring: Shorts) -> int:
    i = ring[_at(2 + ring[0])]
    ring[0] = ring[0] + 1 if ring[0] < len(ring) - 3 else 0
    ring[1] -= 1
    return int(i)


@njit(cache=True, nogil=True, forceinline=True)
def _activate(tree: Shorts, active: Shorts, i: Index) -> None:
    if not tree[i, FLAGS] & QUEUED:
        tree[i, FLAGS] |= QUEUED
        _append(active, i)


@njit(cache=True, nogil=True, forceinline=True)
def _next_active(tree: Shorts, active: Shorts) -> int:
    while active[1] > 0:
        i = _take(active)
        tree[_at(i), FLAGS] &= SINK
        if tree[_at(i), PARENT] != NONE:
            return i
    return NONE


@njit(cache=True, nogil=True, forceinline=True)
def _grow(
    current: int,
    start: Shorts,
    head: Shorts,
    twin: Shorts,
    rest: Floats,
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


@njit(cache=True, nogil=True, forceinline=True)
def _augment(
    bridge: int,
    head: Shorts,
    twin: Shorts,
    rest: Floats,
    excess: Floats,
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


@njit(cache=True, nogil=True, forceinline=True)
def _send(
    there: Index, back: Index, node: Index, sent: float, rest: Floats, tree: Shorts, orphans: Shorts
) -> None:
    """Moves flow over one tree arc; a full one leaves the node below it an orphan."""
    rest[there] -= sent
    rest[back] += sent
    if rest[there] == 0:
        tree[node, PARENT] = ORPHAN
        _prepend(orphans, node)


@njit(cache=True, nogil=True, forceinline=True)
def _adopt(
    orphan: int,
    now: int,
    start: Shorts,
    head: Shorts,
    twin: Shorts,
    rest: Floats,
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


@njit(cache=True, nogil=True, forceinline=True)
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


@njit(cache=True, nogil=True)
def _release(
    orphan: int,
    start: Shorts,
    head: Shorts,
    twin: Shorts,
    rest: Floats,
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


BACKENDS = {
    "pymaxflow": Backend("pymaxflow", _cut_pymaxflow, _largest_double, together=1 << 12),
    "ortools": Backend("ortools", _cut_ortools, _largest_int64, together=1 << 12),
    "compiled": Backend("compiled", _cut_compiled, _largest_double, 1 << 12, resumes=True),
}
