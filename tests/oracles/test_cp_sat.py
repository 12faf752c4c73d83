"""CP-SAT: exact wherever enumeration reaches, honest when stopped early."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from mlestruct_oracles.cp_sat import CPSat

import mlestruct as ms
from mlestruct import Batch, Custom, FactorGraph, Infeasible, grid
from mlestruct.oracle import Validated
from mlestruct.structures.base import Constraints
from mlestruct.testing import check_oracle, vertices
from tests.listing import BruteForce

GRAPHS = {
    "grid": grid(2, 3),
    "order 3": FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)]),
    "forbidden": grid(2, 2, 3).forbid([(0, 0)], [(0, (1, 1))]),
    "clamped": grid(2, 2, 3).clamp([-1, 2, -1, -1]),
    "matching": ms.BipartiteMatching(3, 4, "one_sided"),
    "partial": ms.BipartiteMatching(3, kind="partial"),
    "rows": Custom(5, A=[[1, 1, 1, 1, 1], [1, -1, 0, 0, 0]], lower=[1, -1], upper=[3, 0]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_laws(name):
    check_oracle(CPSat(), GRAPHS[name], instances=14)


def test_rows_of_your_own(rng):
    """At most two variables in state 1, besides the graph's own constraints."""
    graph = grid(2, 3)
    count = np.zeros((1, graph.size))
    count[0, 1:12:2] = 1
    rows = Constraints(sp.csr_array(count), np.array([-np.inf]), np.array([2.0]))
    batch = Batch.of(graph, count=20)
    scores = rng.normal(size=batch.size)
    upper = Validated(CPSat(rows=rows)).many(batch, scores)[1]
    few = [y for y in itertools.product((0, 1), repeat=6) if sum(y) <= 2]
    listed = np.array([graph.encode(y) for y in few])
    np.testing.assert_allclose(upper, (scores.reshape(20, -1) @ listed.T).max(1), atol=1e-10)


def test_stopped_early_it_bounds_the_best(rng):
    """A time limit leaves a valid bound above the best score, or says that there is no answer."""
    graph = grid(10, 10, 3)
    batch = Batch.of(graph, count=1)
    scores = rng.normal(size=batch.size)
    oracle = CPSat(seconds=0.2)
    exact = Validated(CPSat()).many(batch, scores)[1][0]
    try:
        found, upper = Validated(oracle).many(batch, scores)
    except RuntimeError as error:
        assert "allow more seconds" in str(error)  # noqa: PT017
    else:
        assert scores @ found <= exact + 1e-9 <= upper[0] + 2e-9


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e12, 1e250])
def test_scores_of_any_size(scale, rng):
    """Rounding to whole numbers is relative to the scores, and stays inside the bound."""
    batch = Batch.of(grid(2, 2), count=5)
    scores = scale * rng.normal(size=batch.size)
    upper = CPSat().many(batch, scores)[1]
    best = BruteForce(vertices).many(batch, scores)[1]
    assert (upper >= best).all()
    np.testing.assert_allclose(upper, best, rtol=1e-12)


def test_misuse():
    dead = grid(2, 2).forbid([(1, 0), (1, 1)])
    with pytest.raises(Infeasible, match="example 0: variable 1 has no possible state"):
        CPSat().many(Batch.of(dead), np.zeros(dead.size))
    half = Custom(2, A=[[0.5, 1.0]], upper=[1])
    with pytest.raises(ValueError, match=r"whole numbers, got the coefficient 0\.5"):
        CPSat().many(Batch.of(half), np.zeros(2))
