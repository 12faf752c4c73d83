"""Reliability bins: equal expected hits, nothing lost, intervals that cover."""

import numpy as np
import pytest
from scipy.stats import binomtest

from mlestruct.report.reliability import reliability


def test_every_bin_expects_as_many_hits(rng):
    p = rng.beta(0.5, 30, size=20_000)
    found = reliability(p, rng.random(20_000) < p)
    expected = found.predicted * found.count
    assert found.count.sum() == 20_000
    assert expected == pytest.approx(np.full(8, p.sum() / 8), rel=0.02)
    assert (np.diff(found.predicted) > 0).all()


def test_intervals_are_wilsons_and_cover(rng):
    p = rng.beta(0.5, 30, size=4000)
    inside = []
    for _ in range(200):
        found = reliability(p, rng.random(4000) < p)
        inside.append((found.low <= found.predicted) & (found.predicted <= found.high))
    assert 0.92 < np.mean(inside) < 0.985
    hits = round(found.observed[3] * found.count[3])
    known = binomtest(hits, int(found.count[3])).proportion_ci(method="wilson")
    assert (found.low[3], found.high[3]) == pytest.approx((known.low, known.high), abs=1e-12)


def test_few_pairs_leave_few_bins():
    found = reliability([0.5, 0.5], [1, 0])
    assert found.count.sum() == 2
    assert (found.count > 0).all()
    assert (found.low <= found.observed).all()
    assert (found.observed <= found.high).all()
