"""Flows of largest score by ortools' minimum-cost flow; its rounding of scores is in the bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, one_by_one
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.flow import Flow, after_required

LARGEST = 2.0**52  # integer costs, so that scaled scores are still exact as floats
ROOM = 2.0**61  # for costs times nodes squared: what the solver's prices can grow to


@dataclass(frozen=True)
class MinCostFlow:
    """The heaviest flow, scores of any sign, cycles included.

    Scores are scaled by a power of two and rounded to integers; ``upper`` adds all the rounding
    could hide (0 for whole scores below 2⁵² / nodes²). Polynomial; holds the GIL.
    """

    polytope: str = HULL

    def many(self, batch: Batch[Flow], scores: Array) -> Answers:
        return one_by_one(
            batch,
            scores,
            lambda flow: Network.of(flow.arcs, flow.fixed, flow.low, flow.high).heaviest,
        )


@dataclass(frozen=True)
class Network:
    """The free arcs, and one extra node that hands out the optional part of every net outflow."""

    tails: Ints
    heads: Ints
    room: Ints
    supply: Ints
    free: Ints
    required: NDArray[np.bool_]

    @classmethod
    def of(cls, arcs: Ints, fixed: NDArray[np.int8], low: Ints, high: Ints) -> Network:
        low, high = after_required(arcs, fixed, low, high)
        free, n = np.flatnonzero(fixed < 0), len(low)
        optional = np.flatnonzero(high > low)
        return cls(
            np.concatenate([arcs[free, 0], np.full(len(optional), n)]),
            np.concatenate([arcs[free, 1], optional]),
            np.concatenate([np.ones(len(free), dtype=np.int64), (high - low)[optional]]),
            np.append(low, -low.sum()),
            free,
            fixed == 1,
        )

    def heaviest(self, score: Array) -> tuple[Array, float]:
        """A best vertex and a bound on the best score."""
        from ortools.graph.python import min_cost_flow

        scale = self.scale(score[self.free])
        scaled = np.rint(score[self.free] * scale)
        solver = min_cost_flow.SimpleMinCostFlow()
        cost = np.concatenate([-scaled, np.zeros(len(self.tails) - len(scaled))]).astype(np.int64)
        arcs = solver.add_arcs_with_capacity_and_unit_cost(self.tails, self.heads, self.room, cost)
        solver.set_nodes_supplies(np.arange(len(self.supply)), self.supply)
        status = solver.solve()
        if status in (solver.INFEASIBLE, solver.UNBALANCED):
            raise Infeasible("no flow has these net outflows")
        if status != solver.OPTIMAL:
            raise ArithmeticError(f"ortools' min-cost flow ended with {status}")
        vertex = self.required.astype(float)
        vertex[self.free] = used = np.asarray(solver.flows(arcs[: len(scaled)]), dtype=float)
        rounding = score[self.free] - scaled / scale
        hidden = np.where(used > 0, np.maximum(-rounding, 0.0), np.maximum(rounding, 0.0))
        return vertex, float(score[vertex > 0].sum() + hidden.sum())

    def scale(self, score: Array) -> float:
        """The power of two that makes integers of scores without overflow in the solver."""
        greatest = float(np.abs(score).max(initial=0.0))
        if greatest == 0.0:
            return 1.0
        limit = min(LARGEST, ROOM / (len(self.supply) + 1.0) ** 2)
        return float(2.0 ** np.floor(np.log2(limit / greatest)))
