"""The units of a column change nothing: neither what is learned nor whether it is."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

import mlestruct as ms
from tests.estimators.test_scale_everywhere import pictures, words
from tests.estimators.test_scale_everywhere import squares as tables

KINDS = {
    "matching": (ms.MatchingModel, tables),
    "sequence": (ms.SequenceModel, words),
    "grid": (ms.GridModel, pictures),
}


def learnt(kind, factor, seed=0, column=1, **settings):
    """A model and its marginals, with one column (or all, mixed) in other units."""
    make, data = KINDS[kind]
    X, y = data(np.random.default_rng(seed))
    units = np.ones(3)
    units[column] = factor
    X = [x * units for x in X]
    model = make(**settings).fit(X, y)
    return model, np.concatenate([np.ravel(part) for part in model.predict_marginals(X)])


@pytest.mark.parametrize("seed", range(4))
def test_a_salary_beside_a_yes_or_no(seed):
    rng = np.random.default_rng(seed)
    shape = (10, 5, 5)
    yes, pay = rng.random(shape) < 0.5, 50_000 + 15_000 * rng.normal(size=shape)
    X = list(np.stack([yes.astype(float), pay], axis=-1))
    y = [rng.permutation(5) for _ in X]
    for penalty in ("raw", "standardised"):
        model = ms.MatchingModel(penalty=penalty).fit(X, y)
        start = -np.mean([np.log(1.0)])  # log-likelihood is never above 0
        assert model.converged_
        assert -120.0 < model.certificate_.objective < start


@pytest.mark.parametrize("mean", [1e3, 1e5])
def test_the_time_beside_the_label_itself(mean, rng):
    labels = [rng.integers(0, 2, 8) for _ in range(30)]
    X = [np.stack([y + 0.0, mean * (1 + 1e-4 * rng.normal(size=8))], axis=-1) for y in labels]
    y = [row.tolist() for row in labels]
    model = ms.SequenceModel().fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0


ALL = {
    "sequence": (ms.SequenceModel, words, {}),
    "grid": (ms.GridModel, pictures, {}),
    "grid, pseudo-likelihood": (ms.GridModel, pictures, {"learner": "pseudo_likelihood"}),
}


@pytest.mark.parametrize("solver", ["direct", "frank_wolfe"])
@pytest.mark.parametrize("penalty", ["raw", "standardised"])
@pytest.mark.parametrize(("mean", "spread"), [(1.7e9, 1.0), (1e9, 1e5), (1e10, 1e-2)])
def test_a_unix_time_in_a_perfect_matching(mean, spread, penalty, solver, rng):
    X, y = tables(rng)
    late = [x * np.array([1.0, spread, 1.0]) + np.array([0.0, mean, 0.0]) for x in X]
    how = {"penalty": penalty, "tol": 1e-4, "solver": solver}
    model = ms.MatchingModel(**how).fit(late, y)
    assert model.converged_
    assert model.certificate_.objective < 0
    if penalty == "standardised":
        plain = ms.MatchingModel(**how).fit([x - x.mean((0, 1), keepdims=True) for x in X], y)
        np.testing.assert_allclose(model.coef_[1] * spread, plain.coef_[1], atol=0.1)
    near = model.predict_marginals([x - np.array([0.0, mean, 0.0]) for x in late])
    np.testing.assert_allclose(model.predict_marginals(late), near, atol=1e-4)


@pytest.mark.parametrize("mean", [1e9, 1.7e9, 1e10])
@pytest.mark.parametrize("kind", ALL)
def test_a_unix_time_elsewhere(kind, mean, rng):
    make, data, how = ALL[kind]
    X, y = data(rng)
    late = [x * np.array([1.0, 1e5, 1.0]) + np.array([0.0, mean, 0.0]) for x in X]
    assert make(**how).fit(late, y).converged_


@pytest.mark.parametrize("spread", [1.0, 1e5])
@pytest.mark.parametrize("rho", [0.5, 0.75, 1.0])
def test_a_unix_time_where_it_counts_the_pairs(rho, spread, rng):
    """Moments are off by what no digit of log Z shows: τ is balanced, and proves the weights."""
    X = [rng.normal(size=(5, 5, 3)) for _ in range(12)]
    y = [np.where(rng.random(5) < 0.3, -1, rng.permutation(5)) for _ in X]
    late = [x * np.array([1.0, spread, 1.0]) + np.array([0.0, 1.7e9, 0.0]) for x in X]
    model = ms.MatchingModel(kind="partial", rho=rho, tol=1e-4).fit(late, y)
    assert model.converged_
    counted = [np.concatenate([x[..., [0, 2]], np.ones((5, 5, 1))], axis=-1) for x in X]
    plain = ms.MatchingModel(kind="partial", rho=rho, tol=1e-9).fit(counted, y)
    own = {"atol": 0.2 if spread > 1.0 else 0.1}  # the ridge on what counts pairs is another
    np.testing.assert_allclose(model.coef_[[0, 2]], plain.coef_[:2], **own)


@pytest.mark.parametrize("penalty", ["raw", "standardised"])
@pytest.mark.parametrize("kind", ["perfect", "one_sided"])
@pytest.mark.parametrize(("level", "spread"), [(0.1, 0.0), (1e16, 0.0), (1e12, 1.0), (1e15, 1.0)])
def test_what_all_outcomes_share_takes_no_digit(level, spread, kind, penalty, rng):
    shape = (3, 3) if kind == "perfect" else (3, 5)
    X = [rng.integers(-3, 4, (*shape, 3)) * np.array([1.0, spread, 1.0]) for _ in range(8)]
    y = [rng.permutation(shape[1])[:3] for _ in X]
    model, plain = (
        ms.MatchingModel(kind=kind, penalty=penalty, tol=1e-9).fit(each, y)
        for each in ([x + np.array([0.0, level, 0.0]) for x in X], X)
    )
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    late = model.predict_marginals([x + np.array([0.0, level, 0.0]) for x in X])
    np.testing.assert_allclose(late, plain.predict_marginals(X), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("features", r"example 0: feature 0 .* is .*e\+150; beyond 1e\+50 nothing can be learned"),
        ("weights", r"example 0 has weight 1e\+300; .*weights lie between 1e-30 and 1e30"),
        ("alpha", "alpha is 1e-300; it must be positive, 1e-100 or more"),
    ],
)
def test_sizes_that_leave_floating_point_are_refused(kind, what, why, rng):
    make, data = KINDS[kind]
    X, y = data(rng)
    X = [np.abs(x) * 1e150 + 1e150 for x in X] if what == "features" else X
    weight = [1e300] * len(X) if what == "weights" else None
    with pytest.raises(ValueError, match=why):
        make(alpha=1e-300 if what == "alpha" else 1.0).fit(X, y, weight)


@pytest.mark.parametrize("size", [1e-300, 1e-40, 1e12, 1e40])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_within_it_end_soon_and_heard(kind, size, rng):
    make, data = KINDS[kind]
    X, y = data(rng)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = make(max_rounds=100).fit([x * size for x in X], y)
    assert [w.category for w in heard] == [ms.ConvergenceWarning] * (not model.converged_)
    assert np.isfinite(model.coef_).all()
    assert not model.converged_ or model.certificate_.objective < 0


def test_the_scale_is_kept_in_files_and_said(tmp_path):
    model, _ = learnt("matching", 1e4, penalty="standardised")
    model.save(tmp_path / "model.npz")
    again = ms.MatchingModel.load(tmp_path / "model.npz")
    assert again.scale_.tolist() == model.scale_.tolist()
    assert "root mean squares" in str(again.summary())
    assert model.scale_[1] > 5e3
    with pytest.raises(ValueError, match="penalty is 'raw' or 'standardised', not 'none'"):
        learnt("matching", 1.0, penalty="none")


def test_bounds_are_for_columns_as_given(rng):
    X, y = tables(rng)
    model = ms.MatchingModel(bounds=(-1e-5, 1e-5), tol=1e-8)
    model.fit([x * np.array([1.0, 1e4, 1.0]) for x in X], y)
    assert model.converged_
    assert np.abs(model.coef_).max() <= 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_that_stands_still_is_proven_soon(seed):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(4, 4, 3)) for _ in range(8)]
    for x in X:
        x[..., 1] = 1.7e9 + 1e6 * x[..., 1]
    y = [np.where(rng.random(4) < 0.3, -1, rng.permutation(4)) for _ in X]
    model = ms.MatchingModel(kind="partial").fit(X, y)
    assert model.converged_
    assert model.n_iter_ < 60


def loss_of(model, X, y, soft):
    """R(θ) + Σ [log Σ exp, or the maximum with wrong labels, over all labellings − score(y_m)]."""
    theta = model.coef_
    unary, step = theta[:-4].reshape(-1, 2), theta[-4:].reshape(2, 2)
    listed, total = np.array(list(itertools.product((0, 1), repeat=5))), 0.5 * theta @ theta
    for x, right in zip(X, y, strict=True):
        scores = (x @ unary)[np.arange(5), listed].sum(1)
        scores += step[listed[:, :-1], listed[:, 1:]].sum(1)
        wrong = (listed != right).sum(1)
        most = logsumexp(scores) if soft else (scores + wrong).max()
        total += most - scores[wrong == 0][0]
    return total


@pytest.mark.parametrize("unit", [1e2, 1e4, 1e7, 1.7e9])
@pytest.mark.parametrize("learner", ["ssvm", "mle_struct"])
def test_frank_wolfe_beside_a_large_column_proves_the_weights_it_keeps(learner, unit):
    """R* of a round may be 1e17: a bound that is found as its gap less that is no bound."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(12)]
    for x in X:
        x[:, 2] = unit * (1.0 + 0.01 * x[:, 2])
    y = [(x[:, 0] + 0.3 * rng.normal(size=5) > 0).astype(int) for x in X]
    settings = {"solver": "frank_wolfe", "intercept": False}
    model = ms.SequenceModel(learner=learner, **settings).fit(X, y)
    proof = model.certificate_
    assert model.converged_
    assert model.n_iter_ < 400
    loss = loss_of(model, X, y, learner == "mle_struct")
    assert loss <= proof.gap - proof.objective + 1e-9 * (1.0 + loss)


def test_columns_of_other_sizes_are_the_advice_where_a_fit_ends_short():
    rng = np.random.default_rng(0)
    time = np.array([0.0, 1.7e9])
    X = [rng.normal(size=(5, 2)) + time for _ in range(6)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    with pytest.warns(ms.ConvergenceWarning, match="penalty='standardised'"):
        ms.SequenceModel(learner="ssvm", max_rounds=50).fit(X, y)
    assert ms.SequenceModel(learner="ssvm", penalty="standardised").fit(X, y).converged_
    with pytest.warns(ms.ConvergenceWarning, match="raise max_rounds"):
        ms.SequenceModel(tol=1e-9, max_rounds=2).fit([x - time for x in X], y)
