"""Perfect and maximum-weight matchings: right wherever enumeration reaches, proved everywhere."""

import csv
import doctest
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from mlestruct_oracles import blossom
from mlestruct_oracles.blossom import (
    maximum_weight_matching,
    maximum_weight_matching_sparse,
    perfect_matching,
    perfect_matching_sparse,
)
from scipy.spatial import Delaunay

from mlestruct.errors import Infeasible

INF = np.inf
BOTH = [perfect_matching, maximum_weight_matching]


# --- references and instances --------------------------------------------------------------------


def odd_sets(matching):
    return [matching.order[a:b] for a, b in zip(matching.first, matching.last, strict=True)]


def prove_sparse(n, edges, scores, matching):
    """By how much a matching could be heavier than this one: each odd set looked at by itself."""
    edges, y = np.reshape(edges, (-1, 2)), matching.y
    assert matching.z.min(initial=0.0) >= 0.0
    covered, bound = y[edges].sum(axis=1), y.tolist()
    for members, z in zip(odd_sets(matching), matching.z, strict=True):
        assert len(members) % 2 == 1
        inside = np.zeros(n, bool)
        inside[members] = True
        covered[inside[edges].all(axis=1)] += z
        bound.append(z * (len(members) // 2))
    if (matching.partner < 0).any():
        assert y.min() >= 0.0
    short = np.asarray(scores)[np.asarray(scores) > -INF] - covered[np.asarray(scores) > -INF]
    return math.fsum(bound) + n / 2 * max(0.0, short.max(initial=0.0)) - matching.weight


def prove(weights, matching):
    upper = np.triu_indices(len(weights), 1)
    ends = np.stack(upper, axis=1)
    return prove_sparse(len(weights), ends, weights[upper], matching)


def best_weight(weights, perfect):
    """The optimum by dynamic programming over all sets of nodes: O(2ⁿ n)."""
    n = len(weights)
    best = np.zeros(1)  # of the sets of nodes from v + 1 on; node u is bit n - 1 - u
    for v in reversed(range(n)):
        joined = np.full(len(best), -np.inf) if perfect else best.copy()
        for u in range(v + 1, n):
            halves = (-1, 2, 1 << (n - 1 - u))
            pair = weights[u, v] + best.reshape(halves)[:, 0]
            with_u = joined.reshape(halves)[:, 1]
            np.maximum(with_u, pair, out=with_u)
        best = np.concatenate([best, joined])
    return best[-1]


def mirrored(weights):
    """The symmetric matrix with this upper triangle and a diagonal nobody may look at."""
    weights = np.triu(weights, 1)
    return weights + weights.T + np.diag(np.full(len(weights), 1e9))


def masked(weights, rng, share):
    keep = rng.random(weights.shape) < share
    return mirrored(np.where(np.triu(keep, 1), weights, -INF)) if len(weights) else weights


def clusters(rng, n):
    """Odd groups inside odd groups, near within and far between: blossoms inside blossoms."""
    level = (np.arange(n) + 1) // 2 if rng.random() < 0.5 else rng.integers(0, 3, n)
    cost = np.cumsum(rng.integers(0, 4, n + 2))
    weights = -cost[np.maximum.outer(level, level)] - rng.integers(0, 2, (n, n))
    order = rng.permutation(n)
    return weights[np.ix_(order, order)].astype(float)


KINDS = {
    "ties": lambda rng, n: rng.integers(0, 3, (n, n)).astype(float),
    "signs": lambda rng, n: rng.integers(-5, 6, (n, n)).astype(float),
    "huge": lambda rng, n: rng.integers(-(2**48), 2**48, (n, n)).astype(float),
    "clusters": clusters,
    "reals": lambda rng, n: rng.normal(size=(n, n)),
    "rank one": lambda rng, n: np.outer(*[rng.random(n)] * 2),
    "scales": lambda rng, n: rng.normal(size=(n, n)) * 10.0 ** rng.integers(-8, 9),
}
WHOLE = ["ties", "signs", "huge", "clusters"]


def nested(n):
    """A chain of odd sets, each inside the next: the deepest nesting n nodes allow."""
    level = (np.arange(n) + 1) // 2
    return -2.0 * np.maximum.outer(level, level)


def assert_optimal(weights, matching, best, exact):
    """The answer is a matching of the stated weight, the best one, and its duals prove that."""
    n = len(weights)
    nodes = np.flatnonzero(matching.partner >= 0)
    assert np.array_equal(matching.partner[matching.partner[nodes]], nodes)
    tolerance = (
        0.0
        if exact
        else 1e-12
        * n
        * np.abs(weights[np.triu_indices(n, 1)]).max(
            initial=0.0, where=np.isfinite(weights[np.triu_indices(n, 1)])
        )
    )
    used = weights[nodes, matching.partner[nodes]].sum() / 2
    assert abs(used - matching.weight) <= tolerance
    assert abs(matching.weight - best) <= tolerance
    assert abs(matching.gap) <= tolerance
    assert 0.0 <= prove(weights, matching) + tolerance <= 2 * tolerance


def assert_witness(error, n, edges):
    """Odd groups without edges to nodes other than the separators, which are fewer."""
    place = np.full(n, -1)
    for number, group in enumerate(error.groups):
        assert len(group) % 2 == 1
        place[group] = number
    assert sum(map(len, error.groups)) == np.sum(place >= 0)
    assert np.all(place[list(error.separators)] == -1)
    assert len(error.groups) > len(error.separators)
    place[list(error.separators)] = -2
    u, v = place[edges].T
    assert np.all((u == v) | ((u < 0) | (v == -2)) & ((v < 0) | (u == -2)))


def check_random(kind, count, seed):
    """Random graphs of up to ten nodes, perfect or not, complete or masked; how many had one."""
    rng = np.random.default_rng(seed)
    infeasible = 0
    for _ in range(count):
        perfect = bool(rng.integers(2))
        n = 2 * int(rng.integers(1, 6)) if perfect else int(rng.integers(1, 11))
        weights = mirrored(KINDS[kind](rng, n))
        if rng.random() < 0.5:
            weights = masked(weights, rng, rng.uniform(0.3, 0.9))
        best = best_weight(weights, perfect)
        try:
            matching = (perfect_matching if perfect else maximum_weight_matching)(weights)
        except Infeasible as error:
            assert best == -INF
            infeasible += 1
            assert_witness(error, n, np.argwhere(weights > -INF))
        else:
            assert_optimal(weights, matching, best, kind in WHOLE)
    return infeasible


# --- optimal, and proved -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1500, pytest.param(80_000, marks=pytest.mark.nightly)])
def test_small_graphs_equal_enumeration(kind, count):
    assert 1 / 30 < check_random(kind, count, seed=1) / count < 1 / 3


@pytest.mark.parametrize("solve", BOTH)
@pytest.mark.parametrize("n", [14, 30, 62])
def test_equals_networkx(solve, n, rng):
    for kind in ("ties", "clusters", "signs"):
        weights = mirrored(KINDS[kind](rng, n))
        graph = nx.from_numpy_array(np.triu(weights + 100.0 * (solve is perfect_matching), 1))
        perfect = solve is perfect_matching
        pairs = nx.max_weight_matching(graph, maxcardinality=perfect)
        best = sum(weights[u, v] for u, v in pairs)
        assert_optimal(weights, solve(weights), best, exact=True)


def test_nested_odd_sets_are_exact():
    weights = nested(200)
    order = np.random.default_rng(0).permutation(200)
    matching = perfect_matching(weights[np.ix_(order, order)])
    assert prove(weights[np.ix_(order, order)], matching) == 0.0
    depth = np.bincount(np.concatenate(odd_sets(matching)))
    assert depth.max() >= 10


def test_whole_weights_are_exact_up_to_2_to_the_49(rng):
    for n in (20, 100):
        weights = mirrored(rng.integers(-(2**49), 2**49, (n, n)).astype(float))
        assert prove(weights, perfect_matching(weights)) == 0.0


GRAPHS = [
    "chain_n1000", "random_n1000_m10000", "random_n2000_m10000",
    "sparse_delta_n1004", "triangles_n1002", "triangles_n5001",
]  # fmt: skip


@pytest.mark.parametrize("graph", GRAPHS)
def test_reference_graphs_have_their_optimal_weight(shared_data, graph):
    folder = shared_data / "mwm_general"
    if not folder.is_dir():
        pytest.skip("MLESTRUCT_DATA holds no mwm_general")
    with (folder / "optima.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["graph"] == graph)
    table = np.loadtxt(folder / f"{graph}.edges.csv", delimiter=",", skiprows=1, dtype=np.int64)
    n, edges, weights = int(row["vertices"]), table[:, :2] - 1, table[:, 2]
    matching = maximum_weight_matching_sparse(n, edges, weights)
    assert matching.weight == int(row["optimal_weight"])
    assert prove_sparse(n, edges, weights, matching) == 0.0
    if n < 1100:
        dense = np.full((n, n), -INF)
        dense[edges[:, 0], edges[:, 1]] = dense[edges[:, 1], edges[:, 0]] = weights
        assert maximum_weight_matching(dense).weight == matching.weight


# --- sparse graphs -------------------------------------------------------------------------------


def joined(parts):
    """Graphs beside one another, without edges between them."""
    edges = np.zeros((0, 2), np.int64)
    for n, part in parts:
        edges = np.concatenate([part, np.reshape(edges, (-1, 2)) + n])
    return edges


def random_tree(rng, n):
    return np.array([(rng.integers(v), v) for v in range(1, n)], np.int64).reshape(-1, 2)


def regular(rng, n, degree=4):
    """A union of random pairings of n nodes, n even: parallel edges and all."""
    return np.concatenate([rng.permutation(n).reshape(-1, 2) for _ in range(degree)])


def rings(rng, n):
    """Odd rings and chords from ring to ring."""
    sizes = [3, 5, 7] * n
    first = [int(f) for f in np.cumsum([0, *sizes]) if f <= n]
    edges = [(v, v + 1) for v in range(n - 1) if v + 1 not in first]
    edges += [(a, b - 1) for a, b in itertools.pairwise(first) if b - 1 > a + 1]
    u, v = rng.integers(0, n, (2, n // 2))
    return np.concatenate([np.array(edges), np.stack([u, v], axis=1)[u != v]])


def split(rng, n, odd):
    """Two graphs beside one another, of odd sizes or of even ones."""
    first = n // 4 * 2 + odd
    return joined([(size, triangulated(rng, size)[0]) for size in (first, n - first)])


SPARSE_GRAPHS = {
    "regular": regular,
    "tree": random_tree,
    "rings": rings,
    "path and chords": lambda rng, n: np.concatenate(
        [np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), regular(rng, n, 1)]
    ),
    "two even parts": lambda rng, n: split(rng, n, 0),
    "two odd parts": lambda rng, n: split(rng, n, 1),
}
FEW = [8, 10, 24, 60, 130]
MANY = [8, 10, 12, 16, 24, 36] * 60 + [200, 500] * 4
SPARSE_WEIGHTS = {
    "equal": lambda rng, m: np.ones(m),
    "whole": lambda rng, m: rng.integers(-3, 4, m).astype(float),
    "negative": lambda rng, m: -rng.random(m),
    "reals": lambda rng, m: rng.normal(size=m),
}


def check_sparse(graph, kind, n, rng):
    """The sparse kernel's answers against the dense kernel's, or its witness."""
    edges = SPARSE_GRAPHS[graph](rng, n)
    scores = SPARSE_WEIGHTS[kind](rng, len(edges))
    weights = np.full((n, n), -INF)
    np.maximum.at(weights, tuple(edges.T), scores)
    weights = np.maximum(weights, weights.T)
    tolerance = 1e-12 * n if kind in ("negative", "reals") else 0.0
    for dense, sparse in (
        (perfect_matching, perfect_matching_sparse),
        (maximum_weight_matching, maximum_weight_matching_sparse),
    ):
        try:
            best = dense(weights).weight
        except Infeasible:
            with pytest.raises(Infeasible) as refusal:
                sparse(n, edges, scores)
            assert_witness(refusal.value, n, edges)
        else:
            matching = sparse(n, edges, scores)
            assert abs(matching.weight - best) <= tolerance
            assert 0.0 <= prove_sparse(n, edges, scores, matching) + tolerance <= 2 * tolerance


@pytest.mark.parametrize("kind", SPARSE_WEIGHTS)
@pytest.mark.parametrize("graph", SPARSE_GRAPHS)
@pytest.mark.parametrize(
    "sizes", [[8, 10, 24, 60, 130], pytest.param(MANY, marks=pytest.mark.nightly)]
)
def test_sparse_graphs_of_all_kinds_equal_dense_ones(graph, kind, sizes, rng):
    for n in sizes:
        check_sparse(graph, kind, n, rng)


def triangulated(rng, n):
    """Edges of a triangulation of random points, minus their lengths, and the whole matrix."""
    points = rng.random((n, 2))
    corners = Delaunay(points).simplices
    edges = np.unique(np.sort(corners[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2), axis=1), axis=0)
    scores = -np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    weights = np.full((n, n), -INF)
    weights[edges[:, 0], edges[:, 1]] = weights[edges[:, 1], edges[:, 0]] = scores
    return edges, scores, weights


@pytest.mark.parametrize("n", [50, 130, 300, 4200])
def test_graphs_of_odd_sets_in_odd_sets_are_proved(n, rng):
    """Triangulations nest deeply; at 4,200 there are two levels of bounds and more."""
    edges, scores, weights = triangulated(rng, n)
    matching = perfect_matching_sparse(n, edges, scores)
    assert 0.0 <= prove_sparse(n, edges, scores, matching) <= 1e-12 * n
    assert np.bincount(np.concatenate(odd_sets(matching))).max() >= 4
    if n <= 300:
        graph = nx.Graph()
        shifted = zip(*edges.T, 9.0 + scores, strict=True)
        graph.add_weighted_edges_from(shifted)
        pairs = nx.max_weight_matching(graph, maxcardinality=True)
        best = sum(weights[u, v] for u, v in pairs)
        assert_optimal(weights, matching, best, exact=False)


# --- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", BOTH)
def test_renumbering_renumbers(solve, rng):
    weights = mirrored(rng.standard_normal((60, 60)))
    order = rng.permutation(60)
    plain, moved = solve(weights), solve(weights[np.ix_(order, order)])
    expected = np.where(moved.partner < 0, -1, order[moved.partner])
    assert np.array_equal(expected, plain.partner[order])


def test_the_input_is_left_alone(rng):
    weights = mirrored(rng.standard_normal((20, 20)))
    np.fill_diagonal(weights, np.nan)
    before = weights.copy()
    perfect_matching(weights)
    assert np.array_equal(weights, before, equal_nan=True)


def test_the_smallest_graphs():
    assert perfect_matching(np.zeros((0, 0))).weight == 0.0
    assert maximum_weight_matching(np.zeros((1, 1))).partner.tolist() == [-1]
    assert maximum_weight_matching([[0, -1], [-1, 0]]).partner.tolist() == [-1, -1]
    assert perfect_matching([[0, -1], [-1, 0]]).partner.tolist() == [1, 0]
    assert maximum_weight_matching(np.full((3, 3), -INF)).weight == 0.0
    assert perfect_matching_sparse(0, [], []).weight == 0.0
    assert maximum_weight_matching_sparse(3, [], []).partner.tolist() == [-1, -1, -1]


def test_the_examples_run():
    failed, tried = doctest.testmod(blossom)
    assert failed == 0 < tried


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((3, 3)), "3 nodes cannot all be paired"),
        ([[0, -INF, 1, 1], [-INF] * 4, [1, -INF, 0, 1], [1, -INF, 1, 0]], r"node\(s\) \[1\]"),
    ],
)
def test_odd_and_isolated_nodes_are_named(weights, message):
    with pytest.raises(Infeasible, match=message):
        perfect_matching(weights)


def test_a_deficient_set_is_named():
    star = np.full((4, 4), -INF)
    star[2, :] = star[:, 2] = 1.0
    with pytest.raises(
        Infeasible, match=r"without node\(s\) \[2\] the odd groups \[0\]; \[1\]; \[3\]"
    ):
        perfect_matching(star)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((2, 4)), r"square matrix, not of shape \(2, 4\)"),
        ([[0, np.nan], [np.nan, 0]], r"weights\[0, 1\] is nan"),
        ([[0, 1, 2, 3], [1, 0, INF, 4], [2, INF, 0, 5], [3, 4, 5, 0]], r"weights\[1, 2\] is inf"),
        ([[0, 1], [2, 0]], r"weights\[0, 1\] is 1.0 but weights\[1, 0\] is 2.0"),
        ([[0, -1e301], [-1e301, 0]], "below 1e300"),
    ],
)
@pytest.mark.parametrize("solve", BOTH)
def test_a_wrong_matrix_is_named(solve, weights, message):
    with pytest.raises(ValueError, match=message):
        solve(weights)


@pytest.mark.parametrize(
    ("edges", "weights", "message"),
    [
        ([(0, 1), (2, 4)], [1, 1], r"edges\[1\] is \[2, 4\]"),
        ([(0, 1), (2, 2)], [1, 1], r"edges\[1\] is \[2, 2\]"),
        ([(0, 1), (2, 3)], [1, np.nan], r"weights\[1\] is nan"),
        ([(0, 1), (2, 3)], [1], "weights"),
        ([(0.5, 1), (2, 3)], [1, 1], "whole node numbers"),
    ],
)
def test_a_wrong_edge_is_named(edges, weights, message):
    with pytest.raises(ValueError, match=message):
        perfect_matching_sparse(4, edges, weights)
