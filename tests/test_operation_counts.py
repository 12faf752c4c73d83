"""Stated costs hold in numbers of operations, which no clock and no neighbour disturbs."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.engine import Serial
from mlestruct.inference.matching import live_edges
from mlestruct.inference.routine import routine
from mlestruct.learners import mle_struct
from mlestruct.learning.loop import Loop
from mlestruct.learning.minimise import likelihood, minimise
from mlestruct.native._door import MatchingAim, MatchingState, matching_infer
from mlestruct.oracle import Counted, resolve


def matchings(rng, count, n=6, d=4):
    batch = ms.Batch.of(ms.BipartiteMatching(n), [rng.permutation(n) for _ in range(count)])
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, d)))


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_the_direct_route_asks_at_most_once_per_example_whatever_its_iterations(rng, tol):
    batch, features = matchings(rng, 9)
    dual = mle_struct().dual(batch, features)
    oracle = Counted(resolve(None, batch))
    problem = likelihood(dual, routine(dual.entropy), Serial(), oracle)
    last = minimise(problem, Loop(tol=tol))
    assert last.certificate.relative <= tol
    assert oracle.calls <= len(batch)


@pytest.mark.parametrize("limit", [{"rounds": 3}, {"calls": 40}])
def test_a_direct_fit_that_its_budget_stops_is_not_proven_dearly(rng, limit):
    """Weights that are on their way have a gap of their own; τ is not balanced for it."""
    batch, features = matchings(rng, 9)
    dual = mle_struct().dual(batch, features)
    oracle = Counted(resolve(None, batch))
    problem = likelihood(dual, routine(dual.entropy), Serial(), oracle)
    last = minimise(problem, Loop(tol=0.0, **limit))
    assert last.short in limit
    assert oracle.calls <= len(batch)


def test_frank_wolfe_asks_once_per_example_and_round_besides_the_interior(rng):
    batch, features = matchings(rng, 9)
    calls = []
    for rounds in (4, 7):
        oracle = Counted(resolve(None, batch))
        dual = mle_struct().dual(batch, features)
        last = ms.FrankWolfe(tol=0.0, rounds=rounds).solve(dual, oracle)
        more = last.calls - (rounds + 1) * len(batch)
        assert more == 0
        calls.append(oracle.calls)
    assert calls[1] - calls[0] == 3 * len(batch)


@pytest.mark.parametrize("make", [ms.BipartiteMatching, ms.Matching])
def test_scaling_takes_no_more_passes_over_more_people(rng, make):
    """Passes over the edges, Newton's among them, do not grow with the number of nodes."""
    passes = []
    for n in (40, 80, 160):
        structure = make(n)
        graph, _, _, centre = live_edges(structure)
        x, mode, aim = np.zeros(graph.nodes), np.zeros(1, np.uint8), MatchingAim(0.5, 1e-8, 500)
        state = MatchingState(1, graph.nodes, graph.live, x, None, mode, np.zeros(5))
        score, tau = rng.standard_normal(structure.size), np.empty(graph.live)
        matching_infer(graph, aim, state, score, centre, tau, np.empty(1))
        assert state.report[0] <= 1e-8
        _, sweeps, _, steps, turns = state.report
        passes.append(sweeps + steps * (turns + 3))
    assert passes[2] <= passes[0] + 1
