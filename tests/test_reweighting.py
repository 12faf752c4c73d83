"""Every way to say ρ gives the counting numbers it names, with the bound a theorem allows."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.structures.entropy import Counting, counting_numbers, hypertree


@pytest.mark.parametrize(
    ("structure", "name", "rho", "bound"),
    [
        (ms.chain(3, 2), "bethe", 1.0, "exact"),
        (ms.grid(2, 3), "bethe", 1.0, "none"),
        (ms.grid(2, 3), "independent", 0.0, "upper"),
        (ms.grid(3, 3), "half", 0.5, "upper"),
        (ms.grid(2, 3), "trees", None, "upper"),
        (ms.BipartiteMatching(4), "hypertree", 0.625, "upper"),
        (ms.BipartiteMatching(4), "bethe", 1.0, "lower"),
        (ms.BipartiteMatching(4), "half", 0.5, "upper"),
    ],
)
def test_names_are_reweightings(structure, name, rho, bound):
    counting = counting_numbers(structure, name)
    np.testing.assert_allclose(counting, structure.counting(rho))
    assert structure.bound(counting).kind == bound


def test_cliques_only_counts_factors():
    """CAMEL(0)'s entropy: 1 on factors, 0 on nodes; concave on a grid, where Bethe is not."""
    graph = ms.grid(2, 3)
    counting = counting_numbers(graph, "cliques")
    assert counting.tolist() == [0.0] * 6 + [1.0] * 7
    assert graph.convex(counting)
    assert not graph.convex(counting_numbers(graph, "bethe"))


def test_rectangular_hypertree_claims_no_bound():
    """½(1 + 1/q) on rows and ½(1 + 1/m) on columns is not proved to bound, and does not say so."""
    matching = ms.BipartiteMatching(2, 4, "one_sided")
    assert np.asarray(hypertree(matching)).tolist() == [0.75] * 2 + [0.625] * 4
    assert matching.bound(counting_numbers(matching, "hypertree")).kind == "none"


def test_functions_lists_and_counting_numbers_pass_through():
    graph = ms.chain(3, 2)
    np.testing.assert_array_equal(
        counting_numbers(graph, lambda g: np.full(g.n_factors, 0.25)), graph.counting(0.25)
    )
    np.testing.assert_array_equal(counting_numbers(graph, [0.5, 1.0]), graph.counting([0.5, 1.0]))
    own = np.arange(5.0)
    np.testing.assert_array_equal(counting_numbers(graph, Counting(lambda g: own)), own)


def test_wrong_names_and_structures_are_refused():
    with pytest.raises(ValueError, match="no reweighting named 'beta'; there are bethe"):
        counting_numbers(ms.chain(2, 2), "beta")
    with pytest.raises(ValueError, match="not for a BipartiteMatching"):
        counting_numbers(ms.BipartiteMatching(2), "cliques")
