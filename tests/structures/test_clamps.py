"""Fixed coordinates: what is forbidden stays forbidden, and contradictions are named."""

import numpy as np
import pytest

from mlestruct.errors import Infeasible
from mlestruct.oracle import Solver, Validated, resolve
from mlestruct.structures import BipartiteMatching, Custom, FactorGraph, Paths, chain, grid
from mlestruct.structures.batch import Batch
from mlestruct.testing import vertices

TWO_WAYS = [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("structure", "observed", "message"),
    [
        (FactorGraph([2], []).forbid([(0, 1)]), [1], "variable 0 is observed in state 1"),
        (chain(2, 2).clamp([0, -1]), [1, -1], "variable 0 is observed in state 1"),
        (BipartiteMatching(2, forbidden=[(0, 0)]), [0, -1], r"pair \(0, 0\) is forbidden"),
        (Custom(2, fixed=[0, -1]), [1, -1], "coordinate 0 is observed as 1, fixed at 0"),
        (Paths(TWO_WAYS, 0, 1, fixed=[0, -1]), [0], "arc 0 is forbidden"),
        (Paths(TWO_WAYS, 0, 1), [-1], "arc -1 is not in 0..1"),
        (chain(2, 2), [2, -1], "a state or −1 for every variable"),
        (BipartiteMatching(2), [2, -1], "a column or −1"),
        (Custom(2), [2, 0], "−1, 0 or 1"),
    ],
)
def test_a_clamp_never_allows_what_was_forbidden(structure, observed, message):
    with pytest.raises(ValueError, match=message):
        structure.clamp(observed)


def test_a_pair_is_not_both_required_and_forbidden():
    with pytest.raises(ValueError, match="both required and forbidden"):
        BipartiteMatching(2, forbidden=[(0, 0)], required=[(0, 0)])
    with pytest.raises(ValueError, match="row 0 has two required pairs"):
        BipartiteMatching(3, required=[(0, 0), (0, 1)])


@pytest.mark.parametrize("seed", range(20))
def test_propagation_keeps_exactly_the_agreeing_outcomes(seed):
    """Spreading fixed coordinates over tables, rows and columns loses and adds no outcome."""
    rng = np.random.default_rng(seed)
    for free in (FactorGraph([2, 3, 2], [(1, 0), (0, 1, 2)]), BipartiteMatching(3, 4, "partial")):
        listed = vertices(free)
        witness = listed[rng.integers(len(listed))]
        fixed = np.where(rng.random(free.size) < 0.15, witness, -1).astype(np.int8)
        if isinstance(free, BipartiteMatching):
            pinned = BipartiteMatching(3, 4, "partial", fixed=fixed)
        else:
            pinned = FactorGraph([2, 3, 2], [(1, 0), (0, 1, 2)], fixed=fixed)
        agrees = ((fixed < 0) | (listed == fixed)).all(axis=1)
        np.testing.assert_array_equal(pinned.contains(listed), agrees)


IMPOSSIBLE = [
    (
        BipartiteMatching(3, forbidden=[(0, 0), (0, 1), (1, 0), (1, 1)]),
        r"rows \[0, 1\] have only columns \[2\]|columns \[0, 1\] have only rows \[2\]",
    ),
    (BipartiteMatching(2, 3, "one_sided", forbidden=[(1, j) for j in range(3)]), r"rows \[1\]"),
    (chain(3, 2).forbid([(1, 0), (1, 1)]), "variable 1 has no possible state left"),
    (
        chain(2, 2).forbid(configurations=[(0, (a, b)) for a in (0, 1) for b in (0, 1)]),
        r"factor on variables \[0, 1\]|variable",
    ),
    (Paths([(0, 1), (1, 2)], 0, 2, fixed=[-1, 0]), "no allowed path leads from node 0 to node 2"),
    (
        Paths([(0, 1), (0, 2), (1, 3), (2, 3)], 0, 3, fixed=[1, 1, -1, -1]),
        r"required arcs \[0, 1\]",
    ),
    (Custom(3, exactly_one=[[0, 1]], fixed=[0, 0, -1]), "group 0 has no allowed coordinate"),
    (Custom(2, exactly_one=[[0, 1]], fixed=[1, 1]), r"more than one required coordinate: \[0, 1\]"),
]


@pytest.mark.parametrize(("structure", "message"), IMPOSSIBLE)
def test_an_impossible_structure_names_its_reason(structure, message):
    """Rows and columns (Hall), variable or factor, source and sink, group."""
    batch = Batch.of(structure)
    oracle = Validated(resolve(structure.default_oracle or "simplices", batch))
    with pytest.raises(Infeasible, match=message):
        oracle.many(batch, np.zeros(batch.size))


def test_arc_consistency_names_the_table_that_runs_empty():
    """Two neighbours that allow only contradictory states of a variable between them."""
    graph = grid(1, 3).forbid([(0, 0), (2, 1)], [(0, (1, 0)), (1, (1, 0))])
    assert graph.impossible() is not None
    assert len(vertices(graph)) == 0


def test_one_path_listed_as_arcs_is_not_read_as_a_vector():
    """An outcome [0, 1] of a two-arc path has the shape of a vertex and is none."""
    batch = Batch.of(Paths([(0, 1), (1, 2)], 0, 2))
    answer, upper = Validated(Solver(lambda score: [0, 1])).many(batch, np.array([2.0, 3.0]))
    assert answer.tolist() == [1.0, 1.0]
    assert upper.tolist() == [5.0]
