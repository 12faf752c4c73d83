"""Matchings of general graphs: their coordinates, entropies, polytopes, and inference over them."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from mlestruct import Batch, Entropy, Infeasible, Matching, marginals

# A bridgeless cubic graph with 9 perfect matchings, where Bethe exceeds log Z inside the hull.
KLEE = [
    *[(0, 7), (0, 10), (0, 13), (1, 2), (1, 4), (1, 8), (2, 5), (2, 9), (3, 4), (3, 6), (3, 11)],
    *[(4, 12), (5, 6), (5, 14), (6, 15), (7, 8), (7, 9), (8, 9), (10, 11), (10, 12), (11, 12)],
    *[(13, 14), (13, 15), (14, 15)],
]


def listed(structure):
    """All vertices, from the definition: at most (or exactly) one edge at a node."""

    def extend(rest):
        if not rest:
            yield []
            return
        first, others = rest[0], rest[1:]
        if structure.kind == "partial":
            yield from extend(others)
        for k in around[first]:
            u, v = structure.ends[k]
            other = int(v if u == first else u)
            if other in others and structure.fixed[k] != 0:
                yield from ([k, *more] for more in extend([w for w in others if w != other]))

    around = [np.flatnonzero((structure.ends == v).any(axis=1)) for v in range(structure.n_nodes)]
    rows = [np.isin(np.arange(structure.size), m) for m in extend(list(range(structure.n_nodes)))]
    table = np.array(rows, dtype=float).reshape(-1, structure.size)
    return table[(table[:, structure.fixed == 1] == 1).all(axis=1)]


def random_graph(rng, n, share, kind):
    pairs = np.array(list(combinations(range(n), 2)))
    keep = np.flatnonzero(rng.random(len(pairs)) < share)
    return Matching(n, pairs[keep if len(keep) else [0]], kind)


def test_listed_edges_keep_their_order_and_pairs_are_found_in_either_direction():
    graph = Matching(4, [(2, 3), (1, 0), (3, 0)])
    assert graph.encode([(0, 1), (3, 2)]).tolist() == [1, 1, 0]
    assert graph.shape == (3,)


@pytest.mark.parametrize("kind", ["perfect", "partial"])
def test_pairs_partners_and_vertices_say_the_same(rng, kind):
    graph = random_graph(rng, 6, 0.8, kind)
    for vertex in listed(graph):
        partner = graph.decode(vertex)
        pairs = [(v, int(w)) for v, w in enumerate(partner) if v < w]
        np.testing.assert_array_equal(graph.encode(partner), vertex)
        np.testing.assert_array_equal(graph.encode(pairs), vertex)


@pytest.mark.parametrize(
    ("edges", "says"),
    [
        ([(0, 1), (1, 0)], r"\(0, 1\) is listed twice"),
        ([(0, 1), (2, 2)], "edge 1 joins node 2 to itself"),
        ([(0, 4)], r"\(0, 4\); there are 4 nodes"),
        ([], "at least one edge"),
        ([(0, 1, 2)], "expected pairs"),
        ([(0, 0.5)], "node numbers are integers, got 0.5"),
    ],
)
def test_edges_that_are_none_are_named(edges, says):
    with pytest.raises(ValueError, match=says):
        Matching(4, edges)


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ([(0, 1), (1, 2)], "node 1 is in 2 pairs"),
        ([(0, 1)], "node 2 is not matched"),
        ([(0, 2), (1, 3)], r"\(0, 2\) is not an edge"),
        ([1, 0, 3, 1], "node 2 has partner 3, whose partner is 1"),
        ([1, 0, 2, 3], "node 2 has partner 2"),
        ([1, 0], "a partner for each of 4 nodes"),
        ([(0, 7)], "no pair of two nodes in 0..3"),
    ],
)
def test_outcomes_that_are_no_matching_are_named(outcome, says):
    with pytest.raises(ValueError, match=says):
        Matching(4, [(0, 1), (1, 2), (2, 3), (3, 0)]).encode(outcome)


def test_clamping_keeps_exactly_the_matchings_that_agree():
    graph = Matching(6, kind="partial", forbidden=[(4, 5)])
    clamped = graph.clamp([(0, 1)])
    agree = [v for v in listed(graph) if v[graph.graph.index([(0, 1)])[0]] == 1]
    assert sorted(map(tuple, listed(clamped))) == sorted(map(tuple, agree))
    assert clamped == graph.clamp([1, 0, -1, -1, -1, -1])
    with pytest.raises(ValueError, match="forbidden"):
        graph.clamp([(4, 5)])
    with pytest.raises(ValueError, match="node 0 has 2 required"):
        Matching(6, required=[(0, 1), (0, 2)])
    with pytest.raises(ValueError, match="both required and forbidden"):
        Matching(6, required=[(0, 1)], forbidden=[(1, 0)])


@pytest.mark.parametrize("kind", ["perfect", "partial"])
def test_the_entropy_is_the_matching_entropy_of_mle_struct(rng, kind):
    graph = Matching(6, kind=kind)
    tau, rho = graph.interior() * rng.uniform(0.5, 1, 15), rng.random(6)
    edge = 1 - rho[graph.ends].sum(axis=1)
    expected = -(tau * np.log(tau) + edge * (1 - tau) * np.log(1 - tau)).sum()
    if kind == "partial":
        slack = 1 - graph.incidence() @ tau
        expected -= (rho * slack * np.log(slack)).sum()
    entropy = Entropy.of(Batch.of(graph), rho)
    assert entropy.each(tau)[0] == pytest.approx(expected)


def test_bounds_are_claimed_where_a_theorem_says_so_only():
    for graph in (Matching(4), Matching(5, kind="partial"), Matching(16, KLEE)):
        assert graph.bound(graph.counting(0.5)).kind == "upper"
        assert graph.bound(graph.counting(1.0)).kind == "none"
        assert all(graph.convex(graph.counting(rho)) for rho in (0.0, 0.5, 1.0))
        assert not graph.convex(graph.counting(1.2))
    square = Matching(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert square.bound(square.counting(1.0)).kind == "lower"
    assert square.bound(square.counting() + 0.1).kind == "none"


def least_share(point, vertices):
    """The largest ε such that the point averages the vertices with weights of at least ε."""
    count, size = vertices.shape
    rows = np.vstack([np.hstack([vertices.T, np.zeros((size, 1))]), [[1.0] * count + [0.0]]])
    at_least = np.hstack([-np.eye(count), np.ones((count, 1))])
    goal = np.r_[np.zeros(count), -1.0]
    found = linprog(goal, at_least, np.zeros(count), rows, np.r_[point, 1.0])
    return -found.fun if found.status == 0 else -np.inf


def test_closed_form_interiors_average_all_matchings_with_positive_weights(rng):
    cases = [Matching(4), Matching(6), Matching(5, kind="partial"), Matching(6, kind="partial")]
    cases += [random_graph(rng, 6, 0.6, "partial") for _ in range(5)]
    for graph in cases:
        assert least_share(graph.interior(), listed(graph)) > 1e-9


def test_edges_in_no_perfect_matching_end_at_zero_with_a_proof():
    path = Matching(4, [(0, 1), (1, 2), (2, 3)])
    found = marginals(Batch.of(path), np.array([0.0, 9.0, 0.0]))
    np.testing.assert_allclose(found.tau, [1, 0, 1], atol=1e-9)
    assert found.certificate.gap < 1e-6


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (Matching(5), "5 nodes cannot all be paired"),
        (Matching(4, [(0, 1), (1, 2), (2, 0)]), "among themselves|no allowed edge"),
        (Matching(4, forbidden=[(3, v) for v in range(3)]), "node 3 has no allowed edge|nodes"),
        (Matching(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5)]), r"nodes \[0, 1, 2\]"),
    ],
)
def test_what_makes_a_perfect_matching_impossible_is_named(graph, says):
    with pytest.raises(Infeasible, match=says):
        marginals(Batch.of(graph), np.zeros(graph.size))


@pytest.mark.parametrize("edges", [None, [(0, 1), (1, 2)]])
def test_no_points_are_no_points(edges):
    """A graph without a perfect matching lists none, and none of none lies outside."""
    structure = Matching(3, edges=edges, kind="partial")
    assert structure.contains(np.zeros((0, structure.size))).shape == (0,)
