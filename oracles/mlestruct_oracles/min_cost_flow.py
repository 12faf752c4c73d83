"""Flows and b-matchings: by ortools' minimum-cost flow, general ones as larger matchings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, one_by_one
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch
from mlestruct.structures.networks import BMatching, Flow, after_required

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
        return Gadget(structure).heaviest
    return Network.of(flow[0], structure.fixed, *flow[1:]).heaviest


@dataclass(frozen=True)
class Gadget:
    """Tutte's graph: a copy of a node per unit of capacity, and two middle nodes per edge.

    A chosen edge has both of its middle nodes matched to copies of its ends; one that is not has
    them matched to each other.
    """

    structure: BMatching

    @cached_property
    def free(self) -> Ints:
        return np.flatnonzero(self.structure.fixed < 0)

    @cached_property
    def copies(self) -> Ints:
        """How many copies of each node are left beside its required pairs, none in vain."""
        ends, n = self.structure.ends, self.structure.n_nodes
        taken = np.bincount(ends[self.structure.fixed == 1].ravel(), minlength=n)
        left = self.structure.capacity - taken
        degree = np.bincount(ends[self.free].ravel(), minlength=n)
        return np.asarray(np.where(self.structure.exact, left, np.minimum(left, degree)))

    @cached_property
    def spokes(self) -> tuple[Ints, Ints]:
        """(copy, middle) of every edge that says "chosen": the k-th edge's middles are 2k, 2k+1.

        Copies are numbered after the 2·edges middle nodes.
        """
        ends = self.structure.ends[self.free].astype(np.int64).ravel()
        first = len(ends) + np.concatenate([[0], np.cumsum(self.copies)])
        times = self.copies[ends]
        middle = np.repeat(np.arange(len(ends)), times)
        number = np.arange(len(middle)) - np.repeat(np.cumsum(times) - times, times)
        return first[ends[middle]] + number, middle

    @cached_property
    def escapes(self) -> Ints:
        """Pairs of copies that may stay without an edge, and one more node where they are odd."""
        optional = np.repeat(~self.structure.exact, self.copies)
        loose = 2 * len(self.free) + np.flatnonzero(optional)
        if len(optional) % 2:
            loose = np.append(loose, 2 * len(self.free) + len(optional))
        i, j = np.triu_indices(len(loose), 1)
        return np.stack([loose[i], loose[j]], axis=1)

    def heaviest(self, score: Array) -> tuple[Array, float]:
        """A best vertex and a bound on the best score."""
        from mlestruct_oracles import blossom

        free, (copy, middle), exact = self.free, self.spokes, self.structure.exact.any()
        # Twice the scores, halved again below: each middle node brings one half. Without exact
        # nodes a bonus for matched middle nodes replaces the escapes.
        greatest = np.abs(score[free]).max(initial=0.5)
        bonus = 0.0 if exact else 2.0 ** np.ceil(np.log2(greatest) + 1.0)
        two = np.arange(2 * len(free)).reshape(-1, 2)
        edges = np.concatenate([two, np.stack([copy, middle], axis=1)])
        weights = np.concatenate([np.full(len(free), 2 * bonus), score[free][middle // 2] + bonus])
        nodes = 2 * len(free) + int(self.copies.sum())
        if exact:
            edges = np.concatenate([edges, self.escapes])
            weights = np.concatenate([weights, np.zeros(len(self.escapes))])
            try:
                best = blossom.perfect_matching_sparse(nodes + nodes % 2, edges, weights)
            except Infeasible as error:
                raise Infeasible("no set of allowed pairs fills every node") from error
        else:
            best = blossom.maximum_weight_matching_sparse(nodes, edges, weights)
        vertex = (self.structure.fixed == 1).astype(float)
        required = score[vertex > 0].sum()
        vertex[free] = best.partner[two[:, 0]] != two[:, 1]
        return vertex, float(best.upper / 2 - bonus * len(free) + required)
