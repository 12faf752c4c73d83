"""What is printed is of what is returned, and never rises, however a run ends."""

from itertools import pairwise

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.learning.dual import certificate, interior
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import Answer, Solver, resolve
from tests.frank_wolfe.test_core import REGULARISERS, N, learning, rounds

STEPS = ["pairwise", "block"]


def proven_again(dual, oracle, state):
    """The certificate of what a state holds, from scratch."""
    inner = interior(dual.batch, oracle, dual.entropy)
    return certificate(dual, oracle, state.theta, state.tau, inner, at=state.at)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("temperature", [1.0, 0.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_gap_never_rises_and_is_that_of_what_is_returned(step, regulariser, temperature, seed):
    """Of the problem's own regulariser, wherever θ was held; states keep what they were given."""
    dual = learning(seed, temperature=temperature, **regulariser)
    oracle = resolve(None, dual.batch)
    states = rounds(FrankWolfe(tol=0, rounds=37, step=step), dual, oracle)
    gaps = [state.gap for state in states]
    assert all(later <= earlier for earlier, later in pairwise(gaps))
    for state in states[:: len(states) // 4]:
        again = proven_again(dual, oracle, state)
        assert state.gap == pytest.approx(again.gap, rel=1e-7, abs=1e-9)
        assert state.certificate.objective == pytest.approx(again.objective, rel=1e-9)


@pytest.mark.parametrize("limit", [{"rounds": 9}, {"calls": 60}, {"seconds": 1e-9}])
def test_whatever_ends_a_run_it_holds_the_best(limit):
    dual = learning(1)
    oracle = resolve(None, dual.batch)
    last = FrankWolfe(tol=0, **limit).solve(dual, oracle)
    assert last.done
    assert last.gap == pytest.approx(proven_again(dual, oracle, last).gap, rel=1e-7)


def test_ctrl_c_leaves_the_weights_that_are_proven_best():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 5, 5, 3))
    y = [rng.permutation(5) for _ in X]
    asked = []

    def solve(score):
        asked.append(score)
        if len(asked) > 200:
            raise KeyboardInterrupt
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment(score.reshape(5, 5), maximize=True)[1]

    model = ms.MatchingModel(oracle=solve, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    gaps = [gap for *_, gap in model.history_]
    assert model.certificate_.gap == min(gaps)
    batch = ms.Batch.of(ms.BipartiteMatching(5), y)
    learner = ms.mle_struct(regulariser=1.0)
    dual = learner.dual(batch, ms.Dense.of(batch, X))
    found = FrankWolfe(tol=0.0, rounds=len(gaps) - 1).solve(dual, resolve(None, batch))
    assert found.gap == pytest.approx(model.certificate_.gap, rel=1e-9)
    np.testing.assert_allclose(model.coef_, found.theta)


def test_where_no_bound_is_proven_the_last_weights_are_returned():
    dual = learning(2)
    exact = resolve(None, dual.batch)

    def solve(structure, score):
        vertex, _ = exact.many(dual.batch.select([0]), score)
        return Answer(vertex.reshape(N, N), np.inf)

    last = FrankWolfe(tol=0, rounds=20).solve(dual, Solver(solve))
    assert last.gap == np.inf
    assert np.abs(last.theta).max() > 0.1
