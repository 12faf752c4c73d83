"""Warm starts from prices of scores that differ by thousands of nats: no other answer, in time."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.matching import Scaling


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (7, 5)])
def test_nobody_is_left_at_a_price_that_none_pays(rows, columns, rho):
    """Where every pair and being single underflow, a degree of 0 passed for one that need not fit:
    log Z was off by a price of the other scores."""
    structure = ms.BipartiteMatching(rows, columns, kind="partial")
    batch, routine = ms.Batch.of(structure, count=1), Scaling(rho)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        mild, wide = rng.normal(size=structure.size), 1e4 * rng.normal(size=structure.size)
        far = routine.many(batch, wide).warm
        warm, cold = routine.many(batch, mild, far), routine.many(batch, mild)
        np.testing.assert_allclose(warm.log_z, cold.log_z, rtol=1e-8)
        np.testing.assert_allclose(warm.tau, cold.tau, atol=1e-6)


@pytest.mark.parametrize("rho", [0.25, 0.5])
@pytest.mark.parametrize("structure", [ms.BipartiteMatching(6, 6), ms.Matching(6)])
def test_entries_that_are_cut_are_not_fitted(structure, rho):
    """One pair of 1e8: e⁶⁰⁰ stood for it, degrees fitted, and the bound was 1e8 below the best."""
    batch, routine = ms.Batch.of(structure, count=1), Scaling(rho)
    mild = np.random.default_rng(0).normal(size=structure.size)
    for size in (1e4, 1e6, 1e8):
        scores = np.zeros(structure.size)
        scores[2] = size
        warm = routine.many(batch, scores, routine.many(batch, mild).warm)
        np.testing.assert_allclose(warm.log_z, routine.many(batch, scores).log_z, rtol=1e-8)
        assert warm.log_z[0] >= scores @ warm.tau - 1e-8 * size
