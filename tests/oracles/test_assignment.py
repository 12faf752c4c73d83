"""Assignment equals brute force on every kind of bipartite matching."""

import numpy as np
import pytest
from mlestruct_oracles.assignment import Assignment

from mlestruct.errors import Infeasible
from mlestruct.oracle import attained
from mlestruct.structures import BipartiteMatching
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

KINDS = {
    "perfect": [
        BipartiteMatching(3),
        BipartiteMatching(4),
        BipartiteMatching(4, forbidden=[(0, 0), (1, 2), (1, 3)]),
        BipartiteMatching(4, required=[(2, 0)], forbidden=[(0, 1)]),
    ],
    "one_sided": [
        BipartiteMatching(3, 3, "one_sided"),
        BipartiteMatching(2, 5, "one_sided"),
        BipartiteMatching(3, 4, "one_sided", forbidden=[(0, 0), (1, 1), (2, 2)]),
        BipartiteMatching(3, 4, "one_sided", required=[(1, 3)]),
    ],
    "partial": [
        BipartiteMatching(3, kind="partial"),
        BipartiteMatching(2, 4, "partial"),
        BipartiteMatching(4, 2, "partial", forbidden=[(0, 0), (3, 1)]),
        BipartiteMatching(3, 3, "partial", required=[(0, 2)], forbidden=[(1, 1)]),
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_instances_equal_brute_force(kind, instances):
    for structure in KINDS[kind]:
        instances.agree(Assignment(), structure, vertices(structure), 10_000 // 4)


def test_mixed_sizes_in_one_batch():
    structures = [s for group in KINDS.values() for s in group]
    batch = Batch.of(structures)
    scores = np.random.default_rng(0).standard_normal(batch.size)
    answers, upper = Assignment().many(batch, scores)
    for m, structure in enumerate(structures):
        part = batch.coordinates(m)
        best = (vertices(structure) @ scores[part]).max()
        assert upper[m] == pytest.approx(best)
        assert attained(scores[part], answers[part]) == pytest.approx(best)


def test_an_impossible_matching_names_rows_and_columns():
    shut = [(row, column) for row in (0, 2) for column in (0, 1, 3)]
    batch = Batch.of([BipartiteMatching(4), BipartiteMatching(4, forbidden=shut)])
    with pytest.raises(Infeasible, match=r"example 1: .*\[0, 2\].*\[2\]|example 1: columns"):
        Assignment().many(batch, np.zeros(32))
