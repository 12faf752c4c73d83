"""b-matchings: bipartite ones as flows, general ones as matchings of a larger graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers, one_by_one
from mlestruct.structures.b_matching import BMatching
from mlestruct.structures.base import Array, Ints
from mlestruct_oracles.min_cost_flow import Network


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
