"""Binary pairwise graphs: the best vertex of the local polytope (QPBO), and graph cut.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints, Marks, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph
from mlestruct_oracles.native._door import Pairwise, qpbo_network, qpbo_solve

TOGETHER = 1 << 16  # nodes that one call of the kernel solves, which no signal interrupts
BACKENDS = ("compiled", "pymaxflow")
ABSENT = (
    "PyMaxflow is not installed (it is under the GPL, so it is not installed by default): "
    "pip install 'mlestruct[pymaxflow]', or take the oracle without _pymaxflow in its name"
)


@dataclass(frozen=True)
class QPBO:
    """The best vertex of the local polytope of a binary pairwise graph, half-integral.

    A score of −inf forbids its entry exactly; where no point of the polytope avoids them all,
    Infeasible (a point of halves may avoid them where no labelling does). Ties on a component that
    can be labelled at all are labelled; ½ is left only on components with a frustrated cycle.
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
    weights so that every edge keeps p00 + p11 ≥ p01 + p10; ValueError names the first that does
    not. A shortfall of rounding size is accounted for in ``upper``. One max-flow on n nodes per
    example.
    """

    backend: str = "compiled"
    polytope: str = HULL

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        return _many(batch, scores, True, self.backend)

    def perturbable(self, batch: Batch[FactorGraph]) -> NDArray[np.bool_]:
        nodes = [np.arange(s.size) < s.node_start[-1] for s in batch.structures]
        return np.concatenate([nodes[k] for k in batch.which])


def _many(batch: Batch[FactorGraph], scores: Array, attractive: bool, backend: str) -> Answers:
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r} is not one of {BACKENDS}")
    maxflow = None if backend == "compiled" else _pymaxflow()  # absent, it says so at once
    scores, place = as_numbers(scores, "scores", batch.size), np.empty(2, np.int64)
    vertices, upper = np.empty(batch.size), np.empty(len(batch))
    for structure, members in batch.groups():
        edges, n = binary_edges(structure), structure.n_nodes
        step = 1 if maxflow else max(1, TOGETHER // max(n, 1))
        for some in np.split(members, range(step, len(members), step)):
            table = batch.rows(scores, some)
            if (structure.fixed >= 0).any():
                table = np.where(structure.closed(), -np.inf, table)
            model = Pairwise(len(some), n, len(edges), edges, table)
            sink = _cut(maxflow, model, attractive) if maxflow else None
            found, bound = np.empty_like(table), np.empty(len(some))
            refused = qpbo_solve(model, attractive, sink, found, bound, place)
            if refused:
                k, at = place.tolist()
                raise _refusal(structure, f"example {some[k]}", table[k], refused, at)
            vertices[batch.index(some)] = found.ravel()
            upper[some] = bound
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


def _refusal(graph: FactorGraph, example: str, score: Array, refused: int, at: int) -> ValueError:
    """Return the error for an example without an answer, by the kernel's reason."""
    edge = f"edge {at} ({'–'.join(map(str, graph.scope[2 * at : 2 * at + 2]))})"
    if refused == 5:
        wrong = f"{example}: the score of coordinate {at} is {score[at]}"
        return ValueError(f"{wrong}; use numbers up to 1e280, and −inf where forbidden")
    if refused == 3:
        table = score[graph.entry(at, (0, 0)) :][:4].reshape(2, 2).tolist()
        return ValueError(f"{example}, {edge} is not submodular: p00 + p11 < p01 + p10 for {table}")
    shut = {1: f"both states of node {at} are forbidden", 2: f"all of {edge} is forbidden"}
    why = graph.impossible() or shut.get(refused, "every answer uses a forbidden entry")
    return Infeasible(f"{example}: {why}")


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
