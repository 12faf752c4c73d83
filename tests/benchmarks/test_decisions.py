"""The decisions benchmark: its lists of decisions, and our side of a brief run."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks import decisions


@pytest.mark.parametrize("side", [2, 3, 4])
def test_routes_are_all_monotone_ones(side):
    """C(2(n−1), n−1) of them, all different, each of 2(n−1) arcs that join up."""
    routes = decisions.routes(side)
    assert len(routes) == {2: 2, 3: 6, 4: 20}[side]
    assert len(np.unique(routes, axis=0)) == len(routes)
    assert (routes.sum(axis=1) == 2 * (side - 1)).all()
    assert routes.shape[1] == 2 * side * (side - 1)


def test_packings_are_all_sets_within_the_capacity(rng):
    """By trying every set of eight items."""
    weights = rng.uniform(3, 8, (2, 8))
    found = decisions.packings(weights, 20.0)
    every = np.array(list(itertools.product((0, 1), repeat=8)))
    fits = every[(every @ weights.T <= 20.0).all(axis=1)]
    assert {tuple(row) for row in found.astype(int)} == {tuple(row) for row in fits}
    assert len(found) == len(fits)


def test_our_side_learns_and_counts(rng):
    """Regret of decisions by the true worth is 0; a learner's is small, its calls are counted."""
    every = decisions.routes(3)
    context = rng.standard_normal((decisions.LEARNED + 50, 5))
    worth = -(context @ rng.binomial(1, 0.5, (5, every.shape[1])) + 6) / 7
    problem = decisions.Problem(every, context, worth, -1)
    assert problem.regret(worth[decisions.LEARNED :]) == 0.0
    found = decisions.structured(problem, 0, "perceptron", (1.0,))
    rounds, more = divmod(found.calls, decisions.LEARNED)
    assert 0 < rounds <= 20
    assert more == 2  # whether the solver maximises
    assert 0 <= found.regret < 0.1
