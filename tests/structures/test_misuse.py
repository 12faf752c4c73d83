"""Misuse is an error at the door that names the value; nothing is rounded, wrapped or ignored."""

import numpy as np
import pytest

from mlestruct.structures import BipartiteMatching, Custom, FactorGraph, Paths, chain, tree

LINE = Paths([(0, 1), (1, 2)], 0, 2)
ROW = [[1, 1]]
MISUSE = [
    (lambda: FactorGraph([0], []), "variable 0 has 0 states"),
    (lambda: FactorGraph([2, 2], [(0,)]), "factor 0 has scope"),
    (lambda: FactorGraph([2, 2], [(0, 0)]), "factor 0 has scope"),
    (lambda: FactorGraph([2, 2], [(0, 2)]), "names variable 2 of 2"),
    (lambda: FactorGraph([2, 2], [(0, -1)]), "factor 0 names variable"),
    (lambda: FactorGraph([2, 2], [(0, 1), (1, 0)]), "factor 1 repeats the variables"),
    (lambda: FactorGraph([2] * 4, [(2, 3), (0, 1, 3), (3, 1, 0)]), "factor 2 repeats"),
    (lambda: FactorGraph([2, 2], [(0, 1), (1,)]), r"factor 1 has scope \[1\]"),
    (lambda: FactorGraph([2, 2], [(1, 0, 1), (0,)]), r"factor 0 has scope \[1, 0, 1\]"),
    (lambda: tree([(0, 1), (1, 2), (2, 0)], [2, 2, 2]), "no cycle"),
    (lambda: chain(2, 2).forbid([(-1, 0)]), "no variable -1"),
    (lambda: chain(2, 2).forbid([(2, 0)]), "no variable 2"),
    (lambda: chain(2, 2).forbid([(0, 2)]), "variable 0 has no state 2"),
    (lambda: chain(2, 2).forbid(configurations=[(-1, (0, 0))]), "no factor -1"),
    (lambda: chain(2, 2).forbid(configurations=[(0, (0, 2))]), r"no entry \(0, 2\)"),
    (lambda: chain(2, 2).forbid(configurations=[(0, (0,))]), r"no entry \(0,\)"),
    (lambda: chain(2, 2).clamp({2: 0}), "no variable 2 to observe"),
    (lambda: chain(2, 2).clamp({-1: 0}), "no variable -1 to observe"),
    (lambda: chain(2, 2).clamp([0.5, -1]), "states are integers, got 0.5"),
    (lambda: chain(2, 2).clamp([-2, 0]), "a state or −1"),
    (lambda: chain(2, 2).clamp([0]), "a state or −1"),
    (lambda: BipartiteMatching(2, kind="both"), "kind is perfect, one_sided or partial"),
    (lambda: BipartiteMatching(2, 3), "a perfect matching is square"),
    (lambda: BipartiteMatching(3, 2, "one_sided"), "3 rows cannot each"),
    (lambda: BipartiteMatching(0, 2, "partial"), "rows is 0; it must be a whole number ≥ 1"),
    (lambda: BipartiteMatching(2, forbidden=[(0, 2)]), r"pair \(0, 2\) is outside"),
    (lambda: BipartiteMatching(2, forbidden=[(-1, 0)]), r"pair \(-1, 0\) is outside"),
    (lambda: BipartiteMatching(2).clamp([0.5, -1]), "columns are integers"),
    (lambda: BipartiteMatching(2).clamp([-2, 0]), "a column or −1"),
    (lambda: BipartiteMatching(2).clamp([0, 0]), "column 0 has two required"),
    (lambda: BipartiteMatching(2).encode([0.5, 1]), "columns are integers"),
    (lambda: BipartiteMatching(2).encode([0, 1, 1]), "a column for each of 2 rows"),
    (lambda: Paths([], 0, 1), "arcs are pairs"),
    (lambda: Paths([(0, 1)], 0, 0), "two different nodes"),
    (lambda: Paths([(0, 1), (1, 0)], 0, 1), "cycle"),
    (lambda: LINE.encode([0.7, 1.2]), "arcs are integers"),
    (lambda: LINE.encode([0, 1, 1]), "does not start where"),
    (lambda: LINE.encode([]), "a path is a list of arcs"),
    (lambda: Custom(0), "the number of coordinates is 0; it must be"),
    (lambda: Custom(2, shape=(3,)), "does not hold 2"),
    (lambda: Custom(2, exactly_one=[[]]), "group 0 must name"),
    (lambda: Custom(2, exactly_one=[[0, 2]]), "group 0 must name"),
    (lambda: Custom(2, exactly_one=[[0, 0]]), "group 0 names a coordinate twice"),
    (lambda: Custom(2, fixed=[0.5, -1]), "−1, 0 or 1"),
    (lambda: Custom(2, fixed=[255, -1]), "−1, 0 or 1"),
    (lambda: Custom(2, fixed=[0]), "−1, 0 or 1"),
    (lambda: Custom(2, A=[[1, 1, 1]]), "3 columns for 2"),
    (lambda: Custom(2, A=[[np.nan, 1]]), "NaN"),
    (lambda: Custom(2, A=ROW, lower=[np.nan]), "lower holds NaN"),
    (lambda: Custom(2, A=ROW, lower=[2], upper=[1]), "row 0 of A"),
    (lambda: Custom(2, A=ROW, lower=[0, 0]), r"lower has shape \(2,\) for 1 rows"),
    (lambda: Custom(2, lower=[0]), r"lower has shape \(1,\) for 0 rows"),
    (lambda: Custom(2).encode([0, 0.5]), "coordinate 1 is 0.5"),
    (lambda: Custom(2, exactly_one=[[0, 1]]).encode([1, 1]), "group 0 has 2 ones"),
]


@pytest.mark.parametrize(("build", "message"), MISUSE, ids=[message for _, message in MISUSE])
def test_misuse_is_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_whole_numbers_in_other_types_are_fine():
    assert chain(2, 2).clamp(np.array([1.0, -1.0])) == chain(2, 2).clamp([1, -1])
    assert chain(2, 2).encode([True, False]).tolist() == chain(2, 2).encode([1, 0]).tolist()
    assert LINE.encode(np.array([0.0, 1.0])).tolist() == [1.0, 1.0]
    assert Custom(2, fixed=[1.0, -1.0]).fixed.dtype == np.int8


def test_means_decode_to_an_outcome():
    """The likeliest state, column or arc of each part."""
    assert chain(2, 2).decode([0.4, 0.6, 0.9, 0.1, 0, 0, 0, 0]).tolist() == [1, 0]
    assert BipartiteMatching(2).decode([0.7, 0.3, 0.3, 0.7]).tolist() == [0, 1]
    partial = BipartiteMatching(2, kind="partial")
    assert partial.decode([0.7, 0.1, 0.1, 0.2]).tolist() == [0, -1]
    fork = Paths([(0, 1), (0, 2), (1, 3), (2, 3)], 0, 3)
    assert fork.decode([0.4, 0.6, 0.4, 0.6]) == [1, 3]


@pytest.mark.parametrize("kind", ["perfect", "one_sided", "partial"])
def test_a_table_of_pairs_is_an_outcome(kind, rng):
    """Of 0 and 1, at most one column a row, as its list of columns; what is none has its place."""
    from mlestruct import BipartiteMatching

    structure = BipartiteMatching(3, 3 if kind == "perfect" else 4, kind)
    chosen = rng.permutation(structure.columns)[:3]
    if kind == "partial":
        chosen[1] = -1
    table = (chosen[:, None] == np.arange(structure.columns)).astype(int)
    np.testing.assert_array_equal(structure.encode(table), structure.encode(chosen))
    for spoil, message in ((2, r"pair \(0, \d\) is 2"), (1, r"row 0 is matched to 2 columns")):
        wrong = table.copy()
        wrong[0, (chosen[0] + 1) % structure.columns] = spoil
        with pytest.raises(ValueError, match=message):
            structure.encode(wrong)
