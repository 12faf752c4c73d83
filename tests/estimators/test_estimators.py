"""Estimators: scikit-learn manners, errors at the door, and results that mean what they say."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.estimators.choosing import held_out
from mlestruct.inference.exact import exact, outcomes


@pytest.fixture(scope="module")
def matched():
    return data.landmarks(sizes=(12, 6, 10), n=8, d=20)


@pytest.fixture(scope="module")
def fitted(matched):
    return ms.MatchingModel(tol=1e-4).fit(matched[0].X, matched[0].y)


def test_marginals_are_doubly_stochastic_and_decide(matched, fitted):
    from scipy.optimize import linear_sum_assignment

    _, _, test = matched
    for tau, expected in zip(
        fitted.predict_marginals(test.X), fitted.predict(test.X, decision="expected"), strict=True
    ):
        np.testing.assert_allclose(tau.sum(axis=0), 1.0, atol=1e-9)
        np.testing.assert_allclose(tau.sum(axis=1), 1.0, atol=1e-9)
        best = tau[linear_sum_assignment(tau, maximize=True)].sum()
        assert tau[np.arange(len(tau)), expected].sum() == pytest.approx(best)


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_log_likelihood_interval_holds_the_permanent(matched, rho):
    """Between ρ = ½ and Bethe lies the exact log-likelihood, whichever the model learned with."""
    train, _, test = matched
    model = ms.MatchingModel(rho=rho, tol=0.01).fit(train.X, train.y)
    low, high = model.log_likelihood(test.X, test.y)
    truth = 0.0
    for score, y in zip(model.potentials(test.X), test.y, strict=True):
        structure = ms.BipartiteMatching(8)
        truth += score @ structure.encode(y) - exact(structure, score).log_z
    assert low <= truth <= high < 0
    best = sum(
        score @ ms.BipartiteMatching(8).encode(y) - score @ ms.BipartiteMatching(8).encode(p)
        for score, y, p in zip(model.potentials(test.X), test.y, model.predict(test.X), strict=True)
    )
    assert high < best


def test_log_likelihood_of_an_own_oracle_is_bounded_by_its_best_answer(rng):
    def pick(score):
        return np.eye(len(score))[score.argmax()]

    X = [rng.standard_normal((4, 2)) for _ in range(20)]
    y = [pick(x @ [2.0, -1.0] + rng.gumbel(size=4)) for x in X]
    model = ms.StructuredModel(ms.Custom(4), oracle=pick, tol=1e-3).fit(X, y)
    low, high = model.log_likelihood(X, y)
    scores = np.array(model.potentials(X))
    truth = (scores * y).sum() - np.log(np.exp(scores).sum(axis=1)).sum()
    assert low < truth < high
    assert high == pytest.approx((scores * y).sum() - scores.max(axis=1).sum())


def test_alpha_is_chosen_on_validation(matched):
    train, valid, _ = matched
    alphas = (0.1, 100.0)
    model = ms.MatchingModel(alpha=alphas, learner="trw").fit(
        train.X, train.y, validation=(valid.X, valid.y)
    )
    scores = [
        ms.MatchingModel(alpha=a, learner="trw").fit(train.X, train.y).score(valid.X, valid.y)
        for a in alphas
    ]
    assert model.alpha_ == alphas[int(np.argmax(scores))]
    np.testing.assert_allclose(model.alpha_scores_, list(zip(alphas, scores, strict=True)))


@pytest.mark.parametrize("alpha", [1.0, [0.1, 1.0]])
@pytest.mark.parametrize("given", [[], 3, "ab c", [1, 2, 3], {"X": [], "y": []}])
def test_a_validation_that_is_no_pair_is_refused(matched, alpha, given):
    train, *_ = matched
    model = ms.MatchingModel(alpha=alpha)
    with pytest.raises(ValueError, match=r"validation is \(X, y\), not"):
        model.fit(train.X, train.y, validation=given)
    assert not hasattr(model, "coef_")


def test_alpha_is_chosen_by_likelihood(matched):
    train, valid, _ = matched
    alphas, held = (0.1, 100.0), (valid.X, valid.y)
    model = ms.MatchingModel(alpha=alphas, tol=1e-6).fit(train.X, train.y, validation=held)
    for alpha, score in model.alpha_scores_:
        one = ms.MatchingModel(alpha=alpha, tol=1e-6).fit(train.X, train.y)
        batch, scores = one._scored(one._given(*held), held[1])
        found = ms.marginals(batch, scores, rho=0.5)
        each = batch.observed(scores) - found.upper
        assert score == pytest.approx(each.mean(), abs=1e-2)
    assert "log-likelihood of examples not learned from" in str(model.summary())
    exact = ms.MatchingModel(alpha=alphas, learner="exact_mle").fit(
        train.X, train.y, validation=held
    )
    for alpha, score in exact.alpha_scores_:
        one = ms.MatchingModel(alpha=alpha, learner="exact_mle").fit(train.X, train.y)
        batch, scores = one._scored(one._given(*held), held[1])
        likely = batch.observed(scores) - ms.inference.exact.exact(batch, scores).log_z
        assert score == pytest.approx(likely.mean(), abs=1e-2)


@pytest.mark.parametrize("kind", ["perfect", "one_sided", "partial"])
def test_a_model_of_exact_sums_has_one_log_likelihood(kind):
    """No interval, which is of surrogates: the score of what was seen less log Z, by listing."""
    rng = np.random.default_rng(1)
    structure = ms.BipartiteMatching(3, 3 if kind == "perfect" else 4, kind)
    X = rng.standard_normal((6, *structure.shape, 2))
    vertices = outcomes(structure)
    y = [structure.decode(vertices[k]) for k in rng.integers(len(vertices), size=6)]
    model = ms.MatchingModel(kind, learner="exact_mle").fit(X, y)
    listed = vertices @ (X @ model.coef_).reshape(6, -1).T
    likely = sum(
        score @ structure.encode(seen) - np.logaddexp.reduce(all_)
        for score, seen, all_ in zip((X @ model.coef_).reshape(6, -1), y, listed.T, strict=True)
    )
    assert model.log_likelihood(X, y) == pytest.approx((likely, likely), abs=1e-9)


def test_folds_hold_every_example_out_once(matched):
    train = matched[0]
    model = ms.MatchingModel(alpha=(0.1, 1.0), folds=3, tol=0.1).fit(train.X, train.y)
    parts = held_out(model, model._given(train.X, train.y))
    assert sorted(id(x) for _, held in parts for x in held.X) == sorted(map(id, train.X))
    assert all(len(rest.X) + len(held.X) == len(train.X) for rest, held in parts)
    assert "in 3 folds; it is the " in str(model.summary())
    with pytest.raises(ValueError, match="13 folds, and 12 have a label"):
        ms.MatchingModel(alpha=(0.1, 1.0), folds=13).fit(train.X, train.y)


def test_alpha_is_chosen_on_held_out_examples(matched):
    train = matched[0]
    model = ms.MatchingModel(alpha=(0.1, 100.0), tol=1e-6).fit(train.X, train.y)
    again = ms.MatchingModel(alpha=(0.1, 100.0), tol=1e-6).fit(train.X, train.y)
    assert [alpha for alpha, _ in model.alpha_scores_] == [0.1, 100.0]
    assert model.alpha_ == max(model.alpha_scores_, key=lambda row: row[1])[0]
    plain = ms.MatchingModel(alpha=model.alpha_, tol=1e-6).fit(train.X, train.y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.alpha_scores_ == again.alpha_scores_
    weighted = ms.MatchingModel(alpha=(0.1, 100.0)).fit(train.X, train.y, np.full(12, 2.0))
    assert weighted.alpha_ in (0.1, 100.0)
    with pytest.raises(ValueError, match=r"held_out=0\.01 of 12 is 0"):
        ms.MatchingModel(alpha=(0.1, 1.0), held_out=0.01).fit(train.X, train.y)


def test_examples_with_all_their_labels_are_held_out_first():
    train = data.sequences(sizes=(8, 0, 0), states=2, d=3)[0]
    y = [list(labels) if m in (2, 5) else [None, *labels[1:]] for m, labels in enumerate(train.y)]
    model = ms.SequenceModel(alpha=(0.1, 1.0), tol=0.1).fit(train.X, y)
    rest = [m for m in range(8) if m not in (2, 5)]
    held = ([train.X[m] for m in (2, 5)], [y[m] for m in (2, 5)])
    by_hand = ms.SequenceModel(alpha=(0.1, 1.0), tol=0.1).fit(
        [train.X[m] for m in rest], [y[m] for m in rest], validation=held
    )
    assert model.alpha_scores_ == by_hand.alpha_scores_
    chosen = ms.SequenceModel(alpha=(0.1, 1.0), held_out=0.5, tol=0.1).fit(train.X, y)
    held = np.sort(np.random.default_rng(0).permutation(8)[:4])
    rest = np.setdiff1d(np.arange(8), held)
    judged = [train.X[m] for m in held], [y[m] for m in held]
    by_hand = ms.SequenceModel(alpha=(0.1, 1.0), tol=0.1).fit(
        [train.X[m] for m in rest], [y[m] for m in rest], validation=judged
    )
    assert chosen.alpha_scores_ == by_hand.alpha_scores_
    void = [[None] * len(labels) if m > 2 else labels for m, labels in enumerate(y)]
    with pytest.raises(ValueError, match="of 8 is 4, and 3 have a label"):
        ms.SequenceModel(alpha=(0.1, 1.0), held_out=0.5).fit(train.X, void)


def test_progress_is_quiet_in_pipes_and_shown_on_request(matched, capsys):
    train = matched[0]
    ms.MatchingModel(tol=0.1, max_rounds=20).fit(train.X, train.y)
    assert capsys.readouterr().err == ""
    ms.MatchingModel(tol=0.1, max_rounds=20, progress=True).fit(train.X, train.y)
    assert "20 calls × 12 examples ×" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("alphas", "word"),
    [((1e-3, 1e-2), "largest"), ((10.0, 1e3), "smallest"), ((1e-3, 1.0, 1e3), "")],
)
def test_an_alpha_at_the_end_of_its_list_is_told(alphas, word):
    train, valid, _ = data.landmarks(sizes=(10, 10, 0), n=5, d=3)
    model = ms.MatchingModel(alpha=alphas).fit(train.X, train.y, validation=(valid.X, valid.y))
    end = {"largest": max(alphas), "smallest": min(alphas)}.get(word, 1.0)
    told = [note for note in model.notes_ if "alpha was chosen" in note]
    assert model.alpha_ == end
    assert told[0].endswith(f"it is the {word} tried" if word else "not learned from")
