"""b-matchings: bipartite ones as flows, general ones as integer programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Answer, Answers, attained
from mlestruct.structures.b_matching import BMatching
from mlestruct.structures.base import Array
from mlestruct_oracles.min_cost_flow import Network


@dataclass(frozen=True)
class BMatchingSolver:
    """The heaviest b-matching of any graph.

    Bipartite graphs: a minimum-cost flow, polynomial, the rounding of scores in ``upper``. Others:
    scipy's ``milp``, exponential at worst (GIL released); ``upper`` is its proven bound, looser
    than the score reached where ``seconds`` per example run out.
    """

    seconds: float = np.inf
    polytope: str = HULL

    def many(self, batch: Batch[BMatching], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            flow = structure.as_flow()
            network = None if flow is None else Network.of(flow[0], structure.fixed, *flow[1:])
            for m in members.tolist():
                part = batch.coordinates(m)
                if network is None:
                    answer = self._integer_program(structure, scores[part])
                else:
                    found = network.heaviest(scores[part])
                    answer = None if found is None else Answer(*found)
                if answer is None:
                    why = structure.impossible() or "no b-matching fits the capacities"
                    raise Infeasible(f"example {m}: {why}")
                vertices[part], upper[m] = answer.vertex, answer.upper
        return vertices, upper

    def perturbable(self, batch: Batch[BMatching]) -> None:
        return None

    def _integer_program(self, structure: BMatching, score: Array) -> Answer | None:
        from scipy.optimize import Bounds, LinearConstraint, milp

        rows, fixed = structure.constraints(), structure.fixed
        finite = np.where(fixed == 0, 0.0, score)
        found = milp(
            -finite,
            integrality=np.ones(structure.size, dtype=np.int64),
            bounds=Bounds(np.maximum(fixed, 0), np.where(fixed < 0, 1, fixed)),
            constraints=LinearConstraint(rows.A, rows.lo, rows.hi),
            options={"mip_rel_gap": 0.0, "time_limit": self.seconds},
        )
        if found.status == 2:
            return None
        if found.x is None:
            raise RuntimeError(f"no b-matching found within {self.seconds:g} s: {found.message}")
        vertex = np.abs(np.rint(found.x))
        bound = found.mip_dual_bound
        return Answer(vertex, attained(finite, vertex) if bound is None else -float(bound))
