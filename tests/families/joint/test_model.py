"""JointModel: the front door of joint estimation and prediction."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.joint.prediction import Mixture
from mlestruct.testing import vertices

MIXTURE = Mixture(0.6, [-1.0, 1.0], [0.5, 0.5])


@pytest.fixture(scope="module")
def rows():
    """Grids whose rows have one label each, their values and noisy observations."""
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(2, size=(260, 4)), 4, axis=1)
    z = rng.normal(MIXTURE.nu[labels], np.sqrt(0.5))
    return labels, z, 0.6 * z + 0.8 * rng.standard_normal(z.shape)


def test_hidden_sites_are_filled_in(rows):
    labels, _, y = rows
    model = ms.JointModel(ms.grid(4, 4), MIXTURE, smoothing=0.02).fit(labels[:200])
    hidden = y[200:].copy()
    hidden[:, 5] = np.nan
    tables = np.array(model.predict_marginals(hidden))
    right = tables[:, 5].argmax(axis=1) == labels[200:, 5]
    assert right.mean() > 0.7
    np.testing.assert_allclose(tables.sum(axis=2), 1.0)


def alike(rng, graph, coupling):
    """Labellings drawn from couplings of this size: more alike, less believable at ρ = 1."""
    theta = np.zeros(graph.size)
    theta[graph.node_start[-1] :] = np.tile([coupling, 0.0, 0.0, coupling], graph.n_factors)
    theta[: graph.node_start[-1]] = 0.2 * rng.standard_normal(graph.node_start[-1])
    listed = vertices(graph)
    odds = np.exp(listed @ theta - (listed @ theta).max())
    return [graph.decode(listed[k]) for k in rng.choice(len(listed), 300, p=odds / odds.sum())]


@pytest.mark.parametrize("coupling", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("rho", [None, "trees", "half", "cliques", 0.0, "bethe", 0.8])
def test_nothing_seen_predicts_the_moments_or_the_fit_has_said_so(rho, coupling):
    """Messages begin at the moments, and leave them by rounding alone where they do not hold."""
    rng, graph = np.random.default_rng(1), ms.grid(3, 3)
    labels = alike(rng, graph, coupling)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = ms.JointModel(graph, MIXTURE, rho=rho, smoothing=0.02).fit(labels)
        found = model.predict_marginals([np.full(9, np.nan)])[0]
    mean = 0.98 * np.eye(2)[np.array(labels)].mean(axis=0) + 0.01
    off = np.abs(found - mean).max()
    assert off <= 1e-4 or heard
    assert model.converged_ == (not heard)
    assert model.converged_ or rho in ("bethe", 0.8)  # not concave


def test_moments_that_belief_propagation_cannot_hold_are_named():
    graph = ms.grid(3, 3)
    labels = alike(np.random.default_rng(1), graph, 2.0)
    with pytest.warns(
        ms.ConvergenceWarning, match=r"no maximum that holds.* 0[.][1-9].*rho='trees'"
    ):
        ms.JointModel(graph, MIXTURE, rho=1.0, smoothing=0.02).fit(labels)


def test_misuse_is_refused():
    model = ms.JointModel(ms.grid(2, 2), MIXTURE)
    with pytest.raises(ValueError, match="not fitted yet"):
        model.predict([np.zeros(4)])
    with pytest.raises(ValueError, match="no examples"):
        model.fit([])
    with pytest.raises(ValueError, match="use smoothing"):
        model.fit([[0, 0, 0, 0]])
