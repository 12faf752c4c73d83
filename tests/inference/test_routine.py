"""Messages give the marginals that enumeration gives, at any temperature of the scores."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.entropy import Entropy
from mlestruct.inference.graph.forward_backward import ForwardBackward
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.inference.matching.scaling import Scaling
from mlestruct.inference.routine import routine

FORESTS = {
    "chain": ms.chain(4, 3),
    "order 3": ms.FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3)]),
    "scope out of order": ms.FactorGraph([3, 2, 2], [(2, 0), (1, 2)]),
    "two components and a loner": ms.FactorGraph([2, 2, 3, 2, 4], [(0, 1), (3, 2)]),
    "one state": ms.FactorGraph([1, 3, 1], [(0, 1), (1, 2)]),
    "forbidden": ms.chain(3, 3).forbid(states=[(0, 1)], configurations=[(1, (2, 2))]),
    "no factors": ms.FactorGraph([3, 2], []),
}


def enumerated(graph, score):
    listed = np.array([graph.encode(y) for y in np.ndindex(*graph.cards)])
    listed = listed[graph.contains(listed)]
    weights = listed @ score
    log_z = np.logaddexp.reduce(weights)
    return log_z, np.exp(weights - log_z) @ listed


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_forward_backward_is_exact_on_forests(name, scale, rng):
    """log Z and τ equal enumeration's, from uniform to nearly deterministic."""
    graph = FORESTS[name]
    batch = ms.Batch.of(graph, count=3)
    scores = scale * rng.standard_normal(batch.size)
    log_z, tau, _ = ForwardBackward().many(batch, scores)
    for m in range(3):
        expected = enumerated(graph, scores[batch.coordinates(m)])
        assert log_z[m] == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(tau[batch.coordinates(m)], expected[1], atol=1e-10)
        assert graph.contains(tau[batch.coordinates(m)], 1e-9)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_scaling_agrees_with_frank_wolfe(scale, rng):
    """The scaled τ is feasible and as good as Frank-Wolfe's, within the certificates."""
    batch = ms.Batch.of([ms.BipartiteMatching(n) for n in (1, 2, 4, 4)])
    scores = scale * rng.standard_normal(batch.size)
    log_z, _, warm = Scaling().many(batch, scores)
    slow = ms.marginals(batch, scores, solver=ms.FrankWolfe(tol=1e-9, rounds=3000))
    assert (log_z >= slow.lower - 1e-9).all()
    assert (log_z <= slow.upper + 1e-9).all()
    again, _, _ = Scaling().many(batch, scores, warm)
    np.testing.assert_allclose(again, log_z, atol=1e-9)
    fast = ms.marginals(batch, scores)
    assert fast.certificate.gap <= 1e-7 * max(1.0, scale)


def test_unfinished_scaling_widens_the_certificate(rng):
    """Truncated inference cannot look better than it is: the interval still holds the truth."""
    batch = ms.Batch.of(ms.BipartiteMatching(6))
    scores = 25.0 * rng.standard_normal(batch.size)
    truth = ms.marginals(batch, scores)
    rough = Scaling(sweeps=2)
    entropy = Entropy.of(batch)
    log_z, tau, _ = rough.many(batch, scores)
    assert batch.structures[0].contains(tau, 1e-12)
    value = entropy.each(tau) + scores @ tau
    assert value[0] <= truth.upper[0] + 1e-9
    assert log_z[0] >= truth.lower[0] - 1e-9


def test_routine_serves_only_what_it_is_exact_for():
    """Other reweightings, temperatures and structures go to Frank-Wolfe."""
    chain = ms.Batch.of(ms.chain(3, 2))
    assert isinstance(routine(Entropy.of(chain)), ForwardBackward)
    assert isinstance(routine(Entropy.of(chain, 0.5)), SumProduct)
    assert routine(Entropy.of(chain, temperature=0.5)) is None
    square = ms.Batch.of(ms.BipartiteMatching(3))
    assert isinstance(routine(Entropy.of(square)), Scaling)
    half = routine(Entropy.of(square))
    bethe = routine(Entropy.of(square, 1.0))
    assert isinstance(bethe, Scaling)
    assert bethe != half
    assert routine(Entropy.of(ms.Batch.of(ms.Custom(3)))) is None
    mixed = ms.Batch.of([ms.chain(2, 2), ms.BipartiteMatching(2)])
    assert routine(Entropy.of(mixed)) is None


def test_paths_have_marginals(rng):
    """Every path of a small DAG listed: the same log Z and arc probabilities; ρ = 1 only."""
    paths = ms.Paths([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)], 0, 4)
    batch = ms.Batch.of(paths, count=2)
    scores = 3.0 * rng.standard_normal(batch.size)
    found = routine(Entropy.of(batch)).many(batch, scores)
    listed = np.array([v for v in np.ndindex(*[2] * paths.size) if paths.contains(np.array(v))])
    for m in range(2):
        here = batch.coordinates(m)
        weights = listed @ scores[here]
        log_z = np.logaddexp.reduce(weights)
        assert found.log_z[m] == pytest.approx(log_z, abs=1e-12)
        np.testing.assert_allclose(found.tau[here], np.exp(weights - log_z) @ listed, atol=1e-12)
    assert ms.marginals(batch, scores).certificate.gap <= 1e-8
    assert routine(Entropy.of(batch, 0.5)) is None
