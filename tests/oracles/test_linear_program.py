"""The LP oracle against listed outcomes and random multipliers, with bounds that hold."""

import numpy as np
import pytest
from mlestruct_oracles.linear_program import LinearProgram, dual_bound

from mlestruct.errors import Infeasible
from mlestruct.inference.exact import outcomes
from mlestruct.oracle import Validated, resolve
from mlestruct.structures import (
    BipartiteMatching,
    Custom,
    FactorGraph,
    Matching,
    Paths,
    chain,
    grid,
)
from mlestruct.structures.batch import Batch

INTEGRAL = [
    chain(4, 3),
    FactorGraph([2, 3, 2], [(2, 0, 1)]),
    BipartiteMatching(3),
    BipartiteMatching(3, 4, "one_sided"),
    BipartiteMatching(3, 2, "partial"),
    BipartiteMatching(3, forbidden=[(0, 1)], required=[(1, 1)]),
]


@pytest.mark.parametrize("structure", INTEGRAL, ids=lambda s: f"{type(s).__name__}{s.size}")
def test_integral_polytopes_have_the_best_outcome(structure, rng):
    listed = outcomes(structure)
    oracle = Validated(LinearProgram())
    for _ in range(20):
        score = 3 * rng.normal(size=structure.size)
        vertex, upper = oracle.many(Batch.of(structure, count=1), score)
        best = (listed @ score).max()
        assert score @ vertex == pytest.approx(best, abs=1e-11)
        assert best - 1e-12 <= upper[0] <= best + 1e-10
        assert set(vertex.tolist()) <= {0.0, 1.0}


def test_local_polytopes_of_binary_graphs_are_half_integral(rng):
    graph = FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    batch = Batch.of([graph, grid(2, 3)])
    for _ in range(20):
        score = rng.normal(size=batch.size)
        vertices, upper = Validated(LinearProgram()).many(batch, score)
        reached = batch.totals(score * vertices)
        assert set(vertices.tolist()) <= {0.0, 0.5, 1.0}
        np.testing.assert_allclose(upper, reached, atol=1e-11)
        assert (reached + 1e-12 >= [(outcomes(s) @ score[batch.coordinates(m)]).max()
                                    for m, s in enumerate(batch.structures)]).all()  # fmt: skip


def test_any_multipliers_bound_the_value(rng):
    structure = Matching(6)
    rows = structure.constraints()
    score = rng.normal(size=structure.size)
    best = (outcomes(structure) @ score).max()
    for _ in range(100):
        assert dual_bound(structure, rows, score, rng.normal(size=6)) >= best
    one_sided = Custom(2, A=[[1.0, 1.0]], upper=[1.0])
    bound = dual_bound(one_sided, one_sided.constraints(), np.ones(2), np.array([-1.0]))
    assert bound == 2.0  # a negative multiplier of a row without a lower end says nothing


def test_polytopes_are_named_and_empty_ones_refused():
    oracle = resolve("linear_program", Batch.of(chain(2, 2)))
    oracle.many(Batch.of(chain(2, 2)), np.zeros(8))
    assert oracle.polytope == "local polytope"
    oracle.many(Batch.of(BipartiteMatching(2)), np.zeros(4))
    assert oracle.polytope == "stated constraints"
    empty = BipartiteMatching(2, forbidden=[(0, 0), (0, 1)])
    with pytest.raises(Infeasible, match=r"rows \[0\]"):
        oracle.many(Batch.of(empty), np.zeros(4))
    paths = Paths([(0, 1), (0, 2), (1, 3), (2, 3)], 0, 3)
    assert oracle.many(Batch.of(paths), np.array([1.0, 0, 1, 0]))[1][0] == pytest.approx(2.0)
