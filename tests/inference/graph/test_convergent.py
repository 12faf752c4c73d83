"""Where messages stall, Newton goes on to a certificate."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.graph import convergent
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.structures.entropy import Entropy


def spin_glass(rows, columns, strength, rng):
    """Couplings uniform in ±strength and fields in ±1, in the ±1 form."""
    graph = ms.grid(rows, columns)
    field = rng.uniform(-1, 1, graph.n_nodes)
    coupling = rng.uniform(-strength, strength, graph.n_factors)
    nodes = np.stack([-field, field], axis=1).ravel()
    edges = np.stack([coupling, -coupling, -coupling, coupling], axis=1).ravel()
    return graph, np.concatenate([nodes, edges])


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


@pytest.mark.parametrize("spread", [20.0, 50.0, 200.0])
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(3, 40))]
)
def test_any_start_ends_at_one_value(seed, spread):
    """Nearly a vertex on chains with skips: steps that stop at the nearest 0 jam on the way."""
    rng = np.random.default_rng([seed, int(spread)])
    n, states = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    pairs = [[i, i + 1] for i in range(n - 1)] + [[i, i + 2] for i in range(0, n - 2, 2)]
    graph = ms.FactorGraph([states] * n, pairs)
    entropy = Entropy.of(ms.Batch.of(graph, count=1), 0.5 if seed % 2 else None)
    routine = SumProduct.of(entropy)
    ready, score = routine.ready(graph), spread * rng.normal(size=graph.size)
    starts = [graph.interior(), routine.rough().many(entropy.batch, score / 100).tau]
    starts.append(routine.rough().many(entropy.batch, -score).tau)
    values = []
    for start in starts:
        point, value = convergent.ascend(graph, ready.plan, ready.coefficient, score, start)
        assert graph.contains(point)
        values.append(value)
    assert np.ptp(values) <= 1e-8 * (1.0 + abs(values[0]))
