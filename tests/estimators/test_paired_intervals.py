"""Intervals of one large matching, whose pairs are the units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import mlestruct as ms
from mlestruct.estimators.intervals import Learned, intervals_of
from mlestruct.learners import mle_struct
from mlestruct.regulariser import Regulariser


def market(kind, rng, n=40):
    """Two features, and the pairs that noisy scores choose."""
    X = rng.standard_normal((n, n, 2))
    noisy = X @ [1.0, -0.5] + rng.gumbel(size=(n, n)) - (0.5 if kind == "partial" else 0.0)
    row, column = linear_sum_assignment(noisy, maximize=True)
    partner = np.where(noisy[row, column] > -9, column, -1)
    return ms.BipartiteMatching(n, n, kind), X.reshape(-1, 2), partner


def told(structure, X, partner, bias=None, **settings):
    batch = ms.Batch.of(structure, [partner], bias=bias)
    features, ridge = ms.Dense.of(batch, X), Regulariser.of(2, 1e-6)
    fit = mle_struct(0.5, regulariser=ridge).fit(batch, features)
    fitted = Learned("mle_struct", 0.5, fit.theta, ridge, None)
    return intervals_of(fitted, batch, features, ["a", "b"], [], **settings)


@pytest.mark.parametrize("kind", ["perfect", "partial"])
def test_an_offset_is_part_of_the_score(kind, rng):
    structure, X, partner = market(kind, rng)
    whole, rest = told(structure, X, partner), told(structure, X, partner, 0.5 * X[:, 0])
    assert whole.unit == "pairs and singles"
    assert rest["a"].estimate == pytest.approx(whole["a"].estimate - 0.5, abs=1e-3)
    assert rest["b"].estimate == pytest.approx(whole["b"].estimate, abs=1e-3)
    for name in "ab":
        assert rest[name].error == pytest.approx(whole[name].error, rel=1e-3)


def test_a_market_that_is_all_but_certain_has_no_interval(rng):
    """Pairs count as far as the model is not sure of them: forty that are sure tell nothing."""
    X = rng.standard_normal((40, 40, 2))
    partner = linear_sum_assignment(X @ [1.0, -0.5], maximize=True)[1]
    found = told(ms.BipartiteMatching(40), X.reshape(-1, 2), partner)
    assert found.units == 40
    assert "3 each are needed that the model is not sure of" in found.refused


def taste_market(rng, n=60):
    """Everybody's tastes for two types are their own, and prices clear the market."""
    men, women = rng.integers(2, size=(2, n))
    surplus = np.array([[1.0, 0.0], [0.0, 1.0]])
    his, hers = rng.gumbel(size=(2, n, 3))
    joint = surplus[men][:, women] + his[:, women] + hers[:, men].T
    gain = joint - his[:, [2]] - hers[:, 2]
    row, column = linear_sum_assignment(np.maximum(gain, 0.0), maximize=True)
    partner = np.where(gain[row, column] > 0, column, -1)
    count = np.bincount(men, minlength=2)[men][:, None] * np.bincount(women, minlength=2)[women]
    same = (men[:, None] == women).astype(float)
    X = np.stack([np.ones((n, n)), same], axis=-1).reshape(-1, 2) / 2.0
    return ms.BipartiteMatching(n, n, "partial"), X, partner, -0.5 * np.log(count).ravel()


def test_independent_tastes_make_half_the_models_variance(rng):
    """40 markets: the printed errors are the spread of the estimates, to four of its errors."""
    found = [told(*taste_market(rng), tastes=True) for _ in range(40)]
    for name in "ab":
        spread = np.std([one[name].estimate for one in found], ddof=1)
        printed = np.mean([one[name].error for one in found])
        assert abs(printed / spread - 1.0) < 4.0 / np.sqrt(80)
    assert "everybody's tastes are independent" in str(found[0])


@pytest.mark.parametrize("kind", ["perfect", "one_sided"])
def test_tastes_are_for_markets_in_which_people_may_stay_single(kind, rng):
    with pytest.raises(ValueError, match="partial bipartite matchings"):
        told(*market(kind, rng), tastes=True)
