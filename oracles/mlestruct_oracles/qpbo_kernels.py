"""Compiled steps of QPBO from signed form on: gauge, flow graph and answer.

Every kernel takes a batch of models over the same edges; `qpbo` says what the words mean.
"""

import numpy as np

from mlestruct.kernels import kernel
from mlestruct.structures.base import Array, Flags, Ints, Marks


def gauge(edges: Ints, coupling: Array, active: Marks) -> tuple[Flags, Marks]:
    """The flip (M, n) ±1 and balanced (M, n): whether flip makes its component all attractive.

    Components are those of active nodes under edges with coupling ≠ 0.
    """
    if coupling.min(initial=0.0) >= 0:
        return np.ones(active.shape, dtype=np.int8), np.ones(active.shape, dtype=np.bool_)
    return _gauge(edges, coupling, active)


@kernel
def _gauge(edges: Ints, coupling: Array, active: Marks) -> tuple[Flags, Marks]:
    """By union-find with parity."""
    models, n = active.shape
    flip, balanced = np.ones((models, n), dtype=np.int8), np.ones((models, n), dtype=np.bool_)
    parent, parity = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int8)
    good = np.empty(n, dtype=np.bool_)
    for k in range(models):
        for i in range(n):
            parent[i], parity[i], good[i] = i, 1, True
        for e in range(len(edges)):
            i, j = edges[e]
            if coupling[k, e] == 0 or not (active[k, i] and active[k, j]):
                continue
            sign = 1 if coupling[k, e] > 0 else -1
            _unite(i, j, sign, parent, parity, good)
        for i in range(n):
            root = _find(i, parent, parity)
            balanced[k, i] = good[root]
            flip[k, i] = parity[i] if root != i else 1
    return flip, balanced


@kernel
def _find(i: int, parent: Ints, parity: Flags) -> int:
    """The root of i, after which i hangs right below it and parity[i] is relative to it."""
    root, sign = i, 1
    while parent[root] != root:
        sign *= parity[root]
        root = parent[root]
    while parent[i] != root and i != root:
        above, own = parent[i], parity[i]
        parent[i], parity[i] = root, sign
        sign *= own
        i = above
    return root


@kernel
def _unite(i: int, j: int, sign: int, parent: Ints, parity: Flags, good: Marks) -> None:
    a, b = _find(i, parent, parity), _find(j, parent, parity)
    relation = sign * (parity[i] if i != a else 1) * (parity[j] if j != b else 1)
    if a == b:
        good[a] = good[a] and relation == 1
        return
    # The lower index stays root, so that a component's first node is never flipped.
    low, high = min(a, b), max(a, b)
    parent[high], parity[high] = low, relation
    good[low] = good[low] and good[high]


@kernel
def flow_graph(
    edges: Ints, field: Array, coupling: Array, flip: Flags, balanced: Marks
) -> tuple[Ints, Ints, Array, Array]:
    """One undirected graph for all models: one flow node per balanced node, two per other."""
    models, n = field.shape
    first, nodes, arcs = np.empty((models, n), dtype=np.int64), 0, 0
    for k in range(models):
        for i in range(n):
            first[k, i] = nodes
            nodes += 1 if balanced[k, i] else 2
        for e in range(len(edges)):
            if coupling[k, e] != 0:
                arcs += 1 if balanced[k, edges[e, 0]] else 2
    ends, capacity, pull = np.empty((arcs, 2), dtype=np.int64), np.empty(arcs), np.empty(nodes)
    arc = 0
    for k in range(models):
        for i in range(n):
            at = first[k, i]
            pull[at] = field[k, i] * flip[k, i] if balanced[k, i] else field[k, i]
            if not balanced[k, i]:
                pull[at + 1] = -field[k, i]
        for e in range(len(edges)):
            if coupling[k, e] == 0:
                continue
            i, j = first[k, edges[e, 0]], first[k, edges[e, 1]]
            copies = 1 if balanced[k, edges[e, 0]] else 2
            cross = 1 if copies == 2 and coupling[k, e] < 0 else 0
            for copy in range(copies):
                ends[arc, 0], ends[arc, 1] = i + copy, j + (copy ^ cross)
                capacity[arc] = abs(coupling[k, e])
                arc += 1
    return first, ends, capacity, pull


@kernel
def resume(
    edges: Ints,
    coupling: Array,
    shift: Ints,
    flip: Flags,
    balanced: Marks,
    old_flow: Array,
    layout: Flags,
    old_shift: Ints,
    flow: Array,
) -> None:
    """Old flows in the new unit, in the order of arcs; none where an edge's arcs are others now.

    Layout is 0 for no arc, 1 or 2 for two arcs (attractive, repulsive), 3 to 6 for one (and
    whether its first node is flipped). Layout and shift become the new ones.
    """
    arc = 0
    for k in range(len(coupling)):
        half = (shift[k] - old_shift[k]) // 2
        first, second = 2.0**half, 2.0 ** (shift[k] - old_shift[k] - half)
        for e in range(len(edges)):
            kind = 0
            if coupling[k, e] != 0:
                single = balanced[k, edges[e, 0]]
                kind = (4 + flip[k, edges[e, 0]] if single else 1) + (coupling[k, e] < 0)
            for copy in range(_arcs(kind)):
                if kind == layout[k, e]:
                    sent = np.rint(old_flow[k, e, copy] * first * second)
                    flow[arc] = min(max(sent, -abs(coupling[k, e])), abs(coupling[k, e]))
                arc += 1
            layout[k, e] = kind
        old_shift[k] = shift[k]


@kernel
def keep(flow: Array, layout: Flags, kept: Array) -> None:
    arc = 0
    for k in range(len(layout)):
        for e in range(layout.shape[1]):
            for copy in range(_arcs(layout[k, e])):
                kept[k, e, copy] = flow[arc]
                arc += 1


@kernel
def _arcs(kind: int) -> int:
    return 0 if kind == 0 else 2 if kind <= 2 else 1


def read(first: Ints, sink: Marks, flip: Flags, balanced: Marks) -> Flags:
    """2s of every node: where its flow nodes are, both on different sides or s is 0."""
    sides = 2 * sink.view(np.int8) - 1
    own: Flags = sides[first]
    if balanced.all():
        return own * flip
    other = sides[np.minimum(first + 1, len(sides) - 1)]
    return np.where(balanced, own * flip, np.where(other != own, own, np.int8(0)))


# --- the answer ---------------------------------------------------------------------------------


@kernel
def complete(
    edges: Ints, side: Flags, coupling: Array, unary: Array, pair: Array
) -> tuple[Array, Array, Array, Array]:
    """Node and edge tables of half-integral sides, their score, and its rounding error at most.

    Products where an end is integral; else ½ on the diagonal if coupling ≥ 0, on the other if not.
    The score is −inf where a forbidden entry is used.
    """
    models, n, m = len(side), side.shape[1], len(edges)
    node, edge = np.empty((models, n, 2)), np.zeros((models, m, 2, 2))
    score, doubt = np.zeros(models), np.zeros(models)
    for k in range(models):
        sums = 0.0, 0.0, 0.0
        for i in range(n):
            node[k, i, 1] = 0.5 + 0.5 * side[k, i]
            node[k, i, 0] = 1.0 - node[k, i, 1]
            for a in range(side[k, i] > 0, 1 + (side[k, i] >= 0)):
                sums = _add(node[k, i, a] * unary[k, i, a], sums)
        for e in range(m):
            i, j = edges[e]
            first, second = side[k, i], side[k, j]
            if first == 0 and second == 0:
                other = 0 if coupling[k, e] >= 0 else 1
                edge[k, e, 0, other] = edge[k, e, 1, 1 - other] = 0.5
                sums = _add(0.5 * pair[k, e, 0, other], sums)
                sums = _add(0.5 * pair[k, e, 1, 1 - other], sums)
                continue
            for a in range(first > 0, 1 + (first >= 0)):
                for b in range(second > 0, 1 + (second >= 0)):
                    edge[k, e, a, b] = node[k, i, a] * node[k, j, b]
                    sums = _add(edge[k, e, a, b] * pair[k, e, a, b], sums)
        score[k] = sums[0] + sums[1]
        doubt[k] = sums[2] * 1.2e-16 * (2 * n + 4 * m + 2)
    return node, edge, score, doubt


@kernel
def _add(term: float, sums: tuple[float, float, float]) -> tuple[float, float, float]:
    """Adds to a total with a second word for what rounding took, and that word's size."""
    total, lost, slips = sums
    fresh = total + term
    part = fresh - total
    slip = (total - (fresh - part)) + (term - part)
    slip = slip if slip == slip else 0.0  # −inf makes it NaN
    return fresh, lost + slip, slips + abs(slip)
