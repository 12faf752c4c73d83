"""Bipartite matchings by scipy's linear_sum_assignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array
from mlestruct.structures.matching import BipartiteMatching


@dataclass(frozen=True)
class Assignment:
    """The heaviest bipartite matching of the structure's kind. O(n³) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[BipartiteMatching], scores: Array) -> Answers:
        from scipy.optimize import linear_sum_assignment

        vertices, upper = np.zeros(batch.size), np.empty(len(batch))
        for m in range(len(batch)):
            structure, part = batch.structure(m), batch.coordinates(m)
            table = scores[part].reshape(structure.shape)
            answer = vertices[part].reshape(structure.shape)
            try:
                rows, columns = linear_sum_assignment(_prepared(structure, table), maximize=True)
            except ValueError as error:
                raise Infeasible(f"example {m}: {structure.impossible() or error}") from error
            if structure.kind == "partial":
                open_ = structure.fixed.reshape(structure.shape)[rows, columns] != 0
                wanted = open_ & (table[rows, columns] > 0)
                rows, columns = rows[wanted], columns[wanted]
            answer[rows, columns] = 1.0
            answer[structure.fixed.reshape(structure.shape) == 1] = 1.0
            upper[m] = table[answer != 0].sum()
        return vertices, upper

    def perturbable(self, batch: Batch[BipartiteMatching]) -> None:
        return None


def _prepared(structure: BipartiteMatching, table: Array) -> Array:
    """Forbidden pairs at −inf; where staying single is free, no pair is worth less than nothing."""
    shut = structure.fixed.reshape(structure.shape) == 0
    if structure.kind == "partial":
        return np.where(shut, 0.0, np.maximum(table, 0.0))
    return np.where(shut, -np.inf, table) if shut.any() else table
