"""Minimum cuts of undirected graphs with whole-number capacities: PyMaxflow, or our own.

Capacities and pulls are whole numbers (held as float64) of at most ``LARGEST``, so that the
solver's own arithmetic never rounds and a cut is exactly minimal. What rounding to whole numbers
costs is the caller's to account for (`qpbo` adds it to its bound).

Both back ends return the same cut, the one with the fewest nodes on the sink's side.
PyMaxflow holds the GIL, is GPL and ends the process when memory runs out.
The compiled one is Boykov and Kolmogorov's algorithm too (native/max_flow.cpp). It releases the GIL
and can start from the flow of an earlier, similar graph. Up to 2³⁰ edges.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from mlestruct.structures.base import Array, Ints, Marks
from mlestruct_oracles.native._door import max_flow_cut

# An arc's residual reaches twice its capacity, which must stay within a double's 53 bits.
LARGEST = 2.0**52
TOGETHER = 1 << 12  # flow nodes up to which solving many small models as one graph pays
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
    Where it `resumes`, it starts from `flow` (along each edge) and leaves the new flow there.
    """

    name: str
    cut: Callable[[Ints, Array, Array, Array], Marks]
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


BACKENDS = {
    "pymaxflow": Backend("pymaxflow", _cut_pymaxflow),
    "compiled": Backend("compiled", _cut_compiled, resumes=True),
}
