"""Binary pairwise models: the best vertex of the local polytope (QPBO), or graph cut, in batches.

With s = q − ½ in [−½, ½] for q = P(state 1), and every edge's table at its best for the q's, twice
the relaxed score is a constant plus

    Σ_i field_i s_i − Σ_e |coupling_e| |s_i − sign(coupling_e) s_j|,
    coupling = p00 + p11 − p01 − p10,
    field_i = 2(u1 − u0) + Σ_e (sum of row 1 − sum of row 0 of e's table, seen from i).

That is a minimum cut wherever flipping some nodes makes all couplings of a connected component
positive (attractive models flip nothing). Any other component is doubled: s and −s become two
nodes, and s = (z⁺ − z⁻)/2 of the cut is an optimal point with s in {−½, 0, ½}.

Whole numbers: field and coupling are scaled per model by a power of two and rounded, so the flow
itself is exact; what rounding may cost is summed and added to `upper`. Whole-number scores lose
nothing. Cost: O(M (n + m)) and one max-flow on n to 2n nodes a model, small models sharing a graph.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import Infeasible
from mlestruct_oracles.maxflow import Backend, min_cut, resolve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
Bools = NDArray[np.bool_]

LARGEST = 1e280  # larger scores could overflow once added up and penalised
TINIEST = 5e-324


class Flows:
    """Where the last solve of a batch ended, for the next to start from; no answer depends on it.

    Kept by the back end "compiled" alone. 17 bytes an edge and model.
    """

    def __init__(self, models: int, edges: int) -> None:
        self.flow = np.zeros((models, edges, 2))
        self.layout = np.zeros((models, edges), dtype=np.int8)
        self.shift = np.zeros(models, dtype=np.int64)

    def part(self, which: slice) -> "Flows":
        """The flows of some of the models, the same memory."""
        part = Flows(0, 0)
        part.flow, part.layout = self.flow[which], self.layout[which]
        part.shift = self.shift[which]
        return part


class Relaxed(NamedTuple):
    """Vertices, their tables in {0, ½, 1}, and upper ≥ the maximum ≥ the vertices' scores."""

    node: Floats
    edge: Floats
    upper: Floats


def qpbo(
    edges: ArrayLike,
    unary: ArrayLike,
    pair: ArrayLike,
    backend: str | Backend | None = None,
    flows: Flows | None = None,
) -> Relaxed:
    """A vertex of the local polytope with the largest score, for each model of a batch.

    edges (m, 2) are shared, unary is (M, n, 2), pair (M, m, 2, 2). A score of −inf forbids its
    entry exactly; where no point of the polytope avoids them all, Infeasible (a point of halves
    may avoid them where no labelling does). Forbidden pairs widen `upper`, forbidden states do not.
    Ties on a component that can be labelled at all are labelled; ½ is left only on components with
    a frustrated cycle. Given the flows of the same batch's last solve, the back end is by default
    the one that uses and updates them.
    """
    model = _Models(*_gate(edges, unary, pair))
    return _solve(model, *_means(model, backend, flows))


def graph_cut(
    edges: ArrayLike,
    unary: ArrayLike,
    pair: ArrayLike,
    backend: str | Backend | None = None,
    flows: Flows | None = None,
) -> Relaxed:
    """A labelling with the largest score, for each model, all of whose edges must be attractive.

    ValueError names the first example and edge with p00 + p11 < p01 + p10. A shortfall of rounding
    size passes, and is accounted for in `upper`.
    """
    model = _Models(*_gate(edges, unary, pair))
    short = model.coupling < -8 * np.finfo(float).eps * np.abs(model.finite_pair).sum(axis=(2, 3))
    if short.any():
        example, edge = np.argwhere(short)[0]
        raise ValueError(
            f"example {example}, edge {edge} ({_ends(model.edges, edge)}) is not submodular: "
            f"p00 + p11 < p01 + p10 for {model.pair[example, edge].tolist()}"
        )
    model.drop_repulsion()
    return _solve(model, *_means(model, backend, flows))


def submodular(pair: ArrayLike) -> Bools:
    """Which tables (…, 2, 2) graph cut accepts exactly: p00 + p11 ≥ p01 + p10."""
    table = np.asarray(pair, dtype=np.float64)
    return np.asarray(table[..., 0, 0] + table[..., 1, 1] >= table[..., 0, 1] + table[..., 1, 0])


class _Models:
    """A batch at the gate: original scores, finite scores with the same optima, signed form."""

    def __init__(self, edges: Ints, unary: Floats, pair: Floats, forbidden: bool) -> None:
        self.edges, self.unary, self.pair = edges, unary, pair
        self.finite_unary, self.finite_pair = unary, pair
        if forbidden:
            self.finite_unary, self.finite_pair = _penalise(edges, unary, pair)
        self.field, self.coupling, self.error = _signed_form(
            edges, self.finite_unary, self.finite_pair
        )

    def drop_repulsion(self) -> None:
        """Takes couplings below zero for zero and books them as error."""
        self.error = self.error + np.maximum(-self.coupling, 0.0).sum(axis=1)
        self.coupling = np.maximum(self.coupling, 0.0)


def _means(
    model: _Models, backend: str | Backend | None, flows: Flows | None
) -> tuple[Backend, Flows | None]:
    if flows is None:
        return resolve(backend), None
    if flows.layout.shape != model.coupling.shape:
        raise ValueError(
            f"flows are of {flows.layout.shape} (models, edges), wanted {model.coupling.shape}"
        )
    solver = resolve("compiled" if backend is None else backend)
    return solver, flows if solver.resumes else None


# --- the gate ------------------------------------------------------------------------------------


def _gate(edges: ArrayLike, unary: ArrayLike, pair: ArrayLike) -> tuple[Ints, Floats, Floats, bool]:
    # Writeable, though nothing is written: Numba compiles every kernel again for read-only arrays.
    nodes = np.require(unary, np.float64, ["C", "W"])
    tables = np.require(pair, np.float64, ["C", "W"])
    if nodes.ndim != 3 or nodes.shape[2] != 2:
        raise ValueError(f"unary has shape {nodes.shape}, wanted (models, nodes, 2)")
    ends = _gate_edges(edges, nodes.shape[1])
    wanted = (len(nodes), len(ends), 2, 2)
    if tables.shape != wanted:
        raise ValueError(f"pair has shape {tables.shape}, wanted {wanted}")
    forbidden = _gate_scores("unary", nodes)
    return ends, nodes, tables, _gate_scores("pair", tables) or forbidden


def _gate_edges(edges: ArrayLike, n: int) -> Ints:
    ends = np.asarray(edges)
    if ends.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or not np.issubdtype(ends.dtype, np.integer):
        raise ValueError(
            f"edges are {ends.dtype} of shape {ends.shape}, wanted integers (edges, 2)"
        )
    ends = np.require(ends, np.int64, ["C", "W"])
    first, second = ends[:, 0], ends[:, 1]
    wrong = (first < 0) | (second < 0) | (first >= n) | (second >= n) | (first == second)
    if wrong.any():
        edge = int(np.argmax(wrong))
        raise ValueError(
            f"edge {edge} ({_ends(ends, edge)}) must join two of the nodes 0 to {n - 1}"
        )
    return ends


def _gate_scores(name: str, scores: Floats) -> bool:
    """Whether some score is −inf; NaN, +inf and what would overflow raise with their place."""
    place, forbidden = _scan(scores.ravel(), LARGEST)
    if place >= 0:
        where = ", ".join(str(k) for k in np.unravel_index(place, scores.shape))
        raise ValueError(
            f"{name}[{where}] = {scores.flat[place]}: scores are at most {LARGEST:g} in size, or"
            " −inf where forbidden"
        )
    return bool(forbidden)


def _ends(edges: Ints, edge: int) -> str:
    return "–".join(str(end) for end in edges[edge])


@njit(cache=True, nogil=True)
def _scan(scores: Floats, largest: float) -> tuple[int, bool]:
    forbidden = False
    for k in range(len(scores)):
        if not abs(scores[k]) <= largest:
            if scores[k] != -np.inf:
                return k, forbidden
            forbidden = True
    return -1, forbidden


# --- forbidden states and configurations ---------------------------------------------------------


def _penalise(edges: Ints, unary: Floats, pair: Floats) -> tuple[Floats, Floats]:
    """Finite scores whose optima avoid every −inf wherever a point of the polytope can.

    A vertex that uses a forbidden entry puts at least ½ on it. So an entry costs, below the least
    finite one of its table: on an edge more than twice the range of all the model's finite scores;
    at a node more than twice what its own and its edges' tables can give (penalties included),
    which no neighbour outweighs. The second is local, so clamping nodes costs no precision.
    """
    finite_unary, finite_pair = unary.copy(), pair.copy()
    model, node, edge = _soften(edges, finite_unary, finite_pair)
    if node >= 0:
        raise Infeasible(f"example {model}: both states of node {node} are forbidden")
    if edge >= 0:
        raise Infeasible(f"example {model}: all of edge {edge} ({_ends(edges, edge)}) is forbidden")
    return finite_unary, finite_pair


@njit(cache=True, nogil=True)
def _soften(edges: Ints, unary: Floats, pair: Floats) -> tuple[int, int, int]:
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


# --- the signed form -----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded a + b, and what rounding took from it, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, abs((a - (total - part)) + (b - part))


@njit(cache=True, nogil=True)
def _signed_form(edges: Ints, unary: Floats, pair: Floats) -> tuple[Floats, Floats, Floats]:
    """The field (M, n), coupling (M, m), and the sum (M,) of all rounding errors made in them."""
    models, n, m = len(unary), unary.shape[1], len(edges)
    field, coupling, error = np.empty((models, n)), np.empty((models, m)), np.zeros(models)
    for k in range(models):
        lost = 0.0
        for i in range(n):
            field[k, i], slip = _two_sum(2 * unary[k, i, 1], -2 * unary[k, i, 0])
            lost += slip
        for e in range(m):
            i, j = edges[e]
            table = pair[k, e]
            down0, slip0 = _two_sum(table[1, 0], -table[0, 0])
            down1, slip1 = _two_sum(table[1, 1], -table[0, 1])
            right0, slip2 = _two_sum(table[0, 1], -table[0, 0])
            right1, slip3 = _two_sum(table[1, 1], -table[1, 0])
            coupling[k, e], slip4 = _two_sum(right1, -right0)
            field[k, i], slip5 = _two_sum(field[k, i], down0)
            field[k, i], slip6 = _two_sum(field[k, i], down1)
            field[k, j], slip7 = _two_sum(field[k, j], right0)
            field[k, j], slip8 = _two_sum(field[k, j], right1)
            lost += slip0 + slip1 + 2 * (slip2 + slip3) + slip4 + slip5 + slip6 + slip7 + slip8
        error[k] = lost
    return field, coupling, error


@njit(cache=True, nogil=True)
def _whole(
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


# --- the cut -------------------------------------------------------------------------------------


def _solve(model: _Models, backend: Backend, flows: Flows | None) -> Relaxed:
    models, n = model.field.shape
    arcs = 2 * (n + len(model.edges))
    together = max(1, backend.together // max(n, 1))
    largest = backend.largest(arcs * min(models, together))
    field, coupling, slack, shift = _whole(model.field, model.coupling, model.error, largest)
    side = np.zeros((models, n), dtype=np.int8)
    for start in range(0, models, together):
        part = slice(start, start + together)
        resumed = flows.part(part) if flows else None
        side[part] = _sides(model.edges, field[part], coupling[part], shift[part], backend, resumed)
    node, edge, score, doubt = _complete(model.edges, side, model.coupling, model.unary, model.pair)
    if not np.isfinite(score).all():
        raise Infeasible(f"example {int(np.argmin(score))}: every answer uses a forbidden entry")
    return Relaxed(node, edge, _raised(score, slack + doubt))


def _raised(score: Floats, slack: Floats) -> Floats:
    return np.where(slack > 0, np.nextafter(score + slack, np.inf), score)


def _sides(
    edges: Ints,
    field: Floats,
    coupling: Floats,
    shift: Ints,
    backend: Backend,
    flows: Flows | None,
) -> Signs:
    """2s in {−1, 0, 1} for models of whole numbers; 0 only in components that are frustrated."""
    everywhere = np.ones(field.shape, dtype=np.bool_)
    flip, balanced = _gauge(edges, coupling, everywhere)
    first, ends, capacity, pull = _flow_graph(edges, field, coupling, flip, balanced)
    flow = np.zeros(len(capacity))
    if flows:
        old = flows.flow, flows.layout, flows.shift
        _resume(edges, coupling, shift, flip, balanced, *old, flow)
    sink = min_cut(ends, capacity, pull, backend, flow)
    if flows:
        _keep(flow, flows.layout, flows.flow)
    side = _read(first, sink, flip, balanced)
    half = side == 0
    if half.any():
        # The score is constant along a half component without frustration: take its end.
        flip, balanced = _gauge(edges, coupling, half)
        side = np.where(half & balanced, -flip, side)
    return side


@njit(cache=True, nogil=True)
def _gauge(edges: Ints, coupling: Floats, active: Bools) -> tuple[Signs, Bools]:
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
def _flow_graph(
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
def _resume(
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
        change = shift[k] - old_shift[k]
        for e in range(len(edges)):
            kind = 0
            if coupling[k, e] != 0:
                single = balanced[k, edges[e, 0]]
                kind = (4 + flip[k, edges[e, 0]] if single else 1) + (coupling[k, e] < 0)
            for copy in range(_arcs(kind)):
                if kind == layout[k, e]:
                    sent = np.rint(_scaled(old_flow[k, e, copy], change))
                    flow[arc] = min(max(sent, -abs(coupling[k, e])), abs(coupling[k, e]))
                arc += 1
            layout[k, e] = kind
        old_shift[k] = shift[k]


@njit(cache=True, nogil=True)
def _keep(flow: Floats, layout: Signs, kept: Floats) -> None:
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
def _read(first: Ints, sink: Bools, flip: Signs, balanced: Bools) -> Signs:
    side = np.zeros(first.shape, dtype=np.int8)
    for k in range(first.shape[0]):
        for i in range(first.shape[1]):
            at = first[k, i]
            if balanced[k, i]:
                side[k, i] = flip[k, i] if sink[at] else -flip[k, i]
            elif sink[at] != sink[at + 1]:
                side[k, i] = 1 if sink[at] else -1
    return side


# --- the answer ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _complete(
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
        total, lost, slips = 0.0, 0.0, 0.0
        for i in range(n):
            node[k, i, 1] = 0.5 + 0.5 * side[k, i]
            node[k, i, 0] = 1.0 - node[k, i, 1]
        for e in range(m):
            i, j = edges[e]
            if side[k, i] == 0 and side[k, j] == 0:
                other = 0 if coupling[k, e] >= 0 else 1
                edge[k, e, 0, other] = edge[k, e, 1, 1 - other] = 0.5
                continue
            for a in range(2):
                for b in range(2):
                    edge[k, e, a, b] = node[k, i, a] * node[k, j, b]
        total, lost, slips = _add(node[k].ravel(), unary[k].ravel(), total, lost, slips)
        total, lost, slips = _add(edge[k].ravel(), pair[k].ravel(), total, lost, slips)
        score[k] = total + lost
        doubt[k] = slips * 1.2e-16 * (2 * n + 4 * m + 2)
    return node, edge, score, doubt


@njit(cache=True, nogil=True)
def _add(
    weights: Floats, scores: Floats, total: float, lost: float, slips: float
) -> tuple[float, float, float]:
    """Adds Σ weights × scores with a second word for what rounding took; 0 × −inf is 0."""
    for k in range(len(weights)):
        if weights[k] > 0:
            term = weights[k] * scores[k]
            fresh = total + term
            part = fresh - total
            slip = (total - (fresh - part)) + (term - part)
            total = fresh
            # −inf makes the slip NaN.
            if abs(slip) > 0:
                lost += slip
                slips += abs(slip)
    return total, lost, slips
