"""Binary pairwise graphs behind the oracle seam: QPBO over the local polytope, and graph cut."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from mlestruct.structures.graph import FactorGraph
from mlestruct_oracles.maxflow import Backend
from mlestruct_oracles.qpbo import Flows, Relaxed, graph_cut, qpbo

REMEMBERED = 1 << 10  # groups of examples whose last flows are kept

Memory = OrderedDict[Any, Flows]


@dataclass(frozen=True)
class QPBO:
    """The best vertex of the local polytope of a binary pairwise graph, half-integral.

    One max-flow on n to 2n nodes per example. ``backend``: "compiled" (ours; releases the GIL,
    starts from the same examples' last flows, which changes no answer) or "pymaxflow".
    """

    backend: str | Backend = "compiled"
    polytope: str = "local polytope"
    grain: float = 0.5
    _flows: Memory = field(default_factory=OrderedDict, repr=False, compare=False)

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        return _many(qpbo, self.backend, self._flows, batch, scores)


@dataclass(frozen=True)
class GraphCut:
    """The best labelling of a binary pairwise graph, all of whose edges must be attractive.

    Only node scores may be perturbed: confine the entropy to nodes (``rho=0``) and bound the
    weights so that every edge keeps p00 + p11 ≥ p01 + p10. One max-flow on n nodes per example.
    """

    backend: str | Backend = "compiled"
    polytope: str = HULL
    _flows: Memory = field(default_factory=OrderedDict, repr=False, compare=False)

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        return _many(graph_cut, self.backend, self._flows, batch, scores)

    def perturbable(self, batch: Batch[FactorGraph]) -> NDArray[np.bool_]:
        nodes = [np.arange(s.size) < s.node_start[-1] for s in batch.structures]
        return np.concatenate([nodes[k] for k in batch.which])


def _many(
    solve: Callable[..., Relaxed],
    backend: str | Backend,
    memory: Memory,
    batch: Batch[FactorGraph],
    scores: Array,
) -> Answers:
    scores = batch.vector(scores, "scores")
    vertices, upper = np.empty(batch.size), np.empty(len(batch))
    for structure, members in batch.groups():
        table = batch.rows(scores, members)
        if (structure.fixed >= 0).any():
            table = np.where(structure.closed(), -np.inf, table)
        edges = binary_edges(structure)
        first, models = structure.node_start[-1], len(members)
        unary = table[:, :first].reshape(models, -1, 2)
        pair = table[:, first:].reshape(models, -1, 2, 2)
        key = structure, models
        flows = memory.pop(key, None) or Flows(models, len(edges))  # nobody else's meanwhile
        try:
            answer = solve(edges, unary, pair, backend, flows)
        except ValueError as error:  # Infeasible too
            raise _renumbered(error, members, structure) from error
        _remember(memory, key, flows)
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


def _remember(memory: Memory, key: Any, flows: Flows) -> None:
    memory[key] = flows
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)


def _renumbered(error: ValueError, members: Ints, structure: FactorGraph) -> ValueError:
    """The error with the example's number in the batch in the place of that in its group."""
    text, _, rest = str(error).removeprefix("example ").partition(":")
    head, comma, more = text.partition(",")
    if not str(error).startswith("example ") or not head.isdigit():
        return error
    example = f"example {members[int(head)]}{comma}{more}"
    if isinstance(error, Infeasible):
        return Infeasible(f"{example}: {structure.impossible() or rest.strip()}")
    return ValueError(f"{example}:{rest}")
