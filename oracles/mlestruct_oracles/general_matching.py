"""Perfect and partial matchings of general graphs by our own blossom kernel, each answer proved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mlestruct.oracle import Answers, one_by_one
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.matching import Matching
from mlestruct_oracles import blossom
from mlestruct_oracles.native._door import blossom_table

SPARSE = 20  # with fewer than 1 / SPARSE of all pairs allowed, rows of neighbours are faster


@dataclass(frozen=True)
class Blossom:
    """The heaviest matching of a general graph; ``upper`` is the value of its duals.

    O(n³) per example and far less in practice, GIL released in the kernel; O(n²) memory, or
    O(edges) where less than a twentieth of all pairs is allowed.
    """

    polytope: str = "convex hull of matchings"

    def many(self, batch: Batch[Matching], scores: Array) -> Answers:
        return one_by_one(batch, scores, lambda structure: partial(_best, structure))


def _best(structure: Matching, score: Array) -> tuple[Array, float]:
    """A best vertex and a bound on the best score, required pairs included."""
    found = (_sparse if _is_sparse(structure) else _dense)(structure, score)
    vertex = np.zeros(structure.size)
    used = np.flatnonzero(found.partner > np.arange(structure.n_nodes))
    vertex[structure.graph.place(used, found.partner[used])] = 1.0
    if structure.kind == "perfect":
        return vertex, float(found.upper)
    required = np.flatnonzero(structure.fixed == 1)
    vertex[required] = 1.0
    return vertex, float(found.upper + score[required].sum())


def _is_sparse(structure: Matching) -> bool:
    return SPARSE * 2 * structure.size < structure.n_nodes**2


def _dense(structure: Matching, score: Array) -> blossom.ProvenMatching:
    n = structure.n_nodes
    table = np.empty((n, n))
    if structure.graph.complete:
        shut = _shut(structure)
        if shut.any():
            score = np.where(shut, -np.inf, score)
        blossom_table(n, np.ascontiguousarray(score), table)
    else:
        table.fill(-np.inf)
        open_ = ~_shut(structure)
        u, v = structure.ends[open_].T
        table[u, v] = table[v, u] = score[open_]
    if structure.kind == "perfect":
        return blossom.perfect_matching(table)
    return blossom.maximum_weight_matching(table)


def _sparse(structure: Matching, score: Array) -> blossom.ProvenMatching:
    open_ = ~_shut(structure)
    graph = structure.n_nodes, structure.ends[open_], score[open_]
    if structure.kind == "perfect":
        return blossom.perfect_matching_sparse(*graph)
    return blossom.maximum_weight_matching_sparse(*graph)


def _shut(structure: Matching) -> NDArray[np.bool_]:
    """Edges the solver may not choose: where nodes may stay single, required pairs come later."""
    shut: NDArray[np.bool_] = structure.fixed == 0
    return shut if structure.kind == "perfect" else structure.fixed >= 0
