"""Frank-Wolfe's first weights are a long step along a gradient; a fit may end there."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("seed", [1, 6])
def test_no_weights_are_worse_than_those_to_begin_with(rounds, alpha, seed):
    """Two labels, whose sums are exact: of six bags the weights 0 leave six times log 4."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=3) for _ in range(6)]
    y = [(x[:2] + 0.7 * rng.normal(size=2) > 0).astype(int) for x in X]
    settings = {"solver": "frank_wolfe", "alpha": alpha, "max_rounds": rounds, "tol": 1e-9}
    with pytest.warns(ms.ConvergenceWarning):
        model = ms.MultiLabelModel(**settings).fit(X, y)
    batch, features = model._problem(X, model.encode(X, y), None)
    scores = features.potentials(model.coef_)
    found = model.inference_.marginals(batch, scores)
    primal = alpha / 2 * model.coef_ @ model.coef_ + (found.upper - batch.observed(scores)).sum()
    assert primal <= 6 * np.log(4) + 1e-6
    assert primal - model.certificate_.gap <= 6 * np.log(4)
