"""Max-product on forests of factors of any order: exact MAP, batched over the whole dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.oracle import HULL, Answers
from mlestruct.structures.base import Array, as_numbers
from mlestruct.structures.batch import Batch
from mlestruct.structures.forests import sweep
from mlestruct.structures.graph import FactorGraph


@dataclass(frozen=True)
class Viterbi:
    """The best labelling of a forest. O(Σ table sizes · order) per example, GIL released."""

    polytope: str = HULL

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        vertices = np.zeros(batch.size)
        return vertices, sweep(batch, as_numbers(scores, "scores", batch.size), vertices, best=True)
