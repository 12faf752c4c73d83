"""JointModel: the front door of joint estimation and prediction."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.joint.prediction import Mixture, predict

MIXTURE = Mixture(0.6, [-1.0, 1.0], [0.5, 0.5])


@pytest.fixture(scope="module")
def rows():
    """Grids whose rows have one label each, their values and noisy observations."""
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(2, size=(260, 4)), 4, axis=1)
    z = rng.normal(MIXTURE.nu[labels], np.sqrt(0.5))
    return labels, z, 0.6 * z + 0.8 * rng.standard_normal(z.shape)


def test_neighbours_help(rows):
    """Coupled estimates of unseen examples have a smaller error than sites by themselves."""
    labels, z, y = rows
    errors = []
    for rho in ("trees", 0.0):
        model = ms.JointModel(ms.grid(4, 4), MIXTURE, rho=rho, smoothing=0.02).fit(labels[:200])
        errors.append(np.mean((np.array(model.predict(y[200:])) - z[200:]) ** 2))
    assert errors[0] < 0.9 * errors[1]


def test_hidden_sites_are_filled_in(rows):
    """A site nobody saw follows its row's others."""
    labels, _, y = rows
    model = ms.JointModel(ms.grid(4, 4), MIXTURE, smoothing=0.02).fit(labels[:200])
    hidden = y[200:].copy()
    hidden[:, 5] = np.nan
    tables = np.array(model.predict_marginals(hidden))
    right = tables[:, 5].argmax(axis=1) == labels[200:, 5]
    assert right.mean() > 0.7
    np.testing.assert_allclose(tables.sum(axis=2), 1.0)


def test_it_is_moment_matching_and_the_same_surrogate(rows):
    """Nothing else: the pieces one layer down give the same numbers, and stability is reported."""
    labels, _, y = rows
    model = ms.JointModel(ms.grid(4, 4), MIXTURE, rho=0.5, smoothing=0.1).fit(labels)
    same = predict(ms.grid(4, 4), model.coef_, MIXTURE, y[0], 0.5)
    np.testing.assert_array_equal(model.predict(y[:1])[0], same.z)
    assert 0 < model.stability_ < np.inf
    assert model.get_params()["smoothing"] == 0.1


def test_misuse_is_refused():
    model = ms.JointModel(ms.grid(2, 2), MIXTURE)
    with pytest.raises(ValueError, match="not fitted yet"):
        model.predict([np.zeros(4)])
    with pytest.raises(ValueError, match="no examples"):
        model.fit([])
    with pytest.raises(ValueError, match="use smoothing"):
        model.fit([[0, 0, 0, 0]])
