"""Calibration: bins by hand, and what a calibrated forecaster scores."""

import numpy as np
import pytest

from mlestruct.estimators import Calibration


def test_bins_are_counted_by_hand():
    """Means, shares, counts, ECE and Brier score of five parts, worked out on paper."""
    report = Calibration.of([0.0, 0.05, 0.5, 0.55, 1.0], [0, 1, 0, 1, 1], bins=10)
    np.testing.assert_allclose(report.predicted, [0.025, 0.525, 1.0])
    np.testing.assert_allclose(report.observed, [0.5, 0.5, 1.0])
    assert report.count.tolist() == [2, 2, 1]
    assert report.error == pytest.approx((2 * 0.475 + 2 * 0.025) / 5)
    assert report.brier == pytest.approx((0 + 0.95**2 + 0.25 + 0.45**2 + 0) / 5)
    assert "Brier score" in str(report)


def test_true_probabilities_are_calibrated(rng):
    """Outcomes drawn with the stated probabilities: ECE near 0, Brier near E[p(1−p)]."""
    p = rng.random(20_000)
    report = Calibration.of(p, rng.random(20_000) < p)
    assert report.error < 0.02
    assert report.brier == pytest.approx(1 / 6, abs=0.01)
    with pytest.raises(ValueError, match="bins=0"):
        Calibration.of(p, p, bins=0)
