"""The local polytope's best vertex: messages where they prove their labelling, HiGHS elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mlestruct.batch import Batch
from mlestruct.oracle import Answers
from mlestruct.structures.base import Array
from mlestruct.structures.graph import FactorGraph
from mlestruct_oracles.linear_program import LinearProgram
from mlestruct_oracles.trw_s import TRWS

MET = 1e-9  # relative: a bound that near its labelling proves it


@dataclass(frozen=True)
class Relaxation:
    """Maximises over pairwise graphs' local polytope; TRW-S's cost where the relaxation is tight.

    A bound of TRW-S's is one on the relaxation, so a labelling that meets it is the best vertex.
    Only examples where none does are linear programs.
    """

    messages: TRWS = field(default_factory=TRWS)
    program: LinearProgram = field(default_factory=LinearProgram)
    polytope: str = "local polytope"

    def many(self, batch: Batch[FactorGraph], scores: Array) -> Answers:
        scores = batch.vector(scores, "scores")
        vertices, upper = self.messages.many(batch, scores)
        reached = batch.totals(np.where(vertices != 0, scores, 0.0) * vertices)
        left = np.flatnonzero(upper - reached > MET * (1.0 + np.abs(upper)))
        if len(left):
            part = batch.select(left)
            place = np.isin(batch.owner, left)
            vertices[place], upper[left] = self.program.many(part, scores[place])
        return vertices, upper
