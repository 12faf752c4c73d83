"""Flows and b-matchings: by ortools' minimum-cost flow, general ones as larger matchings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, one_by_one
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from mlestruct.structures.networks import BMatching, Flow, after_required
from mlestruct_oracles import blossom

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


@dataclass(frozen=True)
class BMatchingSolver:
    """The heaviest b-matching of any graph, in polynomial time.

    Bipartite graphs: a minimum-cost flow, with the rounding of scores in ``upper`` (holds the
    GIL). Others: a matching of Σ capacities + 2·edges nodes by the blossom kernel, ``upper`` from
    its duals: O((Σ capacities + edges)³) at worst.
    """

    polytope: str = HULL

    def many(self, batch: Batch[BMatching], scores: Array) -> Answers:
        return one_by_one(batch, scores, _ready)


def _ready(structure: BMatching) -> Callable[[Array], tuple[Array, float]]:
    flow = structure.as_flow()
    if flow is None:
        return _gadget(structure)
    return Network.of(flow[0], structure.fixed, *flow[1:]).heaviest


def _gadget(structure: BMatching) -> Callable[[Array], tuple[Array, float]]:
    """Solve by Tutte's graph: a copy of a node per unit of capacity, two middle nodes per edge.

    A chosen edge has both of its middle nodes matched to copies of its ends; one that is not has
    them matched to each other. The k-th edge's middles are 2k and 2k + 1, copies come after them.
    """
    free, n, exact = np.flatnonzero(structure.fixed < 0), structure.n_nodes, structure.exact
    ends, required = structure.ends[free].astype(np.int64).ravel(), structure.fixed == 1
    left = structure.capacity - np.bincount(structure.ends[required].ravel(), minlength=n)
    # A node's copies beside its required pairs, none in vain.
    copies = np.where(exact, left, np.minimum(left, np.bincount(ends, minlength=n)))
    first, times = len(ends) + np.cumsum(copies) - copies, copies[ends]
    middle = np.repeat(np.arange(len(ends)), times)
    number = np.arange(len(middle)) - np.repeat(np.cumsum(times) - times, times)
    two = np.arange(len(ends)).reshape(-1, 2)
    edges = np.concatenate([two, np.stack([first[ends[middle]] + number, middle], axis=1)])
    nodes = len(ends) + int(copies.sum())
    if exact.any():  # pairs of copies may stay without an edge, and one more node if they are odd
        odd = nodes % 2 == 1
        loose = len(ends) + np.flatnonzero(np.append(np.repeat(~exact, copies), odd))
        edges = np.concatenate([edges, loose[np.stack(np.triu_indices(len(loose), 1), axis=1)]])

    def heaviest(score: Array) -> tuple[Array, float]:
        """A best vertex and a bound on the best score."""
        # Twice the scores, halved again below: each middle node brings one half. Without exact
        # nodes a bonus for matched middle nodes replaces the pairs of copies.
        greatest = np.abs(score[free]).max(initial=0.5)
        bonus = 0.0 if exact.any() else 2.0 ** np.ceil(np.log2(greatest) + 1.0)
        weights = np.zeros(len(edges))
        weights[: len(free)] = 2 * bonus
        weights[len(free) : len(free) + len(middle)] = score[free][middle // 2] + bonus
        try:
            if exact.any():
                best = blossom.perfect_matching_sparse(nodes + nodes % 2, edges, weights)
            else:
                best = blossom.maximum_weight_matching_sparse(nodes, edges, weights)
        except Infeasible as error:
            raise Infeasible("no set of allowed pairs fills every node") from error
        vertex = required.astype(float)
        vertex[free] = best.partner[two[:, 0]] != two[:, 1]
        return vertex, float(best.upper / 2 - bonus * len(free) + score[required].sum())

    return heaviest
