"""Belief optimisation: pairs to every digit, a free energy that never rises, a stationary end."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.contrastive.belief_optimisation import (
    belief_optimisation,
    cells,
    logits,
)
from mlestruct.inference.exact import exact
from mlestruct.inference.sum_product import SumProduct
from mlestruct.structures.entropy import Entropy
from tests.reference.contrastive import bethe

W = [0.0, 1e-14, 1e-8, 1e-3, 0.5, 1.0, 3.0, 30.0, 300.0, 700.0]
ENDS = [(0.3, 0.6), (0.5, 0.5), (1e-9, 0.9), (1e-12, 1e-12), (0.9999, 1e-4), (0.25, 0.75)]


def exact_cells(w: float, p: float, q: float) -> list[Decimal]:
    """ξ = (Q − R) / 2α and what the margins leave, in a thousand digits."""
    p, q, alpha = Decimal(p), Decimal(q), Decimal(w).exp() - 1
    if alpha == 0:
        xi = p * q
    else:
        Q = 1 + alpha * (p + q)
        xi = (Q - (Q * Q - 4 * alpha * (1 + alpha) * p * q).sqrt()) / (2 * alpha)
    return [xi, p - xi, q - xi, 1 + xi - p - q]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("w", W)
def test_pairs_to_every_digit(w, sign):
    """All four cells, relative to their own size, from |W| = 1e-14 to 700."""
    with localcontext() as context:
        context.prec = 1000
        for p, q in ENDS:
            found = cells(sign * w, p, 1 - p, q, 1 - q)
            for got, want in zip(found, exact_cells(sign * w, p, q), strict=True):
                # rounding of 1 − p itself is an absolute error of 1e-16 at most
                allowed = Decimal("1e-14") * want + Decimal("2e-16")
                assert abs(Decimal(got) - want) <= allowed, (p, q)


def loopy(states: int = 2):
    return ms.FactorGraph([states] * 5, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)])


def test_the_gradient_is_the_free_energys(rng):
    """∂F/∂q by central differences, on a graph with cycles, two examples."""
    batch = ms.Batch.of(loopy(), count=2)
    scores, q = rng.standard_normal(batch.size), rng.uniform(0.1, 0.9, 10)
    _, slope, _ = bethe(batch, scores, logits(q))
    for i in range(10):
        step = 1e-6 * np.eye(10)[i]
        up, down = (bethe(batch, scores, logits(q + s))[0].sum() for s in (step, -step))
        assert slope[i] == pytest.approx((up - down) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_the_fixed_point_of_belief_propagation(strength, rng):
    """Where messages converge, they and descent end at one stationary point."""
    batch = ms.Batch.of([loopy(), ms.grid(3, 3), ms.chain(4, 2)] * 2)
    scores = strength * rng.standard_normal(batch.size)
    entropy = Entropy.of(batch, 1.0, allow_nonconvex=True)
    messages = SumProduct.of(entropy, takeover=False, residual=1e-12).many(batch, scores)
    found = belief_optimisation(batch, scores)
    assert (found.residual <= 1e-9).all()
    np.testing.assert_allclose(found.log_z, messages.log_z, atol=1e-9)
    np.testing.assert_allclose(found.tau, messages.tau, atol=1e-7)


def test_exact_on_forests(rng):
    graph = ms.tree([(0, 1), (1, 2), (1, 3), (4, 5)], [2] * 6)
    batch = ms.Batch.of(graph, count=1)
    scores = 2.0 * rng.standard_normal(batch.size)
    truth = exact(graph, scores)
    found = belief_optimisation(batch, scores, tol=1e-11)
    assert found.log_z[0] == pytest.approx(truth.log_z, abs=1e-9)
    np.testing.assert_allclose(found.tau, truth.tau, atol=1e-9)
    assert graph.contains(found.tau, 1e-12)


@pytest.mark.parametrize("strength", [1.0, 10.0, 200.0])
def test_the_free_energy_never_rises(strength, rng):
    """k + 1 steps begin with the same k steps, so their ends are the path."""
    batch = ms.Batch.of(ms.grid(4, 4), count=3)
    scores = strength * rng.standard_normal(batch.size)
    start = np.where(rng.random(batch.size) < 0.5, 1e-4, 1 - 1e-4)
    path = [belief_optimisation(batch, scores, start=start, steps=k).log_z for k in range(40)]
    assert (np.diff(path, axis=0) >= 0).all()
    assert (path[-1] > path[0] + 0.1).all()


def test_a_step_moves_marginals_near_0_and_1():
    graph = ms.FactorGraph([2, 2, 2], [])
    batch = ms.Batch.of(graph, count=1)
    scores = np.array([0, 1.0, 0, -3.0, 0, 0.2])
    start = np.array([0, 1e-12, 0, 1 - 1e-12, 0, 1e-9])
    found = belief_optimisation(batch, scores, start=start, steps=1)
    np.testing.assert_allclose(found.tau, exact(graph, scores).tau, atol=1e-12)


def test_clamped_variables_and_refusals(rng):
    free = ms.chain(4, 2)
    batch = ms.Batch.of([free.clamp({1: 1}), free])
    scores = rng.standard_normal(batch.size)
    found = belief_optimisation(batch, scores)
    truth = exact(free.clamp({1: 1}), scores[: free.size])
    np.testing.assert_allclose(found.tau[: free.size], truth.tau, atol=1e-7)
    for graph in (ms.chain(3, 3), ms.FactorGraph([2] * 3, [(0, 1, 2)])):
        with pytest.raises(ValueError, match="binary variables in pairs"):
            belief_optimisation(ms.Batch.of(graph, count=1), np.zeros(graph.size))
    hard = free.forbid((), [(0, (0, 1))])
    with pytest.raises(ValueError, match="no forbidden pairs"):
        belief_optimisation(ms.Batch.of(hard, count=1), np.zeros(hard.size))
