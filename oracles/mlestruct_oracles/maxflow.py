"""Minimum cuts of undirected graphs with whole-number capacities: PyMaxflow, ortools, or our own.

Capacities and pulls are whole numbers (held as float64) and small enough that the solver's own
arithmetic never rounds, so a cut is exactly minimal; `Backend.largest` says how small. What
rounding to whole numbers costs is the caller's to account for (`qpbo` adds it to its bound).

All back ends return the same cut, the one with the fewest nodes on the sink's side.
PyMaxflow and ortools hold the GIL; PyMaxflow is GPL and ends the process when memory runs out.
The compiled one is Boykov and Kolmogorov's algorithm too (native/max_flow.cpp). It releases the GIL
and can start from the flow of an earlier, similar graph. Up to 2³⁰ edges.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from mlestruct.structures.base import Array, Ints, Marks
from mlestruct_oracles.native._door import max_flow_cut

ABSENT = (
    "PyMaxflow is not installed (it is under the GPL, so it is not installed by default): "
    "pip install 'mlestruct[pymaxflow]', or take the oracle without _pymaxflow in its name"
)


@dataclass(frozen=True)
class Backend:
    """A max-flow solver: `cut(ends, capacity, pull, flow)` → True for nodes on the sink's side.

    That is the cut least in Σ capacity of cut edges + Σ |pull| of denied nodes: one with positive
    pull wants the sink's side, one with negative pull the source's. There is a node at least.
    PyMaxflow loops for ever on NaN and infinity and answers wrongly on negative capacities.

    `largest(arcs)` is the largest capacity it adds without rounding in a graph with so many arcs,
    `together` the number of flow nodes up to which solving many small models as one graph pays.
    Where it `resumes`, it starts from `flow` (along each edge) and leaves the new flow there.
    """

    name: str
    cut: Callable[[Ints, Array, Array, Array], Marks]
    largest: Callable[[int], float]
    together: int
    resumes: bool = False


def resolve(backend: "str | Backend | None") -> Backend:
    """Return the back end of that name, by default the compiled one."""
    if isinstance(backend, Backend):
        return backend
    if backend is None:
        return BACKENDS["compiled"]
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r} is not one of {sorted(BACKENDS)}")
    if backend == "pymaxflow":
        _pymaxflow()  # whoever names it learns at once that it is absent
    return BACKENDS[backend]


def _pymaxflow() -> ModuleType:
    try:
        module = importlib.import_module("maxflow")
    except ImportError as absent:
        raise ImportError(ABSENT) from absent
    if not hasattr(module, "GraphFloat"):  # PyPI's `maxflow` is another package of that name
        raise ImportError(ABSENT)
    return module


def _cut_compiled(ends: Ints, capacity: Array, pull: Array, flow: Array) -> Marks:
    sink = np.empty(len(pull), dtype=np.bool_)
    max_flow_cut(len(pull), len(capacity), ends, capacity, pull, flow, sink)
    return sink


def _cut_pymaxflow(ends: Ints, capacity: Array, pull: Array, flow: Array) -> Marks:
    graph: Any = _pymaxflow().GraphFloat(len(pull), len(capacity))
    nodes = np.arange(len(pull))
    graph.add_nodes(len(pull))
    if len(capacity):
        graph.add_edges(ends[:, 0], ends[:, 1], capacity, capacity)
    graph.add_grid_tedges(nodes, np.maximum(-pull, 0.0), np.maximum(pull, 0.0))
    graph.maxflow()
    side: Marks = graph.get_grid_segments(nodes)
    return side


def _cut_ortools(ends: Ints, capacity: Array, pull: Array, flow: Array) -> Marks:
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


BACKENDS = {
    "pymaxflow": Backend("pymaxflow", _cut_pymaxflow, _largest_double, together=1 << 12),
    "ortools": Backend("ortools", _cut_ortools, _largest_int64, together=1 << 12),
    "compiled": Backend("compiled", _cut_compiled, _largest_double, 1 << 12, resumes=True),
}
