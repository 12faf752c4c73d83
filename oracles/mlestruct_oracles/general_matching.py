"""Perfect and partial matchings of general graphs by our own blossom kernel, each answer proved."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from mlestruct.batch import Batch
from mlestruct.kernels import kernel
from mlestruct.oracle import Answers, one_by_one
from mlestruct.structures.base import Array, Flags, Ints
from mlestruct.structures.matching import Matching
from mlestruct_oracles import blossom

SPARSE = 20  # with fewer than 1 / SPARSE of all pairs allowed, rows of neighbours are faster


class Scratch:
    """Memory for square matrices, lent to one thread at a time and kept for the next call."""

    def __init__(self) -> None:
        self.spare: list[Array] = []

    def borrow(self, n: int) -> Array:
        """Uninitialised room for n² numbers at least."""
        try:
            room = self.spare.pop()
        except IndexError:  # asking first whether there is one would race
            room = np.empty(0)
        return room if room.size >= n * n else np.empty(n * n)

    def give_back(self, room: Array) -> None:
        self.spare.append(room)

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()


@dataclass(frozen=True)
class Blossom:
    """The heaviest matching of a general graph; ``upper`` is the value of its duals.

    O(n³) per example and far less in practice, GIL released in the kernel; O(n²) memory, or
    O(edges) where less than a twentieth of all pairs is allowed.
    """

    polytope: str = "convex hull of matchings"
    _scratch: Scratch = field(default_factory=Scratch, repr=False, compare=False)

    def many(self, batch: Batch[Matching], scores: Array) -> Answers:
        return one_by_one(batch, scores, lambda structure: partial(self._best, structure))

    def _best(self, structure: Matching, score: Array) -> tuple[Array, float]:
        solve = _sparse if _is_sparse(structure) else self._dense
        return _vertex(structure, score, solve(structure, score))

    def _dense(self, structure: Matching, score: Array) -> blossom.ProvenMatching:
        n = structure.n_nodes
        room = self._scratch.borrow(n)
        weights = room[: n * n].reshape(n, n)
        try:
            if structure.graph.complete:
                _fill(structure.fixed, structure.kind == "partial", score, weights)
            else:
                weights.fill(-np.inf)
                open_ = _open(structure)
                u, v = structure.ends[open_].T
                weights[u, v] = weights[v, u] = score[open_]
            if structure.kind == "perfect":
                return blossom.perfect_matching(weights)
            return blossom.maximum_weight_matching(weights)
        finally:
            self._scratch.give_back(room)


def _is_sparse(structure: Matching) -> bool:
    return SPARSE * 2 * structure.size < structure.n_nodes**2


def _sparse(structure: Matching, score: Array) -> blossom.ProvenMatching:
    from mlestruct_oracles import blossom_sparse

    open_ = _open(structure)
    ends, weights = structure.ends[open_].astype(np.int64), score[open_]
    if structure.kind == "perfect":
        return blossom_sparse.perfect_matching_sparse(structure.n_nodes, ends, weights)
    return blossom_sparse.maximum_weight_matching_sparse(structure.n_nodes, ends, weights)


def _open(structure: Matching) -> Ints:
    """Edges the solver may choose: where nodes may stay single, required pairs are added later."""
    shut = structure.fixed >= 0 if structure.kind == "partial" else structure.fixed == 0
    return np.flatnonzero(~shut)


def _vertex(
    structure: Matching, score: Array, found: blossom.ProvenMatching
) -> tuple[Array, float]:
    """The matching's edges, and the bound on the best score, required pairs included."""
    vertex = np.zeros(structure.size)
    used = np.flatnonzero(found.partner > np.arange(structure.n_nodes))
    vertex[structure.graph.place(used, found.partner[used])] = 1.0
    if structure.kind == "perfect":
        return vertex, float(found.upper)
    required = np.flatnonzero(structure.fixed == 1)
    vertex[required] = 1.0
    return vertex, float(found.upper + score[required].sum())


@kernel
def _fill(fixed: Flags, partial: bool, score: Array, weights: Array) -> None:
    """The scores of a complete graph as a symmetric matrix, −inf where an edge is shut. O(n²)."""
    n = len(weights)
    tile = 32  # the mirrored writes stay in the cache
    for top in range(0, n, tile):
        for left in range(top, n, tile):
            for i in range(top, min(top + tile, n)):
                row = i * (2 * n - i - 1) // 2 - i - 1
                for j in range(max(left, i + 1), min(left + tile, n)):
                    shut = fixed[row + j] == 0 or (partial and fixed[row + j] == 1)
                    value = -np.inf if shut else score[row + j]
                    weights[i, j] = value
                    weights[j, i] = value
    for i in range(n):
        weights[i, i] = -np.inf
