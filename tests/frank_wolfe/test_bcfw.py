"""BCFW is the papers' algorithm: compared with the same written plainly, and certified."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import mlestruct as ms
from mlestruct.learning.bcfw import BCFW, Passes
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.learning.dual import interior
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.loop import Loop
from mlestruct.oracle import Counted, resolve
from tests.frank_wolfe.test_best import proven_again
from tests.frank_wolfe.test_core import REGULARISERS, Ended, M, cut, learning, rounds

VARIANTS = [
    {},
    {"draw": "uniform"},
    {"fixed": True},
    {"average": True},
]


def plainly(dual, oracle, passes, *, fixed, draw):
    """Algorithm 4 in NumPy, every quantity from scratch at every step; τ and the average of θ."""
    batch, tau = dual.batch, interior(dual.batch, oracle, dual.entropy).tau.copy()
    mean, k = np.zeros(dual.features.d), 0
    for number in range(passes):
        rng = np.random.default_rng((0, number))
        for m in rng.permutation(M) if draw == "permutation" else rng.integers(0, M, M):
            part = batch.coordinates(m)
            score = (dual.scores(dual.theta(tau)) + dual.entropy.grad(tau))[part]
            vertex, _ = oracle.many(batch.select([m]), score)
            delta = np.zeros_like(tau)
            delta[part] = vertex - tau[part]

            def value(gamma, tau=tau, delta=delta):
                return dual.value(tau + gamma * delta)

            gamma = 2 * M / (k + 2 * M)
            if not fixed:
                gamma = minimize_scalar(value, bounds=(0, 1), options={"xatol": 1e-12}).x
            tau = tau + min(gamma, 1 - 1e-9) * delta
            mean += 2 / (k + 2) * (dual.theta(tau) - mean)
            k += 1
    return tau, mean


@pytest.mark.parametrize("draw", ["permutation", "uniform"])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("regulariser", [{}, {"prior": 0.2}, REGULARISERS[2]])
def test_it_is_the_algorithm_of_the_papers(draw, fixed, regulariser):
    dual = learning(1, **regulariser)
    oracle = resolve(None, dual.batch)
    tau, mean = plainly(dual, oracle, 4, fixed=fixed, draw=draw)
    run = Passes(BCFW(draw=draw, fixed=fixed), dual, resolve(None, dual.batch), Loop(), None)
    for _ in range(4):
        run.once()
    assert dual.value(run.iterate.x.tau) == pytest.approx(dual.value(tau), rel=1e-6)
    np.testing.assert_allclose(run.iterate.x.tau, tau, atol=2e-5)
    np.testing.assert_allclose(run.mean, mean, atol=2e-4)


@pytest.mark.parametrize("settings", VARIANTS)
@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_every_state_is_certified_and_counts_its_calls(settings, temperature):
    dual = learning(2, temperature=temperature)
    oracle, gaps = Counted(resolve(None, dual.batch)), []
    solver = BCFW(tol=1e-9, rounds=60, **settings)
    states = rounds(solver, dual, oracle)
    assert states[-1].calls <= oracle.calls <= states[-1].calls + 40  # those for the interior
    for state in states:
        assert state.gap == pytest.approx(proven_again(dual, oracle.oracle, state).gap, rel=1e-6)
        gaps.append(state.gap)
    assert (np.diff(gaps) <= 0).all()
    assert gaps[-1] < 0.2 * gaps[0]
    best = FrankWolfe(tol=1e-7, rounds=3000).solve(dual, oracle.oracle).certificate
    assert state.certificate.objective - state.gap <= best.objective + 1e-9
    assert state.certificate.objective >= best.objective - best.gap - 1e-9


@pytest.mark.parametrize("settings", [{}, {"fixed": True}])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_a_start_at_vertices_proves_no_more_than_is_true(settings, lam):
    """Steps nearly onto vertices, time and again, leave no logarithm clipped in a certificate."""
    dual = learning(6, lam=lam)
    oracle = resolve(None, dual.batch)
    best = FrankWolfe(tol=1e-6, rounds=2000).solve(dual, oracle).certificate
    solver = BCFW(tol=0, rounds=30, every=5, **settings)
    for state in rounds(solver, dual, oracle, dual.batch.target):
        assert state.certificate.objective - state.gap <= best.objective + 1e-9
        assert state.certificate.objective >= best.objective - best.gap - 1e-9


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_run_ended_at_any_pass_goes_on_with_the_same_bits(settings, tmp_path):
    dual = learning(4)
    oracle, path = resolve(None, dual.batch), tmp_path / "run"
    whole = rounds(BCFW(tol=0, rounds=13, every=4, **settings), dual, oracle)
    solver = BCFW(tol=0, rounds=13, every=4, checkpoint=Checkpoint(path, every=1), **settings)
    with pytest.raises(Ended):
        cut(solver, dual, oracle, 8)
    again = rounds(solver, dual, oracle)
    assert [s.certificate for s in whole][-len(again) :] == [s.certificate for s in again]
    assert whole[-1].theta.tobytes() == again[-1].theta.tobytes()
    assert whole[-1].tau.tobytes() == again[-1].tau.tobytes()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draw": "best"}, "draw is one of"),
        ({"every": 0}, "every"),
        ({"tol": -1.0}, "tol is -1"),
    ],
)
def test_misuse_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BCFW(**settings)


@pytest.mark.parametrize("route", ["auto", "frank_wolfe"])
@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("name", ms.learners.LEARNERS)
def test_learners_that_look_at_all_examples_at_once_refuse_it(name, partly, route):
    rng, graph = np.random.default_rng(0), ms.chain(3, 2)
    outcomes = [ms.Partial([0, -1, 1]) if partly else [0, 1, 1], [1, 1, 0]]
    batch = ms.Batch.of(graph, outcomes)
    features = ms.Dense.of(batch, rng.normal(size=(batch.size, 2)))
    how = {"solver": ms.BCFW(rounds=20), "regulariser": 1.0, "route": route}
    try:
        learner = ms.learners.LEARNERS[name](**how)
        learner = learner.of_seen(1e-3) if partly else learner
        model = learner.fit(batch, features)
    except ValueError as error:
        if not re.search("is a BCFW|Partial|missing labels need|direct route only", str(error)):
            raise
    else:
        assert np.isfinite(model.theta).all()
