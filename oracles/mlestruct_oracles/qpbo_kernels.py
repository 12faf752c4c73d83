"""Compiled steps of QPBO: penalties, signed form, whole numbers, gauge, flow graph and answer.

Every kernel takes a batch of models over the same edges; `qpbo` says what the words mean.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
Bools = NDArray[np.bool_]

TINIEST = 5e-324


@njit(cache=True, nogil=True)
def scan(scores: Floats, largest: float) -> tuple[int, bool]:
    strange = 0
    for k in range(len(scores)):  # without a way out, which would keep it from being vectorised
        strange += not abs(scores[k]) <= largest
    for k in range(len(scores) if strange else 0):
        if not (abs(scores[k]) <= largest or scores[k] == -np.inf):
            return k, True
    return -1, strange > 0


@njit(cache=True, nogil=True)
def wrong_edge(edges: Ints, n: int) -> int:
    """The first that does not join two of n nodes, or −1."""
    for e in range(len(edges)):
        i, j = edges[e]
        if i < 0 or j < 0 or i >= n or j >= n or i == j:
            return e
    return -1


# --- forbidden states and configurations --------------------------------------------------------


@njit(cache=True, nogil=True)
def soften(edges: Ints, unary: Floats, pair: Floats) -> tuple[int, int, int]:
    n, m = unary.shape[1], len(edges)
    reach = np.empty(n)
    for k in range(len(unary)):
        for e in range(m):
            if not _lift_rows(pair[k, e], unary[k, edges[e, 0]], unary[k, edges[e, 1]]):
                return k, -1, e
        total = 0.0
        for i in range(n):
            reach[i] = _range(unary[k, i])
            if reach[i] < 0:
                return k, i, -1
            total += reach[i]
        for e in range(m):
            total += _range(pair[k, e].ravel())
        cost = _above(2 * total)
        for e in range(m):
            spread = _range(pair[k, e].ravel()) + _fill(pair[k, e].ravel(), cost)
            reach[edges[e, 0]] += spread
            reach[edges[e, 1]] += spread
        for i in range(n):
            _fill(unary[k, i], _above(2 * reach[i]))
    return -1, -1, -1


@njit(cache=True, nogil=True)
def _lift_rows(table: Floats, first: Floats, second: Floats) -> bool:
    """Moves a wholly forbidden row or column to its node; False if the whole table is forbidden."""
    for turn in range(2):
        view = table if turn == 0 else table.T
        node = first if turn == 0 else second
        dead0 = view[0, 0] == -np.inf and view[0, 1] == -np.inf
        dead1 = view[1, 0] == -np.inf and view[1, 1] == -np.inf
        if dead0 and dead1:
            return False
        if dead0 or dead1:
            dead = 0 if dead0 else 1
            node[dead] = -np.inf
            view[dead, 0] = view[1 - dead, 0]
            view[dead, 1] = view[1 - dead, 1]
    return True


@njit(cache=True, nogil=True)
def _range(table: Floats) -> float:
    """Largest minus least finite score, −1 if there is none."""
    low, high = np.inf, -np.inf
    for score in table:
        if score > -np.inf:
            low, high = min(low, score), max(high, score)
    return high - low if low <= high else -1.0


@njit(cache=True, nogil=True)
def _fill(table: Floats, cost: float) -> float:
    """Forbidden entries cost that much; returns what it added to the table's range."""
    low, used = np.inf, 0.0
    for score in table:
        if score > -np.inf:
            low = min(low, score)
    for k in range(len(table)):
        if table[k] == -np.inf:
            table[k], used = low - cost, cost
    return used


@njit(cache=True, nogil=True)
def _above(bound: float) -> float:
    """A power of two well above the bound: it adds without rounding to scores on a coarse grid."""
    return 2.0 ** (np.ceil(np.log2(bound)) + 1) if bound > 0 else 1.0


# --- the signed form ----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded a + b, and what rounding took from it, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, abs((a - (total - part)) + (b - part))


@njit(cache=True, nogil=True)
def _differences(
    pair: Floats, coupling: Floats, down: Floats, right: Floats, slips: Floats
) -> None:
    """Couplings, what edges add to their ends' fields, and rounding errors. Without branches."""
    for e in range(len(pair)):
        down0, slip0 = _two_sum(pair[e, 1, 0], -pair[e, 0, 0])
        down1, slip1 = _two_sum(pair[e, 1, 1], -pair[e, 0, 1])
        right0, slip2 = _two_sum(pair[e, 0, 1], -pair[e, 0, 0])
        right1, slip3 = _two_sum(pair[e, 1, 1], -pair[e, 1, 0])
        coupling[e], slip4 = _two_sum(right1, -right0)
        down[e], slip5 = _two_sum(down0, down1)
        right[e], slip6 = _two_sum(right0, right1)
        slips[e] = slip0 + slip1 + 2 * (slip2 + slip3) + slip4 + slip5 + slip6


@njit(cache=True, nogil=True)
def signed_form(edges: Ints, unary: Floats, pair: Floats) -> tuple[Floats, Floats, Floats]:
    """The field (M, n), coupling (M, m), and the sum (M,) of all rounding errors made in them."""
    models, n, m = len(unary), unary.shape[1], len(edges)
    field, coupling, error = np.empty((models, n)), np.empty((models, m)), np.zeros(models)
    down, right, slips = np.empty(m), np.empty(m), np.empty(m)
    for k in range(models):
        lost = 0.0
        for i in range(n):
            field[k, i], slip = _two_sum(2 * unary[k, i, 1], -2 * unary[k, i, 0])
            lost += slip
        _differences(pair[k], coupling[k], down, right, slips)
        for e in range(m):
            i, j = edges[e]
            field[k, i], slip0 = _two_sum(field[k, i], down[e])
            field[k, j], slip1 = _two_sum(field[k, j], right[e])
            lost += slips[e] + slip0 + slip1
        error[k] = lost
    return field, coupling, error


@njit(cache=True, nogil=True)
def whole(
    field: Floats, coupling: Floats, error: Floats, largest: float
) -> tuple[Floats, Floats, Floats, Ints]:
    """Field and coupling × 2^shift as whole numbers up to `largest`; what all rounding may cost."""
    slack, shift = np.empty(len(field)), np.empty(len(field), dtype=np.int64)
    whole_field, whole_coupling = np.empty_like(field), np.empty_like(coupling)
    for k in range(len(field)):
        size = max(_most(field[k]), _most(coupling[k]))
        shift[k] = math.frexp(largest)[1] - 1 - math.frexp(size)[1]
        lost = _round(field[k], shift[k], whole_field[k])
        lost += _round(coupling[k], shift[k], whole_coupling[k])
        # Any two s differ by at most 1; half, because the form is twice the score. The factor
        # covers the rounding of these sums themselves.
        slack[k] = 0.5 * (_scaled(lost, -shift[k]) + error[k]) * (1 + 1e-9)
        if lost > 0:
            slack[k] = max(slack[k], TINIEST)
    return whole_field, whole_coupling, slack, shift


@njit(cache=True, nogil=True)
def _most(values: Floats) -> float:
    most = 0.0
    for value in values:
        most = max(most, abs(value))
    return most


@njit(cache=True, nogil=True)
def _scaled(value: float, shift: int) -> float:
    """The value × 2^shift, where 2^shift itself may be out of range."""
    half = shift // 2
    return value * 2.0**half * 2.0 ** (shift - half)


@njit(cache=True, nogil=True)
def _round(values: Floats, shift: int, out: Floats) -> float:
    """Rounds values × 2^shift; returns the sum of what that changed."""
    half, lost = shift // 2, 0.0
    first, second = 2.0**half, 2.0 ** (shift - half)
    for k in range(len(values)):
        scaled = values[k] * first * second
        out[k] = np.rint(scaled)
        lost += abs(scaled - out[k])
        if scaled == 0 and values[k] != 0:  # underflow
            lost += TINIEST
    return lost


# --- the cut ------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def gauge(edges: Ints, coupling: Floats, active: Bools) -> tuple[Signs, Bools]:
    """The flip (M, n) ±1 and balanced (M, n): whether flip makes its component all attractive.

    Components are those of active nodes under edges with coupling ≠ 0. Union-find with parity.
    """
    models, n = active.shape
    flip, balanced = np.ones((models, n), dtype=np.int8), np.ones((models, n), dtype=np.bool_)
    parent, parity = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int8)
    good = np.empty(n, dtype=np.bool_)
    for k in range(models):
        if len(edges) == 0 or coupling[k].min() >= 0:
            continue
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


@njit(cache=True, nogil=True)
def _find(i: int, parent: Ints, parity: Signs) -> int:
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


@njit(cache=True, nogil=True)
def _unite(i: int, j: int, sign: int, parent: Ints, parity: Signs, good: Bools) -> None:
    a, b = _find(i, parent, parity), _find(j, parent, parity)
    relation = sign * (parity[i] if i != a else 1) * (parity[j] if j != b else 1)
    if a == b:
        good[a] = good[a] and relation == 1
        return
    # The lower index stays root, so that a component's first node is never flipped.
    low, high = min(a, b), max(a, b)
    parent[high], parity[high] = low, relation
    good[low] = good[low] and good[high]


@njit(cache=True, nogil=True)
def flow_graph(
    edges: Ints, field: Floats, coupling: Floats, flip: Signs, balanced: Bools
) -> tuple[Ints, Ints, Floats, Floats]:
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


@njit(cache=True, nogil=True)
def resume(
    edges: Ints,
    coupling: Floats,
    shift: Ints,
    flip: Signs,
    balanced: Bools,
    old_flow: Floats,
    layout: Signs,
    old_shift: Ints,
    flow: Floats,
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


@njit(cache=True, nogil=True)
def keep(flow: Floats, layout: Signs, kept: Floats) -> None:
    arc = 0
    for k in range(len(layout)):
        for e in range(layout.shape[1]):
            for copy in range(_arcs(layout[k, e])):
                kept[k, e, copy] = flow[arc]
                arc += 1


@njit(cache=True, nogil=True)
def _arcs(kind: int) -> int:
    return 0 if kind == 0 else 2 if kind <= 2 else 1


@njit(cache=True, nogil=True)
def read(first: Ints, sink: Bools, flip: Signs, balanced: Bools) -> Signs:
    side = np.zeros(first.shape, dtype=np.int8)
    for k in range(first.shape[0]):
        for i in range(first.shape[1]):
            at = first[k, i]
            if balanced[k, i]:
                side[k, i] = flip[k, i] if sink[at] else -flip[k, i]
            elif sink[at] != sink[at + 1]:
                side[k, i] = 1 if sink[at] else -1
    return side


# --- the answer ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def complete(
    edges: Ints, side: Signs, coupling: Floats, unary: Floats, pair: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
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


@njit(cache=True, nogil=True)
def _add(term: float, sums: tuple[float, float, float]) -> tuple[float, float, float]:
    """Adds to a total with a second word for what rounding took, and that word's size."""
    total, lost, slips = sums
    fresh = total + term
    part = fresh - total
    slip = (total - (fresh - part)) + (term - part)
    slip = slip if slip == slip else 0.0  # −inf makes it NaN
    return fresh, lost + slip, slips + abs(slip)
