"""A warm start is a hint: it may cost time, and never changes the answer."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.routine import routine
from mlestruct.structures.entropy import Entropy

SPREADS = (0.1, 1.0, 5.0, 20.0, 50.0)


def matchings(rng):
    n = int(rng.integers(2, 6))
    return [
        ms.BipartiteMatching(n),
        ms.BipartiteMatching(n, n + 1, kind="one_sided"),
        ms.BipartiteMatching(n, n + 1, kind="partial"),
        ms.Matching(2 * (n // 2 + 1)),
        ms.Matching(n + 1, kind="partial"),
    ]


def graphs(rng):
    cards = rng.integers(2, 4, size=4).tolist()
    ring = [[0, 1], [1, 2], [2, 3], [3, 0]]
    return [
        ms.FactorGraph(cards, ring),
        ms.FactorGraph([2] * 4, [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3]]),
        ms.FactorGraph([2] * 4, [[0, 1, 2], [1, 2, 3]]),
        ms.chain(4, 3),
        ms.FactorGraph([2] * 5, [[0, 1], [1, 2], [2, 3], [3, 4], [0, 2], [2, 4]]),
    ]


def moving(rng, size, spread, length=6):
    """Scores that creep, jump, turn round, fade and grow."""
    score = rng.normal(size=size) * spread
    yield score
    for _ in range(length):
        score = [
            lambda s: s + 0.1 * spread * rng.normal(size=size),
            lambda s: spread * rng.normal(size=size),
            lambda s: -s,
            lambda s: s * rng.choice([0.01, 0.3, 2.0]),
        ][rng.integers(4)](score)
        yield score


def held(structure, rho, spread, rng):
    """Warm and cold answers at every step of a sequence, by the routine that serves."""
    batch = ms.Batch.of(structure, count=2)
    entropy = Entropy.of(batch, rho)
    found = routine(entropy)
    assert found is not None
    warm = None
    for score in moving(rng, batch.size, spread):
        went, cold = found.many(batch, score, warm), found.many(batch, score)
        np.testing.assert_allclose(went.log_z, cold.log_z, rtol=1e-6, atol=1e-6)
        worth = entropy.each(went.tau) + batch.totals(score * went.tau)
        np.testing.assert_allclose(worth, cold.log_z, rtol=1e-5, atol=1e-4)
        warm = went.warm


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5, 0.75, 0.95, 1.0])
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(3, 60))]
)
def test_matchings_answer_warm_as_they_do_cold(seed, rho, spread):
    """And the point they return is worth what they say."""
    rng = np.random.default_rng([seed, int(100 * rho), int(10 * spread)])
    for structure in matchings(rng):
        held(structure, rho, spread, rng)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("rho", [None, 0.5])
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(3, 40))]
)
def test_graphs_answer_warm_as_they_do_cold(seed, rho, spread):
    """Concave counting numbers alone: belief propagation may have several answers."""
    rng = np.random.default_rng([seed, int(10 * spread)])
    for structure in graphs(rng):
        held(structure, rho, spread, rng)


@pytest.mark.parametrize("rho", [0.95, 1.0])
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(6, 60))]
)
def test_fits_near_bethe_reach_their_tolerance(seed, rho):
    """Small tables and few features: weights grow until marginals are near vertices."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(3, 3, 2)) for _ in range(4)]
    model = ms.MatchingModel(rho=rho, alpha=0.5).fit(X, [rng.permutation(3) for _ in X])
    assert model.converged_
    assert model.route_ == "direct"
    batch = ms.Batch.of([ms.Matching(4)] * 4, [[(0, 1), (2, 3)]] * 4)
    features = ms.Dense.of(batch, [rng.normal(size=(6, 2)) for _ in range(4)])
    assert ms.mle_struct(rho, regulariser=0.5).fit(batch, features).converged
