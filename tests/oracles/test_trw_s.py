"""TRW-S: a bound no labelling beats, at the value of the linear program where that is reached."""

import numpy as np
import pytest
from mlestruct_oracles.linear_program import LinearProgram
from mlestruct_oracles.trw_s import TRWS
from mlestruct_oracles.viterbi import Viterbi

import mlestruct as ms
from mlestruct import Batch, FactorGraph, Infeasible, grid
from mlestruct.oracle import Validated
from mlestruct.testing import check_oracle, vertices
from tests.listing import BruteForce

K4 = FactorGraph([2, 3, 4, 3], [(0, 1), (2, 1), (0, 2), (3, 0), (1, 3), (3, 2)])
GRAPHS = {
    "grid": grid(2, 3, 3),
    "complete": K4,
    "chain": ms.chain(5, 3),
    "clamped": K4.clamp([-1, 2, -1, -1]),
    "forbidden": grid(2, 2, 3).forbid([(0, 0)], [(0, (1, 1))]),
    "isolated": FactorGraph([3, 1, 2], [(2, 0)]),
    "no edges": FactorGraph([3, 2], []),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_laws(name):
    check_oracle(TRWS(), GRAPHS[name], exact=False)


@pytest.mark.parametrize("name", ["grid", "complete", "clamped"])
def test_bounds_brute_force_on_ten_thousand(name, rng):
    """No labelling beats the bound; few answers are not the best; equal where they meet."""
    batch = Batch.of(GRAPHS[name], count=10_000)
    scores = rng.normal(size=batch.size)
    found, upper = Validated(TRWS()).many(batch, scores)
    best = BruteForce(vertices).many(batch, scores)[1]
    reached = batch.totals(found * scores)
    assert (upper >= best).all()
    assert (reached <= best + 1e-9).all()
    assert (reached > best - 1e-9).mean() > 0.95
    assert (upper < best + 1e-6).mean() > 0.8


@pytest.mark.parametrize("name", GRAPHS)
def test_bound_is_no_less_than_the_linear_program(name, rng):
    batch = Batch.of(GRAPHS[name], count=40)
    scores = rng.normal(size=batch.size)
    upper = TRWS(passes=2000, tol=1e-9).many(batch, scores)[1]
    relaxed = LinearProgram().many(batch, scores)[1]
    assert (upper >= relaxed - 1e-7).all()
    assert np.mean(upper - relaxed) < 1e-3


def test_an_example_is_solved_alike_alone_and_among_others(rng):
    """Also where the batch takes several native calls, the last of which ends amid an example."""
    batch = Batch.of(grid(40, 40, 4), count=4)
    scores = rng.normal(size=batch.size)
    found, upper = TRWS().many(batch, scores)
    for m in range(4):
        alone, bound = TRWS().many(batch.select([m]), scores[batch.coordinates(m)])
        np.testing.assert_array_equal(found[batch.coordinates(m)], alone)
        assert bound[0] == upper[m]


@pytest.mark.parametrize("states", [7, 8, 9, 16, 17])
def test_exact_on_trees_of_any_numbers_of_states(states, rng):
    """Vectors of eight states end anywhere, in either order of an edge's ends."""
    scopes = [(0, 1), (2, 0), (3, 2), (2, 4)]
    for cards in ([states] * 5, [states, 9, 1, 8, 3]):
        batch = Batch.of(FactorGraph(cards, scopes), count=20)
        scores = rng.normal(size=batch.size)
        best = Viterbi().many(batch, scores)[1]
        np.testing.assert_allclose(TRWS().many(batch, scores)[1], best, rtol=0, atol=1e-9)


def test_misuse():
    with pytest.raises(ValueError, match="factor 0 joins 3 variables"):
        TRWS().many(Batch.of(FactorGraph([2] * 3, [(0, 1, 2)])), np.zeros(14))
    dead = grid(2, 2).forbid([(1, 0), (1, 1)])
    with pytest.raises(Infeasible, match="example 0: variable 1 has no possible state"):
        TRWS().many(Batch.of(dead), np.zeros(dead.size))
