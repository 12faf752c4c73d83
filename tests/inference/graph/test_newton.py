"""Where messages stall, Newton's steps on messages end at the maximum, however large the scores."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.newton import settle
from mlestruct.inference.sum_product import SumProduct, compiled
from mlestruct.structures.entropy import Entropy


def spin_glass(rows, columns, strength, rng):
    """Couplings uniform in ±strength and fields in ±1, in the ±1 form."""
    graph = ms.grid(rows, columns)
    field = rng.uniform(-1, 1, graph.n_nodes)
    coupling = rng.uniform(-strength, strength, graph.n_factors)
    nodes = np.stack([-field, field], axis=1).ravel()
    edges = np.stack([coupling, -coupling, -coupling, coupling], axis=1).ravel()
    return graph, np.concatenate([nodes, edges])


def settled(graph, score, rho=None, start=None):
    """Newton's τ from given messages and log-beliefs, and what it lacks."""
    by = SumProduct.of(Entropy.of(ms.Batch.of(graph, count=1), rho))
    ready = compiled(graph, by.counting[graph])
    if start is None:
        start = np.zeros(ready.plan.place[-1]), np.zeros(graph.node_start[-1])
    _, _, tau, lacks = settle(graph, ready.counting, score, ready.plan.open, start)
    return tau, lacks


@pytest.mark.parametrize("strength", [3.0, 10.0])
def test_strong_frustrated_grids_end_with_a_certificate(strength, rng):
    """Messages have not converged after 100 sweeps; the answer is certified all the same."""
    graph, score = spin_glass(6, 6, strength, rng)
    batch = ms.Batch.of(graph, count=1)
    entropy = Entropy.of(batch)
    rough = SumProduct.of(entropy, sweeps=100, takeover=False).many(batch, score)
    assert rough.warm[graph].residual[0] > 1e-10
    found = ms.marginals(batch, score)
    assert found.certificate.relative < 1e-7
    assert rough.log_z[0] <= found.upper[0] + 1e-12


def test_newton_keeps_fixed_states_fixed(rng):
    """Observed variables of a frustrated grid: certified, and nothing leaks onto other states."""
    graph, score = spin_glass(5, 5, 8.0, rng)
    clamped = graph.clamp({0: 1, 12: 0})
    found = ms.marginals(ms.Batch.of(clamped, count=1), score)
    assert found.certificate.relative < 1e-7
    assert (found.tau[clamped.fixed == 0] == 0).all()
    assert clamped.contains(found.tau, 1e-12)


GRAPHS = {
    "complete": (2, [[i, j] for i in range(10) for j in range(i)]),
    "skips": (3, [[i, i + 1] for i in range(7)] + [[i, i + 2] for i in range(0, 6, 2)]),
    "triples": (2, [[i, (i + 1) % 9, (i + 4) % 9] for i in range(9)]),
    "mixed": (3, [[0, 1, 2], [2, 3], [3, 4, 5], [5, 0], [1, 4], [6, 7]]),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("spread", [0.1, 3.0, 20.0, 40.0, 100.0])
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(2, 20))]
)
def test_any_graph_ends_proven_at_any_spread(name, spread, seed):
    states, scopes = GRAPHS[name]
    rng = np.random.default_rng([seed, int(10 * spread)])
    nodes = 1 + max(map(max, scopes))
    graph = ms.FactorGraph([states + (k % 2) * (name == "mixed") for k in range(nodes)], scopes)
    score = spread * rng.standard_normal(graph.size)
    found = ms.marginals(ms.Batch.of(graph, count=1), score)
    assert graph.contains(found.tau, 1e-9)
    assert 0 <= found.upper[0] - found.lower[0] <= 1e-6 * (1.0 + abs(found.upper[0]))


@pytest.mark.parametrize("spread", [1.0, 20.0, 50.0, 200.0])
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(3, 40))]
)
def test_any_start_ends_at_one_point(seed, spread):
    rng = np.random.default_rng([seed, int(spread)])
    n, states = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    pairs = [[i, i + 1] for i in range(n - 1)] + [[i, i + 2] for i in range(0, n - 2, 2)]
    graph = ms.FactorGraph([states] * n, pairs)
    score = spread * rng.normal(size=graph.size)
    slots, sizes = sum(map(len, pairs)) * states, n * states
    starts = [None, (rng.normal(size=slots), rng.normal(size=sizes))]
    points = [settled(graph, score, 0.5 if seed % 2 else None, start) for start in starts]
    for point, lacks in points:
        assert lacks <= 1e-6
        np.testing.assert_allclose(point, points[0][0], atol=1e-7)


@pytest.mark.parametrize("spread", [1.0, 10.0, 60.0])
def test_trees_have_their_exact_marginals(spread, rng):
    """At ρ = 1 the entropy of a tree is exact, so sums over all states must give the same."""
    graph = ms.FactorGraph([2, 3, 2, 4, 3, 2], [[0, 1], [1, 2], [1, 3], [3, 4], [4, 5]])
    score = spread * rng.standard_normal(graph.size)
    tau, lacks = settled(graph, score, 1.0)
    truth = ms.exact(ms.Batch.of(graph, count=1), score)
    assert lacks <= 1e-9
    np.testing.assert_allclose(tau, truth.tau, atol=1e-9)


def test_a_singular_system_leaves_what_messages_found(monkeypatch, rng):
    """A factorisation that fails is no step: the answer is that of the sweeps, with their bound."""
    graph, score = spin_glass(5, 5, 10.0, rng)
    batch = ms.Batch.of(graph, count=1)
    routine = SumProduct.of(Entropy.of(batch), sweeps=20)
    sweeps = routine.rough().many(batch, score)
    assert sweeps.warm[graph].residual[0] > 1e-3

    def singular(*_, **__):
        raise RuntimeError("Factor is exactly singular")

    monkeypatch.setattr("scipy.sparse.linalg.splu", singular)
    found = routine.many(batch, score)
    assert graph.contains(found.tau, 1e-9)
    assert found.log_z[0] >= sweeps.log_z[0] - 1e-9
    assert routine.above(batch, score, found.warm)[0] >= found.log_z[0]
