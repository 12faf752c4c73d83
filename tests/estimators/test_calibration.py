"""Calibration: bins by hand, what a calibrated forecaster scores, bins for rare parts."""

import copy
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest

import mlestruct as ms
from mlestruct.estimators import Calibration
from mlestruct.testing import vertices


def test_bins_are_counted_by_hand():
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
    with pytest.raises(ValueError, match="bins is 0"):
        Calibration.of(p, p, bins=0)


def test_every_bin_expects_as_many_hits(rng):
    p = rng.beta(0.5, 30, size=20_000)
    found = Calibration.of(p, rng.random(20_000) < p, bins=8, rare=True)
    expected = found.predicted * found.count
    assert found.count.sum() == 20_000
    assert expected == pytest.approx(np.full(8, p.sum() / 8), rel=0.02)
    assert (np.diff(found.predicted) > 0).all()


def test_intervals_are_wilsons_and_cover(rng):
    p = rng.beta(0.5, 30, size=4000)
    inside = []
    for _ in range(200):
        found = Calibration.of(p, rng.random(4000) < p, bins=8, rare=True)
        low, high = found.interval
        inside.append((low <= found.predicted) & (found.predicted <= high))
    assert 0.92 < np.mean(inside) < 0.985
    hits = round(found.observed[3] * found.count[3])
    known = binomtest(hits, int(found.count[3])).proportion_ci(method="wilson")
    assert (low[3], high[3]) == pytest.approx((known.low, known.high), abs=1e-12)


def test_few_pairs_leave_few_bins():
    found = Calibration.of([0.5, 0.5], [1, 0], bins=8, rare=True)
    assert found.count.sum() == 2
    assert (found.count > 0).all()
    low, high = found.interval
    assert (low <= found.observed).all()
    assert (found.observed <= high).all()


def test_right_probabilities_are_within_chance_and_wrong_ones_are_not(rng):
    """The gate's own law: 95 % of right forecasts pass, probabilities off by a third do not."""
    p = rng.beta(0.5, 3, size=2000)
    passed = [Calibration.of(p, rng.random(2000) < p).calibrated for _ in range(200)]
    assert 0.9 < np.mean(passed) < 0.99
    wrong = Calibration.of(p, rng.random(2000) < 0.67 * p)
    assert not wrong.calibrated
    assert "is more than chance" in str(wrong)
    mean, most = wrong.chance
    assert 0 < mean < most < wrong.error


@pytest.mark.parametrize("make", [Calibration.of, partial(Calibration.of, rare=True)])
@pytest.mark.parametrize("structure", [ms.chain(6, 2), ms.grid(3, 3, 2), ms.BipartiteMatching(4)])
def test_parts_of_one_example_may_come_true_together(structure, make, rng):
    """Right probabilities pass as they should; as independent parts they did in .2 to .7."""
    rows, size = vertices(structure), structure.size
    passed, inside = [], []
    for _ in range(60):
        scores = 3.0 * rng.standard_normal((20, size)) @ rows.T
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        tau = np.clip(chance / chance.sum(axis=1, keepdims=True) @ rows, 0.0, 1.0)
        true = rows[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
        found = make(tau, true, unit=np.repeat(np.arange(20), size))
        low, high = found.interval
        passed.append(found.calibrated)
        inside.append(np.mean((low <= found.predicted) & (found.predicted <= high)))
    assert np.mean(passed) >= 0.85  # of 60 draws
    assert np.mean(inside) >= 0.9


def test_units_that_are_parts_are_no_units(rng):
    """Every part a unit of its own: the noise of independent parts, whatever came true."""
    p = rng.random(4000)
    true = rng.random(4000) < p
    alone, each = Calibration.of(p, true), Calibration.of(p, true, unit=np.arange(4000))
    np.testing.assert_allclose(each.interval, alone.interval, atol=0.01)
    assert each.chance[1] == pytest.approx(alone.chance[1], rel=0.1)
    few = Calibration.of(p, true, unit=np.arange(4000) % 7)
    assert few.interval[0].tolist() == alone.interval[0].tolist()


def test_recalibration_undoes_a_wrong_scale(rng):
    """Weights a third of what they were: sharpened by other examples, the certificate withheld."""
    x = [rng.standard_normal((5, 1)) for _ in range(400)]
    y = [(r[:, 0] + 0.5 * rng.logistic(size=5) > 0).astype(int) for r in x]
    model = ms.SequenceModel(alpha=1e-3).fit(x[:200], y[:200])
    dull = copy.copy(model)
    dull.coef_ = 0.3 * model.coef_
    sharp = dull.recalibrated(x[200:], y[200:])
    np.testing.assert_allclose(sharp.coef_, model.coef_, rtol=0.15, atol=0.05)
    assert sharp.calibration(x[200:], y[200:]).error < dull.calibration(x[200:], y[200:]).error
    assert all((a == b).all() for a, b in zip(sharp.predict(x), model.predict(x), strict=True))
    assert "multiplied by" in sharp.certificate_.withheld
    assert sharp.certificate_.gap == np.inf
    assert dull.certificate_.withheld is None


@pytest.mark.parametrize("learner", ["mle_struct", "ssvm", "perceptron", "pseudo_likelihood"])
def test_a_summary_says_whose_probabilities_need_calibration(learner, rng):
    """Of learners that decide, until they are recalibrated; likelihoods say nothing of the kind."""
    X = [rng.standard_normal((4, 2)) for _ in range(12)]
    y = [(x[:, 0] + rng.standard_normal(4) > 0).astype(int) for x in X]
    model = ms.SequenceModel(learner=learner).fit(X, y)
    advised = "recalibrated(X, y)" in str(model.summary())
    assert advised == (learner in ("ssvm", "perceptron"))
    assert "recalibrated(X, y)" not in str(model.recalibrated(X, y).summary())


def test_own_solvers_are_told_that_their_probabilities_are_timid(rng):
    def best(scores):
        return np.arange(4) == scores.argmax()

    X = [rng.standard_normal((4, 2)) for _ in range(120)]
    y = [best(x @ [2.0, -1.0] + rng.gumbel(size=4)) for x in X]
    plain = ms.StructuredModel(oracle=best).fit(X[:60], y[:60])
    told = ms.StructuredModel(ms.Custom(4, exactly_one=[range(4)]), oracle=best).fit(X[:60], y[:60])
    assert "too timid" in str(plain.summary())
    assert "timid" not in str(told.summary())
    sharper = plain.recalibrated(X[60:90], y[60:90])
    assert "timid" not in str(sharper.summary())
    assert sharper.coef_[0] > 1.1 * plain.coef_[0]
    brier = [one.calibration(X[90:], y[90:]).brier for one in (sharper, plain)]
    assert brier[0] < brier[1]
