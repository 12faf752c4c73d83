"""Mean field bounds log Z from below, by products, and never falls."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.inference.mean_field import MeanFieldAscent

GRAPHS = [ms.grid(3, 3), ms.FactorGraph([2, 3, 2, 3], [(0, 1, 2), (1, 3), (2, 3)]), ms.chain(4, 3)]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_a_lower_bound_at_a_product(graph, damping, rng):
    """log_z ≤ log Z, τ is feasible and its tables are products, log_z their value."""
    batch = ms.Batch.of(graph, count=3)
    scores = rng.standard_normal(batch.size)
    log_z, tau, _ = MeanFieldAscent(damping).many(batch, scores)
    for m in range(3):
        here = batch.coordinates(m)
        assert graph.contains(tau[here], 1e-10)
        assert log_z[m] <= exact(graph, scores[here]).log_z + 1e-12
        nodes = tau[here][: graph.node_start[-1]]
        value = scores[here] @ tau[here] - nodes @ np.log(nodes)
        assert log_z[m] == pytest.approx(value, abs=1e-12)


def test_more_sweeps_never_lower_it(rng):
    batch = ms.Batch.of(ms.grid(4, 4), count=2)
    scores = 2.0 * rng.standard_normal(batch.size)
    values = np.array(
        [MeanFieldAscent(sweeps=k, tol=0.0).many(batch, scores).log_z for k in range(1, 30)]
    )
    assert (np.diff(values, axis=0) >= -1e-12).all()


def test_independent_variables_are_exact(rng):
    graph = ms.FactorGraph([3, 2], [])
    batch = ms.Batch.of(graph, count=1)
    scores = rng.standard_normal(5)
    truth = exact(graph, scores)
    log_z, tau, _ = MeanFieldAscent().many(batch, scores)
    assert log_z[0] == pytest.approx(truth.log_z, abs=1e-12)
    np.testing.assert_allclose(tau, truth.tau, atol=1e-12)


def test_a_repelling_pair_leaves_its_saddle_and_keeps_its_start():
    """Sequential updates do not fall into the two-cycle of parallel ones; the start decides."""
    graph = ms.FactorGraph([2, 2], [(0, 1)])
    batch = ms.Batch.of(graph, count=1)
    scores = np.array([0, 2.0, 0, 2.0, 0, 0, 0, -6.0])
    for first in (0, 1):
        start = np.where(graph.encode([first, 1 - first]) > 0, 0.9, 0.1)
        _, tau, _ = MeanFieldAscent().many(batch, scores, start)
        assert tau[first] > 0.5
        assert tau[2 + 1 - first] > 0.5


def test_clamped_variables_stay_and_hard_factors_are_refused(rng):
    """A clamp is a distribution of one state; a forbidden pair has no product."""
    graph = ms.grid(2, 2).clamp({0: 1})
    batch = ms.Batch.of(graph, count=1)
    scores = rng.standard_normal(batch.size)
    log_z, tau, _ = MeanFieldAscent().many(batch, scores)
    assert tau[1] == 1.0
    assert log_z[0] <= exact(graph, scores).log_z
    with pytest.raises(ValueError, match="factor 0 has a forbidden entry"):
        MeanFieldAscent().many(
            ms.Batch.of(ms.grid(2, 2).forbid((), [(0, (0, 1))]), count=1), scores
        )
    with pytest.raises(ValueError, match="damping is 1"):
        MeanFieldAscent(damping=1)
