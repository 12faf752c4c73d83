"""Implicit and procedural fitting at the front door of images."""

from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.fitting.implicit import coefficients
from mlestruct.families.fitting.procedural import procedural
from mlestruct.families.fitting.truncated import Messages, beliefs


def pictures(rng, count):
    y = [np.kron(rng.integers(2, size=(2, 2)), np.ones((3, 3), dtype=int)) for _ in range(count)]
    noise = (np.random.default_rng([4, m]).standard_normal(one.shape) for m, one in enumerate(y))
    return [one + 0.8 * more for one, more in zip(y, noise, strict=True)], y


def test_procedural_models_predict_by_the_iterations_they_were_fitted_with(rng):
    """Marginals are the truncated beliefs, and claim no bound; the error beats the noise's."""
    X, y = pictures(rng, 8)
    model = ms.GridModel(learner=partial(procedural, iterations=2), alpha=0.1, tol=1e-4).fit(X, y)
    batch = ms.Batch.of(ms.grid(6, 6), count=8)
    tau = beliefs(batch, [np.concatenate(model.potentials(X))], Messages(), 2)
    found = np.array(model.predict_marginals(X))
    expected = np.array([tau[batch.coordinates(m)][:72].reshape(6, 6, 2) for m in range(8)])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    wrong = np.mean([p != t for p, t in zip(model.predict(X, "expected"), y, strict=True)])
    assert wrong < np.mean([(x > 0.5) != t for x, t in zip(X, y, strict=True)])
    assert model.certificate_.withheld is not None


@pytest.mark.parametrize("rho", [None, coefficients(0.1)])
def test_implicit_models_predict_by_the_inference_they_were_fitted_with(rng, rho):
    X, y = pictures(rng, 8)
    model = ms.GridModel(learner="implicit", rho=rho, alpha=0.1, tol=1e-4).fit(X, y)
    wrong = np.mean([p != t for p, t in zip(model.predict(X, "expected"), y, strict=True)])
    assert wrong < np.mean([(x > 0.5) != t for x, t in zip(X, y, strict=True)])
