"""Missing labels: rounds never lose, intervals hold the truth, words promise no more."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.learners import Missing
from mlestruct.learners.missing import PartlySeen
from mlestruct.structures.batch import Batch, pinned
from tests.reference.descents import rounds

LAM = 0.5


def hidden_chain(rng, count=6):
    """Chains of three binary variables, some unseen; features per coordinate."""
    graph = ms.chain(3, 2)
    batch = ms.Batch.of(graph, count=count, weight=rng.uniform(0.5, 2.0, count))
    X = rng.standard_normal((batch.size, 4))
    observed = rng.integers(0, 2, (count, 3))
    observed[rng.random((count, 3)) < 0.4] = -1
    return graph, batch, X, list(observed)


def seen_of(batch, observed):
    """The same examples with what was observed of them as outcomes, −1 where nothing was."""
    outcomes = [ms.Partial(one) for one in observed]
    structures = [batch.structure(m) for m in range(len(batch))]
    return Batch.of(structures, outcomes, weight=batch.weight, bias=batch.bias)


def last(learner, batch, observed, features):
    """What the last round came to."""
    return filled(learner, seen_of(batch, observed), features)[-1]


def filled(learner, seen, features, start=None):
    """What was not seen filled in by the weights of every round that was more than an estimate."""
    said = rounds(learner, seen, features, start)
    partly = PartlySeen(learner.learner, learner.tol, seen, features)
    return [partly.look(one.theta) for one in said if len(one.tau)]


def likelihood(graph, batch, X, observed, theta, bias=0.0):
    """Σ w log P(observed) − (λ/2)‖θ‖² by listing every labelling."""
    states = list(np.ndindex(*graph.cards))
    vertices = np.array([graph.encode(s) for s in states])
    scores = (X @ theta + bias).reshape(len(batch), -1) @ vertices.T
    total = -LAM / 2 * theta @ theta
    for m, seen in enumerate(observed):
        fits = [all(o in (-1, s) for o, s in zip(seen, state, strict=True)) for state in states]
        clamped = np.logaddexp.reduce(scores[m, fits])
        total += batch.weight[m] * (clamped - np.logaddexp.reduce(scores[m]))
    return total


@pytest.mark.parametrize("route", ["direct", "frank_wolfe"])
def test_rounds_rise_and_intervals_hold_the_likelihood(rng, route):
    graph, batch, X, observed = hidden_chain(rng)
    learner = ms.mle_struct(regulariser=LAM, route=route, solver=ms.FrankWolfe(tol=1e-7))
    tol = 1e-6 if route == "direct" else 1e-3
    start = rng.standard_normal(4)
    whole = Missing(learner, tol=tol)
    steps = filled(whole, seen_of(batch, observed), ms.Dense.of(batch, X), start)
    values = []
    for found in steps:
        value = likelihood(graph, batch, X, observed, found.theta)
        assert found.certificate.objective - 1e-9 <= value <= found.upper + 1e-9
        values.append(value)
    fits = [
        max(0.1 * found.certificate.gap, 1e-7 * abs(found.certificate.objective))
        for found in steps[:-1]
    ]
    wide = [found.upper - found.certificate.objective for found in steps[1:]]
    assert (np.diff(values) >= -np.add(fits, wide) - 1e-9).all()
    assert (len(steps) > 1) == (route == "frank_wolfe")
    left = [found.certificate.relative <= tol for found in steps]
    assert left == [False] * (len(steps) - 1) + [True]
    end = steps[-1]
    slope = [
        likelihood(graph, batch, X, observed, end.theta + 1e-5 * e)
        - likelihood(graph, batch, X, observed, end.theta - 1e-5 * e)
        for e in np.eye(4)
    ]
    # ‖∇‖² / 2λ is at most what the stationarity leaves open, up to the inference's own error.
    assert np.linalg.norm(np.array(slope) / 2e-5) ** 2 / (2 * LAM) <= 4 * end.certificate.gap + 1e-8


def test_nothing_missing_is_the_ordinary_fit(rng):
    graph, batch, X, _ = hidden_chain(rng)
    outcomes = list(rng.integers(0, 2, (len(batch), 3)))
    learner = ms.mle_struct(regulariser=LAM, solver=ms.FrankWolfe(tol=1e-10))
    features = ms.Dense.of(batch, X)
    found = last(Missing(learner, tol=1e-10), batch, outcomes, features)
    plain = learner.fit(ms.Batch.of(graph, outcomes, weight=batch.weight), features)
    np.testing.assert_allclose(found.theta, plain.theta, atol=1e-5)
    assert found.upper == pytest.approx(plain.certificate.objective, abs=1e-5)


def test_a_bias_counts_in_both_parts(rng):
    graph, batch, X, observed = hidden_chain(rng)
    bias = rng.standard_normal(batch.size)
    shaped = ms.Batch.of(graph, count=len(batch), weight=batch.weight, bias=bias)
    learner = ms.mle_struct(regulariser=LAM, solver=ms.FrankWolfe(tol=1e-8))
    found = last(Missing(learner), shaped, observed, ms.Dense.of(shaped, X))
    value = likelihood(graph, batch, X, observed, found.theta, bias)
    assert found.certificate.objective - 1e-9 <= value <= found.upper + 1e-9


def test_partly_seen_matchings(rng):
    structure = ms.BipartiteMatching(4)
    batch = ms.Batch.of(structure, count=5)
    X = rng.standard_normal((batch.size, 2))
    truth = [(-(x @ [2.0, -1.0])).argsort() for x in rng.standard_normal((5, 4, 2))]
    observed = [np.where(rng.random(4) < 0.5, y, -1) for y in truth]
    learner = ms.mle_struct(regulariser=1.0, solver=ms.FrankWolfe(tol=1e-5))
    whole = Missing(learner, tol=1e-3, rounds=20)
    steps = filled(whole, seen_of(batch, observed), ms.Dense.of(batch, X))
    for before, after in pairwise(steps):
        assert after.upper >= before.certificate.objective - max(0.1 * before.certificate.gap, 1e-5)
    for m, seen in enumerate(observed):
        phi = steps[-1].target[batch.coordinates(m)].reshape(4, 4)
        rows = np.flatnonzero(seen >= 0)
        np.testing.assert_allclose(phi[rows, seen[rows]], 1.0, atol=1e-8)


def test_rounds_share_the_time_of_all(rng):
    _, batch, X, observed = hidden_chain(rng)
    learner = ms.mle_struct(regulariser=LAM, solver=ms.FrankWolfe(seconds=1e-9))
    missing = Missing(learner, tol=1e-12)
    found = rounds(missing, seen_of(batch, observed), ms.Dense.of(batch, X))
    assert len(found) <= 2
    assert found[-1].certificate.relative > 1e-12


def test_the_words_claim_no_optimum(rng):
    _, batch, X, observed = hidden_chain(rng)
    found = last(Missing(ms.mle_struct(regulariser=LAM)), batch, observed, ms.Dense.of(batch, X))
    assert "not convex" in str(found.certificate)
    assert "no optimum is claimed" in str(found.certificate)


def test_misuse_is_named(rng):
    _, batch, X, observed = hidden_chain(rng)
    features = ms.Dense.of(batch, X)
    with pytest.raises(ValueError, match="learns from whole outcomes, and this batch has Partial"):
        ms.mle_struct().fit(seen_of(batch, observed), features)


def test_weights_are_seen_where_labels_are_known():
    X = [[{"w": "a"}, {"w": "b"}, {"w": "c"}], [{"w": "c"}, {"w": "d"}]]
    y = [["x", None, "y"], ["x", "y"]]
    model = ms.SequenceModel(alpha=1.0).fit(X, y)
    assert model.names() == ["w:a: x", "w:c: x", "w:c: y", "w:d: y", "x → y"]


@pytest.mark.parametrize("learner", ["exact_mle", "lbp", "mle_struct", "trw"])
def test_what_was_seen_of_trees_is_learned_alike(learner, rng):
    """Sums, messages and reweighted messages are exact there: one stationary point, no optimum."""
    X = [rng.standard_normal((4, 2)) for _ in range(6)]
    y = [[None if rng.random() < 0.3 else int(k) for k in rng.integers(0, 2, 4)] for _ in X]
    settings = {"tol": 1e-9, "learner": learner, "intercept": False}
    model = ms.SequenceModel(alpha=1.0, **settings).fit(X, y)
    slopes = []
    for m, x in enumerate(X):
        batch = ms.Batch.of(ms.chain(4, 2), count=1)
        seen = pinned(seen_of(batch, [[-1 if label is None else label for label in y[m]]]))
        scores = model.potentials([x])[0]
        tied = ms.Tied.of(batch, [x])
        slopes.append(tied.moments(exact(seen, scores).tau - exact(batch, scores).tau))
    np.testing.assert_allclose(sum(slopes), model.coef_, atol=1e-4)
    assert "not convex" in model.certificate_.withheld


def test_exact_sums_learn_loopy_graphs_with_labels_missing(rng):
    """The slope of the enumerated likelihood of what was seen is the ridge's at the end."""
    X = [rng.standard_normal((2, 3, 1)) for _ in range(5)]
    y = [np.where(rng.random((2, 3)) < 0.3, -1, rng.integers(0, 2, (2, 3))) for _ in X]
    model = ms.GridModel(learner="exact_mle", alpha=0.7, tol=1e-9, void=-1).fit(X, y)
    grid, coef = ms.grid(2, 3, 2), model.coef_.copy()
    rows = np.array([grid.encode(states) for states in np.ndindex(*grid.cards)])
    labels = np.array(list(np.ndindex(*grid.cards)))
    fits = [((one.ravel() < 0) | (labels == one.ravel())).all(axis=1) for one in y]

    def value(weights):
        model.coef_ = weights
        scores = [rows @ one for one in model.potentials(X)]
        add = np.logaddexp.reduce
        return sum(add(s[fit]) - add(s) for s, fit in zip(scores, fits, strict=True))

    steps = 1e-5 * np.eye(len(coef))
    slope = [(value(coef + step) - value(coef - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope, 0.7 * coef, atol=1e-4)


LEFT = ("pseudo_likelihood", "contrastive", "implicit", "procedural")


@pytest.mark.filterwarnings("ignore::mlestruct.errors.ConvergenceWarning")
@pytest.mark.parametrize("learner", LEFT)
@pytest.mark.parametrize("front", [ms.GridModel, ms.SequenceModel])
def test_what_was_not_seen_changes_nothing_where_nothing_depends_on_it(front, learner, rng):
    shape = (3, 3) if front is ms.GridModel else (5,)
    X = [rng.standard_normal((*shape, 2)) for _ in range(8)]
    y = [(x[..., 0] + 0.4 * rng.standard_normal(shape) > 0).astype(int) for x in X]
    some = [np.full(shape, -1) if m % 4 == 1 else one for m, one in enumerate(y)]
    left = [m for m in range(8) if m % 4 != 1]
    make = partial(front, learner=learner, alpha=0.5, tol=1e-8, void=-1)
    model = make().fit(X, some)
    other = make().fit([X[m] for m in left], [y[m] for m in left])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-4)


def test_pseudo_likelihood_without_a_whole_neighbourhood_is_refused(rng):
    with pytest.raises(ValueError, match="together with those of all its neighbours"):
        ms.SequenceModel(learner="pseudo_likelihood").fit(
            [rng.standard_normal((3, 2))], [["a", None, "b"]]
        )


@pytest.mark.parametrize("learner", ["camel0", "perceptron", "piecewise"])
def test_learners_without_a_likelihood_refuse_what_is_missing(learner, rng):
    with pytest.raises(
        ValueError,
        match="cannot learn from Partial outcomes: use mle_struct, trw or exact_mle, or leave",
    ):
        ms.SequenceModel(learner=learner).fit([rng.standard_normal((3, 2))], [["a", None, "b"]])


@pytest.mark.parametrize("settings", [{}, {"solver": "frank_wolfe"}, {"learner": "exact_mle"}])
@pytest.mark.parametrize("ended", [True, False])
def test_a_checkpoint_of_other_labels_is_refused(settings, ended, rng, tmp_path):
    X = [rng.standard_normal((4, 2)) for _ in range(6)]
    y = [rng.integers(0, 2, 4).tolist() for _ in X]
    one, other = (
        [[None if rng.random() < 0.3 else label for label in labels] for labels in y]
        for _ in range(2)
    )
    model = ms.SequenceModel(tol=1e-2, max_rounds=1000 if ended else 1, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.errors.ConvergenceWarning)
        found = model.fit(X, one, checkpoint=tmp_path / "fit.npz").coef_
        again = model.fit(X, one, checkpoint=tmp_path / "fit.npz").coef_
        np.testing.assert_array_equal(again, found)
        with pytest.raises(ValueError, match="checkpoint"):
            model.fit(X, other, checkpoint=tmp_path / "fit.npz")
