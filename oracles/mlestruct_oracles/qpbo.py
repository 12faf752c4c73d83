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

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import Infeasible
from mlestruct.structures.base import Array, Flags, Ints
from mlestruct_oracles.maxflow import TOGETHER, Backend, resolve
from mlestruct_oracles.native import _door as native

LARGEST = 1e280  # larger scores could overflow once added up and penalised


class Flows:
    """Where the last solve of a batch ended, for the next to start from; no answer depends on it.

    Kept by the back end "compiled" alone, from the second solve on: most batches are asked once.
    17 bytes an edge and model.
    """

    asked = False

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

    node: Array
    edge: Array
    upper: Array


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
    a frustrated cycle. The flows of the same batch's last solve are used and updated by back ends
    that resume.
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


class _Models:
    """A batch at the gate: original scores, finite scores with the same optima, signed form."""

    def __init__(self, edges: Ints, unary: Array, pair: Array, forbidden: bool) -> None:
        self.edges, self.unary, self.pair, self.finite_pair = edges, unary, pair, pair
        self.models, self.n = unary.shape[:2]
        self.given = finite = native.Pairwise(self.models, self.n, len(edges), edges, unary, pair)
        if forbidden:
            finite = self._penalised()
        self.field, self.error = np.empty((self.models, self.n)), np.empty(self.models)
        self.coupling = np.empty((self.models, len(edges)))
        native.qpbo_signed_form(finite, self.field, self.coupling, self.error)

    def _penalised(self) -> native.Pairwise:
        """Finite scores whose optima avoid every −inf wherever a point of the polytope can."""
        unary, self.finite_pair = np.empty_like(self.unary), np.empty_like(self.pair)
        found = native.qpbo_soften(self.given, unary, self.finite_pair)
        if found >= 0:
            model, place = divmod(found, self.n + len(self.edges))
            if place < self.n:
                raise Infeasible(f"example {model}: both states of node {place} are forbidden")
            edge = place - self.n
            raise Infeasible(
                f"example {model}: all of edge {edge} ({_ends(self.edges, edge)}) is forbidden"
            )
        size = self.models, self.n, len(self.edges)
        return native.Pairwise(*size, self.edges, unary, self.finite_pair)

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
    solver, first = resolve(backend), not flows.asked
    flows.asked = True
    return solver, flows if solver.resumes and not first else None


# --- the gate ------------------------------------------------------------------------------------


def _gate(edges: ArrayLike, unary: ArrayLike, pair: ArrayLike) -> tuple[Ints, Array, Array, bool]:
    nodes = np.asarray(unary, np.float64, order="C")
    tables = np.asarray(pair, np.float64, order="C")
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
    ends = np.asarray(ends, np.int64, order="C")
    loops = ends[:, 0] == ends[:, 1]
    if ends.min() < 0 or ends.max() >= n or loops.any():
        edge = int(np.argmax(loops | ((ends < 0) | (ends >= n)).any(axis=1)))
        raise ValueError(
            f"edge {edge} ({_ends(ends, edge)}) must join two of the nodes 0 to {n - 1}"
        )
    return ends


def _gate_scores(name: str, scores: Array) -> bool:
    """Whether some score is −inf; NaN, +inf and what would overflow raise with their place."""
    if scores.min(initial=0.0) >= -LARGEST and scores.max(initial=0.0) <= LARGEST:
        return False
    wrong = ~(np.abs(scores) <= LARGEST) & (scores != -np.inf)
    if wrong.any():
        place = np.unravel_index(np.argmax(wrong), scores.shape)
        where = ", ".join(str(k) for k in place)
        raise ValueError(
            f"{name}[{where}] = {scores[place]}: scores are at most {LARGEST:g} in size, or"
            " −inf where forbidden"
        )
    return True


def _ends(edges: Ints, edge: int) -> str:
    return "–".join(str(end) for end in edges[edge])


# --- the cut -------------------------------------------------------------------------------------


def _solve(model: _Models, backend: Backend, flows: Flows | None) -> Relaxed:
    models, n, m = model.models, model.n, len(model.edges)
    together = max(1, TOGETHER // max(n, 1))
    field, upper, coupling = model.field, model.error, np.empty_like(model.coupling)
    shift, side = np.empty(models, dtype=np.int64), np.empty((models, n), dtype=np.int8)
    native.qpbo_whole(model.given, field, model.coupling, coupling, upper, shift)
    for start in range(0, models, together):
        part = slice(start, start + together)
        resumed = flows.part(part) if flows else None
        side[part] = _sides(model.edges, field[part], coupling[part], shift[part], backend, resumed)
    node, edge = np.empty((models, n, 2)), np.empty((models, m, 2, 2))
    wrong = native.qpbo_complete(model.given, model.coupling, side, node, edge, upper)
    if wrong >= 0:
        raise Infeasible(f"example {wrong}: every answer uses a forbidden entry")
    return Relaxed(node, edge, upper)


def _sides(
    edges: Ints,
    field: Array,
    coupling: Array,
    shift: Ints,
    backend: Backend,
    flows: Flows | None,
) -> Flags:
    """2s in {−1, 0, 1} for models of whole numbers; 0 only in components that are frustrated."""
    (models, n), m = field.shape, len(edges)
    flip, balanced = np.empty((models, n), np.int8), np.empty((models, n), np.bool_)
    signed = native.SignedModels(models, n, m, edges, field, coupling, shift, flip, balanced)
    first, ends = np.empty((models, n), np.int64), np.empty((2 * models * m, 2), np.int64)
    capacity, pull = np.empty(len(ends)), np.empty(2 * models * n)
    arcs = native.qpbo_flow_graph(signed, first, ends, capacity, pull)
    nodes, flow = 2 * models * n - int(np.count_nonzero(balanced)), np.zeros(len(ends))
    if flows:
        last = native.LastFlows(models, m, flows.flow, flows.layout, flows.shift)
        native.qpbo_resume(signed, last, flow)
    sink = np.zeros(0, np.bool_)
    if nodes:
        sink = backend.cut(ends[:arcs], capacity[:arcs], pull[:nodes], flow[:arcs])
    if flows:
        native.qpbo_keep(last, flow)
    side = np.empty((models, n), np.int8)
    native.qpbo_sides(signed, nodes, first, sink, side)
    return side
