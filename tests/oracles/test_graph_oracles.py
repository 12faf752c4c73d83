"""QPBO and graph cut as oracles: against enumeration and HiGHS, and what they let one learn."""

import itertools
from pathlib import Path

import mlestruct_oracles
import numpy as np
import pytest
from mlestruct_oracles.qpbo import QPBO, GraphCut

import mlestruct as ms
from mlestruct import Batch, FactorGraph, Infeasible, grid
from mlestruct.oracle import (
    CATALOGUE,
    PerStructure,
    Simplices,
    Validated,
    load,
    resolve,
)
from mlestruct.oracle.protocol import innermost
from mlestruct.structures.spanning_trees import edge_appearance, in_forest_polytope
from mlestruct.testing import check_oracle, vertices
from tests.listing import BruteForce

K4 = FactorGraph([2] * 4, [(0, 1), (2, 1), (0, 2), (3, 0), (1, 3), (3, 2)])
GRAPHS = {
    "grid": grid(2, 3),
    "complete": K4,
    "clamped": grid(2, 3).clamp([-1, 1, -1, -1, 0, -1]),
    "forbidden": grid(2, 2).forbid([(0, 1)], [(1, (0, 0)), (3, (1, 0))]),
    "isolated": FactorGraph([2, 2, 2], [(2, 0)]),
    "no edges": FactorGraph([2, 2], []),
}


def random_scores(graph, models, rng, field=1.0, attractive=False):
    """Scores of many models, one per row."""
    scores = rng.normal(size=(models, graph.size))
    first = graph.node_start[-1]
    scores[:, :first] *= field
    tables = scores[:, first:].reshape(models, -1, 2, 2)
    if attractive:
        short = tables[..., 0, 0] + tables[..., 1, 1] < tables[..., 0, 1] + tables[..., 1, 0]
        tables[short] = tables[short][..., ::-1]
    return np.concatenate([scores[:, :first], tables.reshape(models, -1)], axis=1)


@pytest.mark.parametrize("oracle", ["qpbo", "qpbo_pymaxflow"])
@pytest.mark.parametrize("name", GRAPHS)
def test_qpbo_obeys_the_laws_of_oracles(name, oracle):
    check_oracle(load(oracle), GRAPHS[name])


@pytest.mark.parametrize("oracle", ["graph_cut", "graph_cut_pymaxflow"])
@pytest.mark.parametrize("name", GRAPHS)
def test_graph_cut_obeys_the_laws_of_oracles(name, oracle):
    """The same, exactly the best, under any node scores."""
    graph = GRAPHS[name]
    if name == "forbidden":  # what keeps an edge attractive may be forbidden
        graph = grid(2, 2).forbid([(0, 1)], [(1, (0, 1)), (3, (1, 0))])
    base = np.zeros(graph.size)
    base[graph.node_start[-1] :] = np.tile([0.7, 0.0, 0.1, 0.4], graph.n_factors)
    check_oracle(load(oracle), graph, base=np.where(graph.fixed == 0, 0.0, base))


def test_repulsion_names_example_and_edge():
    batch = Batch.of([K4, grid(2, 2), grid(2, 2)])
    scores = np.zeros(batch.size)
    scores[batch.offsets[2] + grid(2, 2).entry(3, (0, 1))] = 1.0
    with pytest.raises(ValueError, match=r"example 2, edge 3 \(1–3\) is not submodular"):
        GraphCut().many(batch, scores)


def test_impossible_examples_are_named():
    dead = grid(2, 2).forbid([(1, 0), (1, 1)])
    with pytest.raises(Infeasible, match="example 1: variable 1 has no possible state"):
        QPBO().many(Batch.of([K4, dead]), np.zeros(K4.size + dead.size))


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (grid(2, 2, 3), "variable 0 has 3 states"),
        (FactorGraph([2] * 3, [(0, 1, 2)]), "factor 0 joins 3 variables"),
    ],
)
def test_other_graphs_are_refused(graph, words):
    with pytest.raises(ValueError, match=words):
        QPBO().many(Batch.of(graph), np.zeros(graph.size))


def test_only_node_scores_may_be_perturbed():
    """Graph cut's mask is the node coordinates; an entropy on edges is refused."""
    batch = Batch.of([K4, grid(2, 2)])
    mask = GraphCut().perturbable(batch)
    assert [int(part.sum()) for part in np.split(mask, batch.offsets[1:-1])] == [8, 8]
    assert mask[:8].all()
    with pytest.raises(ValueError, match="perturb"):
        ms.marginals(Batch.of(grid(2, 2)), np.zeros(grid(2, 2).size), GraphCut())


@pytest.mark.parametrize(
    ("graph", "name"),
    [
        (ms.chain(4, 3), "viterbi"),
        (FactorGraph([2, 2, 2], [(0, 1, 2)]), "viterbi"),
        (grid(3, 3), "qpbo"),
        (grid(3, 3, 3), "relaxation"),
        (grid(30, 30, 4), "trw_s"),
        (FactorGraph([2] * 4, [(0, 1, 2), (1, 2, 3)]), "linear_program"),
    ],
)
def test_the_default_oracle_fits_the_graph(graph, name):
    """Forests exactly, binary loops by max-flow, other loops by an LP while that is quick."""
    assert graph.default_oracle == name
    assert type(innermost(resolve(None, Batch.of(graph)))) is type(load(name))


def test_mixed_batches_use_each_graphs_own_oracle(rng):
    batch = Batch.of([grid(2, 2), ms.chain(3, 3), grid(2, 2)])
    oracle = resolve(None, batch)
    assert isinstance(oracle, PerStructure)
    assert oracle.polytope == "convex hull / local polytope"
    scores = random_scores(grid(2, 2), 2, rng, attractive=True)
    middle = rng.normal(size=ms.chain(3, 3).size)
    flat = np.concatenate([scores[0], middle, scores[1]])
    upper = Validated(oracle).many(batch, flat)[1]
    np.testing.assert_allclose(upper, BruteForce(vertices).many(batch, flat)[1], atol=1e-12)


def test_skip_chains_join_the_skips():
    graph = ms.skip_chain(5, 2, [(0, 3), (1, 4)])
    assert graph.scope.reshape(-1, 2).tolist() == [
        [0, 1], [1, 2], [2, 3], [3, 4], [0, 3], [1, 4],
    ]  # fmt: skip


def test_forest_polytope_equals_its_definition(rng):
    """Σ ρ inside S ≤ |S| − 1 for all S, on 2,000 random graphs."""
    seen = [0, 0]
    for _ in range(2000):
        n = int(rng.integers(2, 6))
        edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < 0.8]
        rho = rng.random(len(edges)) ** rng.choice([0.3, 1.0, 2.0])
        inside = all(
            sum(r for (i, j), r in zip(edges, rho, strict=True) if i in S and j in S) <= len(S) - 1
            for size in range(1, n + 1)
            for S in map(set, itertools.combinations(range(n), size))
        )
        ends = np.array(edges, dtype=np.int64).ravel()
        assert in_forest_polytope(n, ends, rho) == inside
        seen[inside] += 1
    assert min(seen) > 400


def test_default_weights_of_loopy_graphs_bound_above():
    """Spanning-tree weights by default, proved for themselves and anything in their polytope."""
    graph = grid(3, 4)
    default = graph.counting()
    np.testing.assert_allclose(default[12:], edge_appearance(12, graph.scope.reshape(-1, 2)))
    assert graph.bound(default).kind == "upper"
    for rho, kind in (
        (0.5, "upper"),
        (0.25, "upper"),
        (0.0, "upper"),
        (0.7, "none"),
        (1.0, "none"),
    ):
        assert graph.bound(graph.counting(rho)).kind == kind
    beyond = default[12:] * np.where(np.arange(17) == 0, 1.05, 1.0)
    assert graph.bound(graph.counting(beyond)).kind == "none"
    assert graph.bound(np.r_[np.zeros(12), np.full(17, 0.3)]).kind == "none"  # covers too little


def test_the_table_names_every_oracle():
    page = Path(mlestruct_oracles.__file__).with_name("README.md").read_text(encoding="utf-8")
    lines = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    rows = {name for line in lines for name in line.split("`")[1::2]}
    assert {name for name in rows if name.islower()} == set(CATALOGUE)


@pytest.mark.parametrize("form", ["function", "oracle"])
def test_a_structure_brings_its_own_solver(form):
    """A default that stands in no catalogue: fitted alone, and in a batch with another kind."""

    def largest(scores):
        return np.eye(3)[scores.argmax()]

    class OneOfThree(ms.Custom):
        default_oracle = staticmethod(largest) if form == "function" else Simplices()

    mine = OneOfThree(3, exactly_one=[[0, 1, 2]])
    scores = np.array([0.0, 2.0, 1.0])
    batch = Batch.of([mine])
    vertices, _ = resolve(None, batch).many(batch, scores)
    assert vertices.tolist() == [0, 1, 0]
    mixed = Batch.of([mine, ms.chain(2, 2)])
    assert resolve(None, mixed).many(mixed, np.concatenate([scores, np.arange(8.0)]))[0][1] == 1
