"""Whether consistency of tables costs anything under CAMEL(0), or piecewise learning has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.families.consistency.camel import Camel
from mlestruct.families.consistency.coupled import Coupled
from mlestruct.features import Features
from mlestruct.regulariser import Regulariser
from mlestruct.structures.cover import Cover


@dataclass(frozen=True)
class Binding:
    """Whether consistency costs anything: what piecewise learning leaves inconsistent."""

    violation: float
    """The largest disagreement of two tables about a marginal under piecewise weights."""
    rank: int
    """Independent consistency constraints in the whole batch."""
    cost: float
    """How much entropy, less penalty, consistency takes away: 0 where it does not bind."""


def binding(
    batch: Batch[Any], features: Features, regulariser: float | Regulariser | None = 1.0
) -> Binding:
    """Do the consistency constraints of CAMEL(0) bind? Both problems are solved by their duals."""
    loose = Camel("piecewise", regulariser, rounds=1, consistent=False, route="direct")
    tied = Coupled(loose.dual(batch, features), ridge=regulariser is not None)
    apart, *_ = loose.each(batch, features)
    none = np.zeros(tied.B.shape[0])
    start = np.concatenate([np.where(np.isfinite(apart.theta), apart.theta, 0.0), none])
    cost = -apart.certificate.objective - tied(tied.solve(start))[0]
    ranks = {s: int(np.linalg.matrix_rank(Cover.of(s).B.toarray())) for s in batch.structures}
    rank = sum(ranks[batch.structure(m)] for m in range(len(batch)))
    return Binding(tied.violation(start), rank, cost)
