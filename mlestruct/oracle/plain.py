"""Oracles without a solver: products of simplices, and lists of all outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle.protocol import HULL, Answers
from mlestruct.structures.base import Array, Ints, Structure
from mlestruct.structures.batch import Batch


@dataclass(frozen=True)
class Simplices:
    """Product of simplices: every exactly-one group picks its best coordinate. O(size)."""

    polytope: str = HULL

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = np.zeros(batch.size), np.zeros(len(batch))
        for structure, members in batch.groups():
            if not hasattr(structure, "groups"):
                raise ValueError(f"a {type(structure).__name__} states no exactly-one groups")
            table = batch.rows(scores, members)
            answer = np.zeros_like(table)
            grouped = np.zeros(structure.size, dtype=bool)
            if structure.groups:
                inside = np.concatenate(structure.groups)
                if np.bincount(inside).max() > 1:
                    raise ValueError("a product of simplices needs groups that do not overlap")
                grouped[inside] = True
                fixed, sizes = structure.fixed[inside], [len(g) for g in structure.groups]
                allowed = np.where(fixed == 0, -np.inf, table[:, inside])
                allowed[:, fixed == 1] = np.inf
                row, first = np.arange(len(members))[:, None], _firsts(allowed, np.array(sizes))
                answer[row, inside[first]] = 1.0
            alone = ~grouped
            answer[:, alone] = np.where(
                structure.fixed[alone] >= 0, structure.fixed[alone], table[:, alone] > 0
            )
            vertices[batch.index(members)] = answer.ravel()
            upper[members] = np.where(answer > 0, table, 0.0).sum(axis=1)
        return vertices, upper


def _firsts(table: Array, sizes: Ints) -> Ints:
    """Where each group of columns has its largest entry first, row by row."""
    starts, width = np.cumsum(sizes) - sizes, table.shape[1]
    best = np.repeat(np.maximum.reduceat(table, starts, axis=1), sizes, axis=1)
    return np.minimum.reduceat(np.where(table == best, np.arange(width), width), starts, axis=1)


@dataclass(frozen=True)
class BruteForce:
    """Scores every listed outcome; exact, for structures small enough. O(outcomes·size)."""

    outcomes: Callable[[Structure], Array]
    polytope: str = HULL
    _lists: dict[Structure, Array] = field(default_factory=dict, repr=False)

    def vertices(self, structure: Structure) -> Array:
        """All vertices that respect the structure's fixed coordinates, one per row."""
        if structure not in self._lists:
            listed = np.asarray(self.outcomes(structure), dtype=float)
            self._lists[structure] = listed[structure.contains(listed)]
        return self._lists[structure]

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            listed = self.vertices(structure)
            if len(listed) == 0:
                raise Infeasible("no outcome respects the fixed coordinates")
            table = batch.rows(np.where(np.isneginf(scores), -1e300, scores), members) @ listed.T
            best = table.argmax(axis=1)
            vertices[batch.index(members)] = listed[best].ravel()
            upper[members] = table[np.arange(len(members)), best]
        return vertices, upper
