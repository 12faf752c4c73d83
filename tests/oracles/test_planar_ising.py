"""Planar Ising models: the matching and exact sums against enumeration and against each other."""

import itertools

import networkx as nx
import numpy as np
import pytest
from mlestruct_oracles.cp_sat import CPSat
from mlestruct_oracles.planar_ising import PlanarIsing

from mlestruct import Batch, Infeasible, Ising, grid
from mlestruct.inference.exact import exact
from mlestruct.oracle import Validated
from mlestruct.testing import check_entropy, check_oracle, check_structure


def square(rows, columns):
    return Ising(rows * columns, grid(rows, columns).scope.reshape(-1, 2))


GRAPHS = {
    "3 x 3": square(3, 3),
    "complete": Ising(4, list(itertools.combinations(range(4), 2))),
    "triangle and edge": Ising(6, [(0, 1), (1, 2), (2, 0), (3, 4)]),
    "path": Ising(5, [(0, 1), (1, 2), (2, 3)]),
    "one edge": Ising(2, [(1, 0)]),
    "fixed": Ising(4, [(0, 1), (1, 2), (2, 3), (3, 0)], fixed=[1, 0, -1, -1]),
}


def outcomes(graph):
    """One labelling of every class: the first node of a component is in state 0."""
    free = np.setdiff1d(np.arange(graph.n), np.unique(graph.component, return_index=True)[1])
    states = np.zeros((2 ** len(free), graph.n), dtype=int)
    states[:, free] = np.arange(len(states))[:, None] >> np.arange(len(free)) & 1
    return states


def encoded(graph):
    states = outcomes(graph)
    return (states[:, graph.edges[:, 0]] == states[:, graph.edges[:, 1]]).astype(float)


def random_planar(rng, n):
    """A random maximal-ish planar graph: random edges, kept while it stays planar."""
    graph = nx.empty_graph(n)
    for u, v in rng.permutation(list(itertools.combinations(range(n), 2))).tolist():
        if rng.random() < 0.7:
            graph.add_edge(u, v)
            if not nx.check_planarity(graph)[0]:
                graph.remove_edge(u, v)
    return Ising(n, list(graph.edges))


@pytest.mark.parametrize("name", GRAPHS)
def test_laws(name):
    graph = GRAPHS[name]
    check_structure(graph, outcomes(graph))
    check_oracle(PlanarIsing(), graph, outcomes(graph))
    check_entropy(graph, None, outcomes(graph), models=12, oracle=PlanarIsing())


@pytest.mark.parametrize("kind", ["grid", "planar"])
def test_both_equal_brute_force(kind, rng):
    """Best score, log Z and probabilities on grids up to 4 × 4 and random planar graphs."""
    for _ in range(40):
        shape = rng.integers(1, 5, 2)
        graph = (
            square(*shape.tolist()) if kind == "grid" else random_planar(rng, rng.integers(2, 9))
        )
        if graph.size == 0:
            continue
        listed = encoded(graph)
        score = rng.choice([0.1, 1.0, 10.0]) * rng.normal(size=graph.size)
        values = listed @ score
        log_z = np.log(np.exp(values - values.max()).sum()) + values.max()
        vertex, upper = PlanarIsing().many(Batch.of(graph), score)
        assert vertex @ score == pytest.approx(values.max(), abs=1e-11)
        assert values.max() <= upper[0] <= values.max() + 1e-11
        found = exact(graph, score)
        assert found.log_z == pytest.approx(log_z, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found.tau, np.exp(values - log_z) @ listed, atol=1e-10)


def test_the_limit_of_log_z_is_the_matching(rng):
    """log Z(β score) / β tends to the best score, from above by at most (n − 1) log 2 / β."""
    graph = square(8, 8)
    score = rng.normal(size=graph.size)
    best = PlanarIsing().many(Batch.of(graph), score)[1][0]
    for beta in (1.0, 5.0, 20.0):
        excess = exact(graph, beta * score).log_z / beta - best
        assert -1e-9 <= excess <= 63 * np.log(2) / beta


def test_the_uniform_8_x_8_grid():
    """J = ½ on every edge: the reference log Z and correlations of the rim and the middle."""
    graph = square(8, 8)
    found = exact(graph, np.ones(graph.size))
    assert found.log_z + np.log(2) - 0.5 * graph.size == pytest.approx(61.20848905, abs=1e-8)
    correlation = 2 * found.tau - 1
    assert correlation.min() == pytest.approx(0.58459170, abs=5e-9)
    assert correlation.max() == pytest.approx(0.78190100, abs=5e-9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda k5: PlanarIsing().many(Batch.of(k5), np.zeros(10)), ValueError, "not planar"),
        (lambda _: CPSat().many(Batch.of(GRAPHS["path"]), np.zeros(3)), ValueError, "no constrain"),
        (lambda _: GRAPHS["path"].encode([0, 1]), ValueError, "each of 5 nodes"),
        (lambda _: Ising(2, [(0, 1), (1, 0)]), ValueError, "listed twice"),
    ],
)
def test_misuse(call, error, words):
    with pytest.raises(error, match=words):
        call(Ising(5, list(itertools.combinations(range(5), 2))))


def test_frustrated_fixed_edges_are_infeasible():
    """Three edges of a triangle cannot disagree an odd number of times."""
    triangle = Ising(3, [(0, 1), (1, 2), (2, 0)], fixed=[0, 1, 1])
    with pytest.raises(Infeasible, match="example 0"):
        Validated(PlanarIsing()).many(Batch.of(triangle), np.zeros(3))
