"""Piecewise likelihood: every piece of a graph is a small model of its own, sharing weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from mlestruct.features import Columns, Dense, Features, Sparse
from mlestruct.features.base import restart
from mlestruct.inference.choose import Reweighted
from mlestruct.learners.base import Start, Wraps, check_problem
from mlestruct.learners.convex import Learner, mle_struct
from mlestruct.learning.loop import Found, Loop
from mlestruct.structures import FactorGraph, RegionGraph
from mlestruct.structures.base import Array, Ints, Structure
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Rho
from mlestruct.structures.regions import Cover

Unaries = Literal["inside", "own"]
Pieces = Callable[[FactorGraph], Sequence[Sequence[int]]] | None


class Piece(NamedTuple):
    """A small structure, the coordinates it repeats, and the scores it takes over.

    The columns of all pieces' ``shares`` sum to one, so no score is lost or counted twice.
    """

    structure: FactorGraph
    repeats: Ints
    shares: sp.csr_array
    weight: float = 1.0


def clusters(structure: RegionGraph) -> list[Piece]:
    """A variable of its own for each largest table, which takes the scores of those it holds."""
    cover = Cover.of(structure)
    found = []
    for table in np.unique(cover.table):
        rows = np.flatnonzero(cover.table == table)
        repeats = cover.own[rows]
        alone = FactorGraph([len(rows)], [], fixed=structure.fixed[repeats])
        found.append(Piece(alone, repeats, sp.csr_array(cover.S.T[rows])))
    return found


def subgraphs(graph: FactorGraph, pieces: Sequence[Sequence[int]], unaries: Unaries) -> list[Piece]:
    """Groups of factors with their variables, and the variables no group has, on their own.

    Node scores are shared equally by the pieces that hold the node (``inside``), or are left to
    one more piece, the node alone (``own``).
    """
    lists = [np.asarray(factors, dtype=np.int64) for factors in pieces]
    for number, piece in enumerate(lists):
        if len(piece) == 0 or piece.min() < 0 or piece.max() >= graph.n_factors:
            raise ValueError(f"piece {number} must name factors in 0..{graph.n_factors - 1}")
    missing = set(range(graph.n_factors)).difference(*(piece.tolist() for piece in lists))
    if missing:
        raise ValueError(f"factor {min(missing)} is in no piece, so its scores would be lost")
    scopes = np.split(graph.scope, graph.scope_start[1:-1])[: graph.n_factors]
    nodes = [np.unique(np.concatenate([scopes[f] for f in factors])) for factors in lists]
    none = np.zeros(0, np.int64)
    used = np.bincount(np.concatenate([*lists, none]), minlength=graph.n_factors)
    held = np.bincount(np.concatenate([*nodes, none]), minlength=graph.n_nodes)
    own = np.zeros(graph.n_nodes) if unaries == "own" else 1.0 / np.maximum(held, 1)
    share = np.concatenate([own, 1.0 / np.maximum(used, 1)])
    alone = np.arange(graph.n_nodes) if unaries == "own" else np.flatnonzero(held == 0)
    groups = [*zip(nodes, lists, strict=True), *((np.array([i]), none) for i in alone)]
    found = []
    for inside, factors in groups:
        ranges = [np.arange(graph.node_start[i], graph.node_start[i + 1]) for i in inside]
        ranges += [np.arange(graph.table_start[f], graph.table_start[f + 1]) for f in factors]
        repeats = np.concatenate(ranges)
        inner = [np.searchsorted(inside, scopes[f]).tolist() for f in factors]
        structure = FactorGraph(graph.cards[inside], inner, fixed=graph.fixed[repeats])
        part = share[graph.table_of[repeats]] if len(factors) else np.ones(len(repeats))
        entries = (part, (np.arange(len(repeats)), repeats))
        shares = sp.csr_array(entries, shape=(len(repeats), graph.size))
        weight = 1.0 if graph.weight is None else float(graph.weight[inside].max())
        found.append(Piece(structure, repeats, shares, weight))
    return found


@dataclass(frozen=True)
class Lifted:
    """Features of pieces: a whole's potentials through W, and moments back through Wᵀ."""

    inner: Features
    W: sp.csr_array
    example: Ints
    rank: Ints
    """Every piece's number among the pieces of its example."""
    offsets: Ints

    @property
    def d(self) -> int:
        return self.inner.d

    @cached_property
    def columns(self) -> Columns:
        whole = self.inner.columns
        parts = [whole.index[whole.start[m] : whole.start[m + 1]] for m in self.example]
        start = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return Columns(start, np.concatenate(parts))

    def potentials(self, theta: Array) -> Array:
        return np.asarray(self.W @ self.inner.potentials(theta))

    def moments(self, tau: Array) -> Array:
        return self.inner.moments(self.W.T @ tau)

    def squares(self, v: Array) -> Array | None:
        """A piece's coordinate is one of the whole's."""
        return self.inner.squares(self.W.power(2).T @ v)

    def each(self, tau: Array) -> Array:
        """One pass over the whole's features per rank."""
        out, start = np.empty(self.columns.start[-1]), self.inner.columns.start
        rank = np.repeat(self.rank, np.diff(self.offsets))
        for number in np.unique(self.rank):
            local = self.inner.each(self.W.T @ np.where(rank == number, tau, 0.0))
            for p in np.flatnonzero(self.rank == number):
                m = self.example[p]
                out[self.columns.start[p] : self.columns.start[p + 1]] = local[
                    start[m] : start[m + 1]
                ]
        return out

    def select(self, members: Ints) -> Lifted:
        entries = [np.arange(self.offsets[p], self.offsets[p + 1]) for p in members]
        rows = sp.csr_array(self.W[np.concatenate(entries)])
        offsets = restart(self.offsets, members)
        return Lifted(self.inner, rows, self.example[members], self.rank[members], offsets)


@dataclass(frozen=True)
class Piecewise(Wraps):
    """Σ_m Σ_pieces [⟨θ, φ_p⟩ − log Z_p(θ)] − R(θ): ``learner`` on the pieces as examples.

    Convex, and exact inference in small pieces makes it fast; log Z ≤ Σ log Z_p once every
    variable is in a piece, so it is a lower bound on the likelihood. ``pieces`` maps a factor
    graph to lists of factors (default: each factor alone); whole chains and trees stay exact.
    """

    learner: Learner
    pieces: Pieces = None
    unaries: Unaries = "inside"

    @property
    def inference(self) -> Reweighted:
        """The whole structure's own entropy: that of pieces says nothing about an example."""
        return Reweighted(route=self.learner.route)

    def of(self, structure: Structure) -> list[Piece]:
        """The pieces of one structure."""
        if isinstance(structure, RegionGraph):
            return clusters(structure)
        if not isinstance(structure, FactorGraph):
            raise ValueError(f"a {type(structure).__name__} has no pieces")
        alone = [[f] for f in range(structure.n_factors)]
        lists = alone if self.pieces is None else self.pieces(structure)
        return subgraphs(structure, lists, self.unaries)

    def split(self, batch: Batch[Any], features: Features) -> tuple[Batch[FactorGraph], Features]:
        """Every piece as an example, with its share of the features."""
        check_problem(self.name, batch, features)
        assert batch.target is not None
        known = {s: self.of(s) for s in batch.structures}
        listed = [known[batch.structure(m)] for m in range(len(batch))]
        count = np.array([len(pieces) for pieces in listed])
        counted = np.array([p.weight for pieces in listed for p in pieces])
        W = sp.csr_array(
            sp.block_diag([sp.vstack([p.shares for p in pieces]) for pieces in listed], "csr")
        )
        repeats = [batch.offsets[m] + p.repeats for m, pieces in enumerate(listed) for p in pieces]
        parts: Batch[FactorGraph] = Batch.of(
            [p.structure for pieces in listed for p in pieces],
            weight=np.repeat(batch.weight, count) * counted,
            bias=W @ batch.bias,
        )
        parts = replace(parts, target=batch.target[np.concatenate(repeats)])
        if isinstance(features, Dense):
            return parts, Dense.of(parts, W @ np.asarray(features.matrix, dtype=float))
        if isinstance(features, Sparse):
            return parts, Sparse.of(parts, W @ features.matrix)
        example = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(example)) - np.repeat(np.cumsum(count) - count, count)
        return parts, Lifted(features, W, example, rank, parts.offsets)

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """Run the learner on the pieces; its weights score the whole."""
        return self.learner.run(*self.split(batch, features), loop, start)


def piecewise(
    rho: Rho = None, pieces: Pieces = None, unaries: Unaries = "inside", **settings: Any
) -> Piecewise:
    """Σ over pieces of their own log-likelihoods: no consistency, so no inference in the whole.

    ``rho`` reweights pieces with cycles; ``settings`` are those of :class:`Learner`.
    """
    if unaries not in ("inside", "own"):
        raise ValueError(f"unaries is {unaries!r}; they are 'inside' pieces or on their 'own'")
    learner = replace(mle_struct(rho, **settings), name="piecewise", alone=True)
    return Piecewise(learner, pieces, unaries)
