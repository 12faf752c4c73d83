"""Intervals hold the exact value, and where no theorem exists none is claimed."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.bounds import (
    log_z_interval,
    outcome_interval,
    permanent_interval,
)
from mlestruct.inference.exact import exact
from mlestruct.structures import BipartiteMatching, Matching


@pytest.mark.parametrize(
    ("structure", "rho", "sides"),
    [
        (ms.chain(4, 3), None, "both"),
        (ms.grid(3, 3), None, "upper"),
        (ms.grid(3, 3), 0.5, "upper"),
        (BipartiteMatching(3), None, "upper"),
        (BipartiteMatching(3), 1.0, "lower"),
        (BipartiteMatching(2, 3, "partial"), 1.0, "lower"),
        (Matching(6), 0.5, "upper"),
        (Matching(6), 1.0, "none"),
    ],
)
def test_an_interval_holds_the_exact_value(structure, rho, sides, rng):
    batch = ms.Batch.of(structure, count=3)
    scores = rng.normal(size=batch.size)
    truth = exact(batch, scores).log_z
    found = log_z_interval(ms.marginals(batch, scores, rho=rho))
    assert (found.lower <= truth + 1e-9).all()
    assert (truth <= found.upper + 1e-9).all()
    assert np.isfinite(found.lower).all() == (sides in ("both", "lower"))
    assert np.isfinite(found.upper).all() == (sides in ("both", "upper"))


@pytest.mark.parametrize(
    "structure", [ms.grid(3, 3), BipartiteMatching(4), Matching(6), ms.chain(4, 2)]
)
def test_an_outcome_is_below(structure, rng):
    batch = ms.Batch.of(structure, count=2)
    scores = 3 * rng.normal(size=batch.size)
    found = outcome_interval(batch, scores)
    assert (found.lower <= exact(batch, scores).log_z).all()
    assert np.isfinite(found.lower).all()
    both = found & log_z_interval(ms.marginals(batch, scores))
    assert (both.lower <= both.upper).all()


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_bethe_and_the_permanent(n, spread, rng):
    """Above the exact log Z, and at most (n/2) log 2 wide; equal scores of pairs reach that."""
    structure = BipartiteMatching(n)
    batch = ms.Batch.of(structure, count=3)
    scores = spread * rng.standard_normal(batch.size)
    bethe = ms.marginals(batch, scores, rho=1.0)
    inside = permanent_interval(batch, bethe) & log_z_interval(bethe)
    log_z = exact(batch, scores).log_z
    assert (inside.lower <= log_z + 1e-8).all()
    assert (log_z <= inside.upper + 1e-8).all()
    assert (inside.upper - inside.lower <= n / 2 * np.log(2) + 1e-3).all()
    others = ms.Batch.of(BipartiteMatching(3, 3, "partial"), count=1)
    found = ms.marginals(others, rng.standard_normal(9), rho=1.0)
    assert np.isinf(permanent_interval(others, found).upper).all()


def test_the_permanents_bound_is_reached():
    """Blocks of two equal pairs each: the bound is tight there."""
    scores = np.kron(np.eye(4), np.ones((2, 2)))
    batch = ms.Batch.of(BipartiteMatching(8), count=1)
    flat = np.where(scores.ravel() > 0, 0.0, -60.0)
    upper = permanent_interval(batch, ms.marginals(batch, flat, rho=1.0)).upper[0]
    assert upper == pytest.approx(4 * np.log(2), abs=0.02)
    assert exact(BipartiteMatching(8), flat).log_z == pytest.approx(4 * np.log(2), abs=1e-9)


def test_rounding_crosses_no_ends(rng):
    """Where one outcome is nearly certain its score and log Z are the same number, nearly."""
    X, y = [rng.normal(size=(4, 4, 2)) for _ in range(40)], [rng.permutation(4) for _ in range(40)]
    model = ms.MatchingModel(learner="exact_mle", max_rounds=1)
    with pytest.warns(ms.ConvergenceWarning):
        model.fit(X, y)
    model.coef_ = np.array([130.0, -70.0])
    for x, outcome in zip(X, y, strict=True):
        low, high = model.log_likelihood([x], [outcome])
        assert low <= high <= 0.0
