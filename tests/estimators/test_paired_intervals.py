"""Intervals of one large matching, whose pairs are the units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import mlestruct as ms


def market(kind, rng, n=40):
    """Two features, and the pairs that noisy scores choose."""
    X = rng.standard_normal((n, n, 2))
    noisy = X @ [1.0, -0.5] + rng.gumbel(size=(n, n)) - (0.5 if kind == "partial" else 0.0)
    row, column = linear_sum_assignment(noisy, maximize=True)
    partner = np.where(noisy[row, column] > -9, column, -1)
    return ms.BipartiteMatching(n, n, kind), X.reshape(-1, 2), partner


def told(structure, X, partner, bias=0.0):
    example = {"features": X, "known": bias + np.zeros(len(X))}
    model = ms.StructuredModel(structure, "known", ["a", "b"], rho=0.5, alpha=1e-6)
    return model.fit([example], [partner]).intervals([example], [partner])


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
