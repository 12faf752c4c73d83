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
