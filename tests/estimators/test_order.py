"""Another order of the samples moves the objective by no more than the certificates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mlestruct.learners import LEARNERS
from tests.estimators.test_scale_everywhere import KINDS, NO_SUCH, sampled

ONLINE = ("perceptron", "contrastive")  # they see one example, or a few, at a time


def learnt(kind, order, weight, **how):
    """A model of the examples in this order; a fit that has not converged has said so."""
    make, draw, form, own = KINDS[kind]
    X, y = draw(np.random.default_rng(5))
    X = [form(x) for x in X]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = make(**own, **how).fit(
                [X[m] for m in order], [y[m] for m in order], weight[order]
            )
        except ValueError as error:
            if NO_SUCH.search(str(error)):
                pytest.skip(str(error))
            raise
    assert model.converged_ or heard
    return model


@pytest.mark.parametrize(
    ("kind", "learner", "route"),
    sampled(
        [
            (kind, learner, route)
            for kind in KINDS
            for learner in LEARNERS
            for route in ("auto", "frank_wolfe")
            if learner not in ONLINE
            and (route == "auto" or learner not in ("camel", "trw_tightest"))  # rounds of rounds
        ],
        13,
    ),
)
def test_the_order_of_samples_is_nobodys_business(kind, learner, route):
    how = {"learner": learner, "solver": route, "tol": 1e-4, "max_rounds": 100}
    count = len(KINDS[kind].draw(np.random.default_rng(5))[1])
    weight = np.random.default_rng(6).uniform(0.5, 2.0, count)
    one, other = (
        learnt(kind, order, weight, **how)
        for order in (np.arange(count), np.random.default_rng(7).permutation(count))
    )
    first, second = one.certificate_, other.certificate_
    apart = abs(first.objective - second.objective)
    if np.isfinite(first.gap) and np.isfinite(second.gap):
        assert apart <= max(first.gap, second.gap) + 1e-9 * (1.0 + abs(first.objective))
    elif one.converged_ and other.converged_ and np.isfinite(apart):  # without a certificate
        assert apart <= 1e-2 * (1.0 + abs(first.objective))
    if one.route_ == other.route_ == "direct" and one.converged_ and other.converged_:
        np.testing.assert_allclose(other.coef_, one.coef_, atol=0.05 * (1 + abs(one.coef_).max()))
