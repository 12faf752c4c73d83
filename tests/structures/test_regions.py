"""Region and cluster graphs: codes, counting numbers, polytopes and bounds against enumeration."""

import itertools

import numpy as np
import pytest
from mlestruct_oracles.cp_sat import CPSat
from mlestruct_oracles.linear_program import LinearProgram

from mlestruct import Batch, ClusterGraph, Entropy, FactorGraph, RegionGraph, grid, plaquettes
from mlestruct.inference import marginals
from mlestruct.oracle import Validated
from mlestruct.testing import check_entropy, check_oracle, check_structure

TRIPLES = [(0, 1, 2), (2, 1, 3)]
GRAPHS = {
    "tree": RegionGraph([2, 3, 2], [(0, 1), (1, 2), (1,)]),
    "one region": RegionGraph([3], [(0,)]),
    "ladder": plaquettes(2, 3),
    "clamped ladder": plaquettes(2, 3).clamp([-1, 1, -1, -1, 0, -1]),
    "square of squares": plaquettes(3, 3),
    "junction tree": ClusterGraph([2, 3, 2, 2], TRIPLES, [(0, 1, (1, 2))]),
    "node sepset": ClusterGraph([2, 2, 2], [(0, 1), (1, 2)], [(0, 1, (1,))]),
    "loop": ClusterGraph(
        [2, 2, 2], [(0, 1), (1, 2), (2, 0)], [(0, 1, (1,)), (1, 2, (2,)), (2, 0, (0,))]
    ),
    "clamped loop": ClusterGraph(
        [2, 3, 2], [(0, 1), (1, 2), (2, 0)], [(0, 1, (1,)), (1, 2, (2,)), (2, 0, (0,))]
    ).clamp({1: 2}),
}


def labellings(graph):
    return list(itertools.product(*(range(k) for k in graph.cards)))


@pytest.mark.parametrize("name", GRAPHS)
def test_laws(name):
    graph = GRAPHS[name]
    free = (graph.fixed < 0).all()
    clamps = [({0: 1}, lambda y: y[0] == 1)] if free else []
    check_structure(graph, labellings(graph), clamps=clamps)
    check_oracle(CPSat(), graph, labellings(graph), instances=8)
    check_oracle(LinearProgram(), graph, labellings(graph), instances=20)
    check_entropy(graph, None, labellings(graph), models=12)
    check_entropy(graph, 0.0, labellings(graph), models=12)


def test_kikuchi_numbers():
    """1 on plaquettes, −1 on inner edges, 1 on inner nodes, 0 on the rim."""
    numbers = plaquettes(4, 4).counting(1.0)
    nodes, edges = numbers[:16].reshape(4, 4), numbers[16:-9]
    inner = np.zeros((4, 4))
    inner[1:-1, 1:-1] = 1
    np.testing.assert_array_equal(nodes, inner)
    ends = grid(4, 4).scope.reshape(-1, 2)
    rows, columns = ends // 4, ends % 4
    rim = ((rows == 0) | (rows == 3)).all(1) | ((columns == 0) | (columns == 3)).all(1)
    np.testing.assert_array_equal(edges, np.where(rim, 0, -1))
    np.testing.assert_array_equal(numbers[-9:], 1)


def test_plaquettes_begin_like_the_grid(rng):
    states = rng.integers(0, 3, 12)
    small, large = grid(3, 4, 3), plaquettes(3, 4, 3)
    np.testing.assert_array_equal(large.encode(states)[: small.size], small.encode(states))


def test_counting_numbers_cover_every_variable_once():
    for graph in (plaquettes(5, 3), GRAPHS["tree"], GRAPHS["loop"]):
        covered = np.zeros(graph.n_nodes)
        for number, region in zip(graph.counting(1.0), graph.regions, strict=True):
            covered[list(region)] += number
        np.testing.assert_array_equal(covered, 1)


def test_joint_sepsets_are_tighter_than_nodes(rng):
    """Two triples sharing two variables: the joint sepset gives the MAP, the nodes a larger LP."""
    joint = GRAPHS["junction tree"]
    nodes = FactorGraph(joint.cards, TRIPLES)
    score = rng.normal(size=(60, nodes.size - 9))
    tables = np.concatenate([np.zeros((60, 9)), score], axis=1)
    padded = np.concatenate([score, np.zeros((60, 6))], axis=1)
    loose = Validated(LinearProgram()).many(Batch.of(nodes, count=60), tables.ravel())[1]
    tight = Validated(LinearProgram()).many(Batch.of(joint, count=60), padded.ravel())[1]
    exact = (padded @ np.array([joint.encode(y) for y in labellings(joint)]).T).max(axis=1)
    np.testing.assert_allclose(tight, exact, atol=1e-7)
    assert (loose >= exact - 1e-7).all()
    assert (loose - exact).max() > 0.1


def test_bethe_of_a_junction_tree_is_log_z(rng):
    """A junction tree's entropy is exact: its maximum is the enumerated log Z."""
    graph = GRAPHS["junction tree"]
    score = 0.5 * rng.normal(size=graph.size)
    found = marginals(Batch.of(graph, count=1), score)
    listed = np.array([graph.encode(y) for y in labellings(graph)]) @ score
    exact = np.log(np.exp(listed - listed.max()).sum()) + listed.max()
    assert str(Entropy.of(Batch.of(graph)).bound).startswith("exact")
    assert found.lower[0] - 1e-9 <= exact <= found.upper[0] + 1e-9
    assert found.upper[0] - found.lower[0] < 1e-2


@pytest.mark.parametrize(
    ("rho", "kind"), [(None, "exact"), (1.0, "exact"), (0.5, "upper"), (0.0, "upper")]
)
def test_bounds_of_junction_forests(rho, kind):
    """Counting what a junction forest counts is exact, counting more bounds log Z above."""
    for name in ("tree", "ladder", "junction tree"):
        graph = GRAPHS[name]
        assert graph.bound(graph.counting(rho)).kind == kind


def test_loops_claim_no_more_than_is_known():
    """Bethe and Kikuchi numbers on loops bound nothing; the largest regions alone bound above."""
    for graph in (GRAPHS["loop"], plaquettes(3, 3)):
        assert graph.bound(graph.counting(1.0)).kind == "none"
        assert graph.bound(graph.counting(0.0)).kind == "upper"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: RegionGraph([2, 2], [(0,)]), "variable 1 is in no region"),
        (lambda: RegionGraph([2, 2], [(0, 1), (1, 0)]), "listed twice"),
        (lambda: RegionGraph([2], [(0, 0)]), "each once"),
        (lambda: RegionGraph([2], [(0, 1)]), "names variable 1 of 1"),
        (lambda: RegionGraph([0], [(0,)]), "variable 0 has 0 states"),
        (lambda: ClusterGraph([2] * 4, TRIPLES, [(0, 1, (0,))]), "sepset 0 holds 0"),
        (lambda: ClusterGraph([2] * 4, TRIPLES, [(0, 2, (1,))]), "clusters 0 and 2 of 2"),
        (lambda: ClusterGraph([2] * 4, TRIPLES, [(0, 1, (1,))]), "variable 2 must join"),
        (lambda: GRAPHS["tree"].encode([0, 3, 0]), "variable 1 has state 3"),
        (lambda: GRAPHS["tree"].encode([0, 1]), "3 states"),
        (lambda: GRAPHS["tree"].clamp([5, -1, -1]), "observed must hold"),
        (lambda: GRAPHS["tree"].clamp({3: 0}), "no variable 3 to observe"),
    ],
)
def test_misuse_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()
