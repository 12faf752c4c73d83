"""Binary pairwise models: the best vertex of the local polytope (QPBO), or graph cut, in batches.

``native/qpbo.cpp`` has the minimum cut that both are. Scores are rounded to whole numbers for it,
so the cut itself is exact; what rounding may cost is summed and added to ``upper``. Whole-number
scores lose nothing. O(n + m) and one max-flow on n to 2n nodes a model.

The compiled cut is Boykov and Kolmogorov's and releases the GIL. PyMaxflow's is the same algorithm;
it holds the GIL, is GPL and ends the process when memory runs out. Both find the cut with the
fewest nodes on the sink's side.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints, Marks
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph
from mlestruct_oracles.native._door import Pairwise, qpbo_network, qpbo_solve

LARGEST = 1e280  # larger scores could overflow once added up and penalised
TOGETHER = 1 << 16  # nodes that one call of the kernel solves, which no signal interrupts
BACKENDS = ("compiled", "pymaxflow")
ABSENT = (
    "PyMaxflow is not installed (it is under the GPL, so it is not installed by default): "
    "pip install 'mlestruct[pymaxflow]', or take the oracle without _pymaxflow in its name"
)


class Relaxed(NamedTuple):
    """Vertices, their tables in {0, ½, 1}, and upper ≥ the maximum ≥ the vertices' scores."""

    node: Array
    edge: Array
    upper: Array


def qpbo(edges: ArrayLike, unary: ArrayLike, pair: ArrayLike, backend: str = "compiled") -> Relaxed:
    """A vertex of the local polytope with the largest score, for each model of a batch.

    edges (m, 2) are shared, unary is (M, n, 2), pair (M, m, 2, 2). A score of −inf forbids its
    entry exactly; where no point of the polytope avoids them all, Infeasible (a point of halves
    may avoid them where no labelling does). Forbidden pairs widen `upper`, forbidden states do not.
    Ties on a component that can be labelled at all are labelled; ½ is left only on components with
    a frustrated cycle.
    """
    return _solve(_checked(edges, unary, pair), False, backend)


def graph_cut(
    edges: ArrayLike, unary: ArrayLike, pair: ArrayLike, backend: str = "compiled"
) -> Relaxed:
    """A labelling with the largest score, for each model, all of whose edges must be attractive.

    ValueError names the first example and edge with p00 + p11 < p01 + p10. A shortfall of rounding
    size passes, and is accounted for in `upper`.
    """
    return _solve(_checked(edges, unary, pair), True, backend)


@dataclass(frozen=True)
class QPBO:
    """The best vertex of the local polytope of a binary pairwise graph, half-integral.

    One max-flow on n to 2n nodes per example. ``backend``: "compiled" (ours; releases the GIL) or
    "pymaxflow".
    """

    backend: str = "compiled"
    polytope: str = "local polytope"
    grain: float = 0.5

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        return _many(batch, scores, False, self.backend)


@dataclass(frozen=True)
class GraphCut:
    """The best labelling of a binary pairwise graph, all of whose edges must be attractive.

    Only node scores may be perturbed: confine the entropy to nodes (``rho=0``) and bound the
    weights so that every edge keeps p00 + p11 ≥ p01 + p10. One max-flow on n nodes per example.
    """

    backend: str = "compiled"
    polytope: str = HULL

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        return _many(batch, scores, True, self.backend)

    def perturbable(self, batch: Batch[FactorGraph]) -> NDArray[np.bool_]:
        nodes = [np.arange(s.size) < s.node_start[-1] for s in batch.structures]
        return np.concatenate([nodes[k] for k in batch.which])


def _many(batch: Batch[FactorGraph], scores: Array, attractive: bool, backend: str) -> Answers:
    scores = batch.vector(scores, "scores")
    vertices, upper = np.empty(batch.size), np.empty(len(batch))
    for structure, members in batch.groups():
        table = batch.rows(scores, members)
        if (structure.fixed >= 0).any():
            table = np.where(structure.closed(), -np.inf, table)
        first, models = structure.node_start[-1], len(members)
        unary = table[:, :first].reshape(models, -1, 2)
        pair = table[:, first:].reshape(models, -1, 2, 2)
        model = _checked(binary_edges(structure), unary, pair, members, structure)
        answer = _solve(model, attractive, backend)
        place = batch.index(members)
        rows = vertices[place].reshape(models, -1)  # a view of adjacent examples
        rows[:, :first] = answer.node.reshape(models, -1)
        rows[:, first:] = answer.edge.reshape(models, -1)
        if not isinstance(place, slice):
            vertices[place] = rows.ravel()
        upper[members] = answer.upper
    return vertices, upper


def binary_edges(structure: FactorGraph) -> Ints:
    """The edges (m, 2) of a graph of two-state variables; anything else is refused by name."""
    other = np.flatnonzero(structure.cards != 2)
    if len(other):
        raise ValueError(
            f"variable {other[0]} has {structure.cards[other[0]]} states; graph cuts take two: "
            'try oracle="trw_s" or "linear_program"'
        )
    large = np.flatnonzero(np.diff(structure.scope_start) != 2)
    if len(large):
        raise ValueError(
            f"factor {large[0]} joins {np.diff(structure.scope_start)[large[0]]} variables; "
            'graph cuts take pairs: try oracle="linear_program" or "cp_sat"'
        )
    return structure.scope.reshape(-1, 2)


class PairwiseScores(NamedTuple):
    """Checked scores of models, the examples that these are, and their structure if it has one."""

    edges: Ints
    unary: Array
    pair: Array
    examples: Ints
    structure: FactorGraph | None


def _checked(
    edges: ArrayLike,
    unary: ArrayLike,
    pair: ArrayLike,
    examples: Ints | None = None,
    structure: FactorGraph | None = None,
) -> PairwiseScores:
    """Check shapes, edges and scores; NaN, +inf and what would overflow raise with their place."""
    nodes = np.asarray(unary, np.float64, order="C")
    tables = np.asarray(pair, np.float64, order="C")
    if nodes.ndim != 3 or nodes.shape[2] != 2:
        raise ValueError(f"unary has shape {nodes.shape}, wanted (models, nodes, 2)")
    ends = _checked_edges(edges, nodes.shape[1])
    wanted = (len(nodes), len(ends), 2, 2)
    if tables.shape != wanted:
        raise ValueError(f"pair has shape {tables.shape}, wanted {wanted}")
    for name, scores in (("unary", nodes), ("pair", tables)):
        if scores.min(initial=0.0) >= -LARGEST and scores.max(initial=0.0) <= LARGEST:
            continue
        wrong = ~(np.abs(scores) <= LARGEST) & (scores != -np.inf)
        if wrong.any():
            place = np.unravel_index(np.argmax(wrong), scores.shape)
            raise ValueError(
                f"{name}[{', '.join(map(str, place))}] = {scores[place]}: scores are at most "
                f"{LARGEST:g} in size, or −inf where forbidden"
            )
    return PairwiseScores(
        ends, nodes, tables, np.arange(len(nodes)) if examples is None else examples, structure
    )


def _checked_edges(edges: ArrayLike, n: int) -> Ints:
    ends = np.asarray(edges)
    if ends.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or not np.issubdtype(ends.dtype, np.integer):
        raise ValueError(
            f"edges are {ends.dtype} of shape {ends.shape}, wanted integers (edges, 2)"
        )
    ends = np.asarray(ends, np.int64, order="C")
    wrong = (ends[:, 0] == ends[:, 1]) | ((ends < 0) | (ends >= n)).any(axis=1)
    if wrong.any():
        edge = int(np.argmax(wrong))
        raise ValueError(
            f"edge {edge} ({_ends(ends, edge)}) must join two of the nodes 0 to {n - 1}"
        )
    return ends


def _ends(edges: Ints, edge: int) -> str:
    return "–".join(str(end) for end in edges[edge])


def _solve(model: PairwiseScores, attractive: bool, backend: str) -> Relaxed:
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r} is not one of {BACKENDS}")
    maxflow = None if backend == "compiled" else _pymaxflow()  # absent, it says so at once
    edges, unary, pair = model.edges, model.unary, model.pair
    (models, n), m, place = unary.shape[:2], len(edges), np.empty(2, np.int64)
    node, edge, upper = np.empty((models, n, 2)), np.empty((models, m, 2, 2)), np.empty(models)
    step = max(1, TOGETHER // max(n, 1)) if maxflow is None else 1
    for first in range(0, models, step):
        part = slice(first, first + step)
        given = Pairwise(len(unary[part]), n, m, edges, unary[part], pair[part])
        sink = None if maxflow is None else _cut(maxflow, given, attractive)
        out = node[part], edge[part], upper[part]
        refused = qpbo_solve(given, attractive, sink, *out, place)
        if refused:
            raise _refusal(model, refused, first + place[0], place[1])
    return Relaxed(node, edge, upper)


def _refusal(model: PairwiseScores, refused: int, k: int, at: int) -> ValueError:
    """Return the error for a model without an answer, by the kernel's reason."""
    example = f"example {model.examples[k]}"
    edge = f"edge {at} ({_ends(model.edges, at)})" if refused in (2, 3) else ""
    if refused == 3:
        return ValueError(
            f"{example}, {edge} is not submodular: "
            f"p00 + p11 < p01 + p10 for {model.pair[k, at].tolist()}"
        )
    why = {1: f"both states of node {at} are forbidden", 2: f"all of {edge} is forbidden",
           4: "every answer uses a forbidden entry"}[refused]  # fmt: skip
    own = model.structure.impossible() if model.structure is not None else None
    return Infeasible(f"{example}: {own or why}")


def _pymaxflow() -> ModuleType:
    try:
        module = importlib.import_module("maxflow")
    except ImportError as absent:
        raise ImportError(ABSENT) from absent
    if not hasattr(module, "GraphFloat"):  # PyPI's `maxflow` is another package of that name
        raise ImportError(ABSENT)
    return module


def _cut(maxflow: Any, model: Pairwise, attractive: bool) -> Marks | None:
    """PyMaxflow's minimum cut of one model: the nodes on the sink's side, if there is a graph.

    PyMaxflow loops for ever on NaN and infinity and answers wrongly on negative capacities.
    """
    ends, capacity = np.empty((2 * model.edges, 2), np.int64), np.empty(2 * model.edges)
    pull, place = np.empty(2 * model.nodes), np.empty(2, np.int64)
    if qpbo_network(model, attractive, ends, capacity, pull, place):
        return None
    nodes, edges = place.tolist()
    sink = np.zeros(len(pull), np.bool_)
    if nodes:
        graph = maxflow.GraphFloat(nodes, edges)
        graph.add_nodes(nodes)
        if edges:
            graph.add_edges(*ends[:edges].T, capacity[:edges], capacity[:edges])
        wants = pull[:nodes]
        graph.add_grid_tedges(np.arange(nodes), np.maximum(-wants, 0.0), np.maximum(wants, 0.0))
        graph.maxflow()
        sink[:nodes] = graph.get_grid_segments(np.arange(nodes))
    return sink
