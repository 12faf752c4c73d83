"""An oracle that lists all outcomes of small structures."""

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL
from mlestruct.testing import vertices


class BruteForce:
    """The best of all vertices, or of those that ``outcomes`` lists, which nothing is fixed in."""

    polytope = HULL

    def __init__(self, outcomes=vertices):
        self.outcomes, self.known = outcomes, {}

    def many(self, batch, scores):
        found, upper = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            if structure not in self.known:
                listed = self.outcomes(structure)
                self.known[structure] = listed[structure.contains(listed)]
            listed = self.known[structure]
            if len(listed) == 0:
                raise Infeasible("no outcome respects the fixed coordinates")
            table = batch.rows(np.maximum(scores, -1e300), members) @ listed.T
            found[batch.index(members)] = listed[table.argmax(axis=1)].ravel()
            upper[members] = table.max(axis=1)
        return found, upper
