"""The fast route: L-BFGS reaches minima, and both routes end at one optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der

import mlestruct as ms
from mlestruct.learners.convex import collect
from mlestruct.oracle import resolve
from mlestruct.train import minimise


def last(objective, theta, tol=1e-8):
    for found in minimise(objective, theta):
        if np.linalg.norm(found[2]) < tol or not found[3]:
            return found
    raise AssertionError("no end")


def test_minimise_reaches_the_minimum_of_a_curved_valley():
    """L-BFGS ends where the gradient vanishes."""
    theta, value, gradient, _ = last(lambda t: (rosen(t), rosen_der(t)), np.zeros(10))
    assert np.linalg.norm(gradient) < 1e-7
    np.testing.assert_allclose(theta, 1.0, atol=1e-6)


def test_minimise_never_rises():
    """Every step of the line search decreases the objective."""
    values = []
    for _, value, gradient, moved in minimise(lambda t: (rosen(t), rosen_der(t)), np.full(6, -1.0)):
        values.append(value)
        if np.linalg.norm(gradient) < 1e-8 or not moved:
            break
    assert (np.diff(values) <= 1e-12).all()


def problems(rng):
    """Small learning problems where both routes exist."""
    d = 3
    trees = [
        ms.FactorGraph([2, 3, 2], [(0, 1), (1, 2)]),
        ms.FactorGraph([2, 2, 3, 2], [(0, 1, 2), (2, 3)]),
        ms.chain(4, 3).forbid(states=[(1, 2)], configurations=[(2, (0, 1))]),
    ]
    for tree in trees:
        structure = [tree] * 4
        legal = [y for y in np.ndindex(*tree.cards) if tree.contains(tree.encode(y))]
        outcomes = [legal[i] for i in rng.integers(len(legal), size=4)]
        yield "forest", structure, outcomes, d
    yield "matching", [ms.BipartiteMatching(4)] * 5, [rng.permutation(4) for _ in range(5)], d
    mixed = [ms.BipartiteMatching(n) for n in (2, 3, 5)]
    yield "mixed sizes", mixed, [rng.permutation(n) for n in (2, 3, 5)], d


def test_both_routes_agree_within_their_certificates(rng):
    """|θ_fast − θ_slow| ≤ √(2·gap/λ) for each, and values differ by at most the gaps."""
    lam = 0.5
    for name, structures, outcomes, d in problems(rng):
        batch = ms.Batch.of(structures, outcomes, weight=rng.uniform(0.5, 2.0, len(outcomes)))
        features = ms.Dense.of(batch, rng.standard_normal((batch.size, d)))
        settings = {"regulariser": lam, "solver": ms.FrankWolfe(tol=1e-9, rounds=3000)}
        fast = ms.mle_struct(**settings).fit(batch, features)
        slow = ms.mle_struct(route="frank_wolfe", **settings).fit(batch, features)
        gaps = fast.certificate.gap + slow.certificate.gap
        assert fast.certificate.gap < 1e-6, name
        assert abs(fast.certificate.objective - slow.certificate.objective) <= gaps + 1e-12, name
        radius = sum(np.sqrt(2 * m.certificate.gap / lam) for m in (fast, slow))
        assert np.linalg.norm(fast.theta - slow.theta) <= radius + 1e-9, name


def test_fast_route_agrees_with_an_enumerated_likelihood(rng):
    """On a chain the fast route is exact maximum likelihood."""
    graph = ms.chain(3, 2)
    states = list(np.ndindex(2, 2, 2))
    outcomes = [states[i] for i in rng.integers(8, size=6)]
    batch = ms.Batch.of(graph, outcomes)
    X = rng.standard_normal((6, graph.size, 4))
    vertices = np.array([graph.encode(s) for s in states])

    def loss(theta):
        scores = np.einsum("sk,mkd,d->ms", vertices, X, theta)
        seen = np.array([graph.encode(y) for y in outcomes])
        reached = np.einsum("mk,mkd,d->m", seen, X, theta)
        return np.logaddexp.reduce(scores, axis=1).sum() - reached.sum() + 0.5 * theta @ theta

    expected = scipy_minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    model = ms.mle_struct(solver=ms.FrankWolfe(tol=1e-12)).fit(batch, ms.Dense.of(batch, X.reshape(-1, 4)))
    np.testing.assert_allclose(model.theta, expected.x, atol=1e-5)
    assert model.certificate.objective == pytest.approx(-expected.fun, abs=1e-8)


def test_states_are_estimates_until_the_last(rng):
    """Only the last state of the fast route carries a proof; the others say so."""
    batch = ms.Batch.of(ms.BipartiteMatching(3), [[0, 1, 2], [2, 1, 0]])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 2)))
    states = list(ms.mle_struct(solver=ms.FrankWolfe(tol=1e-9)).states(batch, features))
    assert [state.done for state in states] == [False] * (len(states) - 1) + [True]
    assert all(state.certificate.withheld for state in states[:-1])
    assert states[-1].certificate.withheld is None
    assert collect(iter(states)).certificate is states[-1].certificate


def test_an_oracle_of_ones_own_means_frank_wolfe(rng):
    """With a given oracle nothing but that oracle is used: its calls are counted."""
    batch = ms.Batch.of(ms.BipartiteMatching(3), [[0, 1, 2], [2, 1, 0]])
    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 2)))
    inner, seen = resolve(None, batch), []

    def spy(structure, score):
        seen.append(1)
        one = ms.Batch.of(structure, count=1)
        return inner.many(one, score.ravel())[0]

    def solve(structure, score):
        return spy(structure, score).reshape(structure.shape)

    model = ms.mle_struct(oracle=solve, solver=ms.FrankWolfe(tol=1e-4)).fit(batch, features)
    assert len(seen) >= 2 * len(model.history)
