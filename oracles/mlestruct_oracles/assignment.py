"""Bipartite matchings by our own shortest augmenting paths, from where the last call ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, Ints, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.matching import BipartiteMatching
from mlestruct_oracles.native._door import assignment_solve

NONE = -1  # a row's column, before it has one
Start = tuple[Array, Ints]  # prices of columns, and every row's column


class Remembered:
    """Where the last call of every batch ended, while that batch lives; copies start empty."""

    def __init__(self) -> None:
        self.starts: WeakKeyDictionary[Batch[BipartiteMatching], list[Start]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[Remembered], tuple[()]]:
        return Remembered, ()


@dataclass(frozen=True)
class Assignment:
    """The heaviest bipartite matching of the structure's kind; ``upper`` is the value of its duals.

    O(n³) per example, GIL released. Square tables asked again start from their last duals: O(n²)
    and a search for every row that loses its column. Among equally good matchings the answer
    depends on what that batch object was asked before, and on nothing else.
    """

    polytope: str = HULL
    _last: Remembered = field(default_factory=Remembered, repr=False, compare=False)

    def many(self, batch: Batch[BipartiteMatching], scores: Array) -> Answers:
        scores = as_numbers(scores, "scores", batch.size)
        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        groups = list(batch.groups())
        starts = self._last.starts.pop(batch, None)  # a thread beside this one starts afresh
        if starts is None:
            starts = [_cold(structure, len(members)) for structure, members in groups]
        for (structure, members), start in zip(groups, starts, strict=True):
            table, first = batch.rows(scores, members), batch.offsets[members][:, None]
            asked = _prepared(structure, table)
            pairs, bound = _solve(structure, asked, members, start)
            gained = np.take_along_axis(asked, pairs, axis=1)
            upper[members] = np.maximum(bound, gained.sum(axis=1))
            if structure.kind == "partial":
                required = np.flatnonzero(structure.fixed == 1)
                vertices[(first + pairs)[gained > 0]] = vertices[first + required] = 1.0
                upper[members] += table[:, required].sum(axis=1)
            else:
                vertices[first + pairs] = 1.0
        self._last.starts[batch] = starts
        return vertices, upper

    def perturbable(self, batch: Batch[BipartiteMatching]) -> None:
        return None

    def memory(self, batch: Batch[BipartiteMatching]) -> list[Start] | None:
        starts = self._last.starts.get(batch)
        return None if starts is None else [(prices.copy(), own.copy()) for prices, own in starts]

    def remember(self, batch: Batch[BipartiteMatching], kept: list[Start]) -> None:
        starts = [_cold(structure, len(members)) for structure, members in batch.groups()]
        for (prices, own), (its, found) in zip(starts, kept, strict=True):
            prices[:], own[:] = its, found
            if not ((own >= NONE) & (own < prices.shape[1])).all():
                raise ValueError("a memory of other matchings")
        self._last.starts[batch] = starts


def _cold(structure: BipartiteMatching, count: int) -> Start:
    few, many = sorted(structure.shape)
    return np.zeros((count, many)), np.full((count, few), NONE)


def _solve(
    structure: BipartiteMatching, asked: Array, members: Ints, start: Start
) -> tuple[Ints, Array]:
    """The pairs of every example (of its columns, where they are fewer than rows), and bounds."""
    tables = asked.reshape(-1, *structure.shape)
    row, column = structure.columns, 1
    if structure.rows > structure.columns:
        tables, row, column = np.ascontiguousarray(tables.transpose(0, 2, 1)), column, row
    (prices, found), upper = start, np.empty(len(members))
    shape = (len(members), *tables.shape[1:])
    failed = assignment_solve(*shape, np.ascontiguousarray(tables), prices, found, upper)
    if failed != NONE:
        why = structure.impossible() or "no matching has a finite score"
        raise Infeasible(f"example {members[failed]}: {why}")
    return row * np.arange(found.shape[1]) + column * found, upper


def _prepared(structure: BipartiteMatching, table: Array) -> Array:
    """Forbidden pairs at −inf; where staying single is free, no pair is worth less than nothing.

    Required pairs of partial matchings are worth nothing here: they are added afterwards.
    """
    fixed = structure.fixed
    if structure.kind == "partial":
        return np.where(fixed >= 0, 0.0, np.maximum(table, 0.0))
    return np.where(fixed == 0, -np.inf, table) if (fixed == 0).any() else table
