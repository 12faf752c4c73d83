"""Void labels: one code for sequences, images and graphs, in every form that says 'not known'."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mlestruct as ms

MODELS = ["sequence", "grid", "graph"]


def examples(kind, rng, count=6):
    """(model's class, X, y of shape (2, 3) or (6,)) with labels 0, 1, 2 that features tell."""
    labels = [rng.permutation([0, 1, 2, 0, 1, 2]) for _ in range(count)]
    rows = [np.eye(3)[y] + 0.3 * rng.standard_normal((6, 3)) for y in labels]
    if kind == "sequence":
        return ms.SequenceModel, rows, labels
    if kind == "grid":
        X = [x.reshape(2, 3, 3) for x in rows]
        return ms.GridModel, X, [y.reshape(2, 3) for y in labels]
    ring = [(i, (i + 1) % 6) for i in range(6)]
    return ms.GraphModel, [(x, ring) for x in rows], labels


def voided(y, gone, how):
    """Labels of which some are void, in one of the forms."""
    if how == "none":
        found = y.astype(object)
        found[gone] = None
        return found
    if how == "list":
        return np.where(gone, None, y).tolist()
    if how == "nan":
        return np.where(gone, np.nan, y)
    if how == "minus":
        return np.where(gone, -1, y)
    if how == "code":
        return np.where(gone, 255, y).astype(np.uint8)
    if how == "masked":
        return np.ma.masked_array(y, gone)
    return ms.Partial(np.where(gone, -1, y))


HOWS = ["none", "list", "nan", "minus", "code", "masked", "partial"]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("unseen", ["hidden", "left_out"])
def test_every_form_of_void_is_the_same(kind, unseen, rng):
    make, X, y = examples(kind, rng)
    gone = [rng.random(labels.shape) < 0.3 for labels in y]
    fits = {}
    for how in HOWS:
        given = [voided(labels, g, how) for labels, g in zip(y, gone, strict=True)]
        void = 255 if how == "code" else "auto"
        model = make(void=void, unseen=unseen, tol=1e-4).fit(X, given)
        assert model.classes_.tolist() == [0, 1, 2]
        fits[how] = (model.coef_, model.score(X, given))
    for coef, score in fits.values():
        np.testing.assert_array_equal(coef, fits["none"][0])
        assert score == fits["none"][1]


@pytest.mark.parametrize("kind", MODELS)
def test_scores_count_what_is_known(kind, rng):
    make, X, y = examples(kind, rng)
    model = make().fit(X, y)
    gone = [rng.random(labels.shape) < 0.5 for labels in y]
    gone[0][:] = True
    given = [voided(labels, g, "masked") for labels, g in zip(y, gone, strict=True)]
    shares = [
        np.mean(predicted[~g] == labels[~g])
        for predicted, labels, g in zip(model.predict(X), y, gone, strict=True)
        if not g.all()
    ]
    assert model.score(X, given) == pytest.approx(np.mean(shares))
    with pytest.raises(ValueError, match="no label in y is known"):
        model.score(X[:1], given[:1])


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("learner", ["ssvm", "pseudo_likelihood", "perceptron", "piecewise"])
def test_left_out_nodes_serve_every_learner(kind, learner, rng):
    make, X, y = examples(kind, rng)
    gone = [rng.random(labels.shape) < 0.3 for labels in y]
    given = [voided(labels, g, "minus") for labels, g in zip(y, gone, strict=True)]
    model = make(learner=learner, unseen="left_out").fit(X, given)
    assert model.score(X, y) > 0.7
    assert model.predict(X)[0].shape == y[0].shape
    if learner == "pseudo_likelihood":
        assert make(learner=learner).fit(X, given).score(X, y) > 0.7
        return
    with pytest.raises(ValueError, match=r"cannot learn from Partial outcomes|no likelihood"):
        make(learner=learner).fit(X, given)


@pytest.mark.parametrize("tables", ["symmetric", "full"])
@pytest.mark.parametrize("learner", ["mle_struct", "exact_mle", "pseudo_likelihood"])
def test_left_out_is_the_graph_without_the_node(learner, tables, rng):
    """Under the whole graph's ρ, and with sums of the ties that were lost as features of nodes."""
    ends = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3), (3, 4)]
    ties = [rng.random((len(ends), 1)) for _ in range(6)]
    X = [(rng.standard_normal((5, 2)), ends, tie) for tie in ties]
    y = [rng.permutation([0, 1, 2, 0, 1]) for _ in X]
    gone = rng.permutation(6) % 5
    given = [np.where(np.arange(5) == k, -1, labels) for k, labels in zip(gone, y, strict=True)]
    settings = {"learner": learner, "tables": tables, "tol": 1e-8}
    model = ms.GraphModel(unseen="left_out", **settings).fit(X, given)
    parts, labels, shares = [], [], {}
    full = ms.FactorGraph([3] * 5, ends).own_rho
    for (nodes, _, tie), k, one in zip(X, gone, given, strict=True):
        inside = [e for e, pair in enumerate(ends) if k not in pair]
        place = np.cumsum(np.arange(5) != k) - 1
        lost = np.zeros((5, 4))  # of the constant and of the edge feature: as first, as second
        for e, pair in enumerate(ends):
            for side in (0, 1):
                if pair[1 - side] == k:
                    lost[pair[side], [side, 2 + side]] += 1.0, tie[e, 0]
        lost = lost if tables == "full" else np.stack([lost[:, :2].sum(1), lost[:, 2:].sum(1)], 1)
        edges = place[np.array(ends)[inside]]
        shares[edges.tobytes()] = full[inside]
        parts.append((np.delete(np.hstack([nodes, lost]), k, 0), edges, tie[inside]))
        labels.append(np.delete(one, k))

    def of_the_whole(graph):
        return shares[graph.scope.reshape(-1, 2).tobytes()]

    rho = {"rho": of_the_whole} if learner == "mle_struct" else {}
    twin = ms.GraphModel(**settings, **rho).fit(parts, labels)
    own, other = dict(zip(model.names(), model.coef_)), dict(zip(twin.names(), twin.coef_))  # noqa: B905
    lost = [name for name in own if "void" in name]
    assert len(lost) == (12 if tables == "full" else 6)
    columns = [f"feature {2 + j}: {k}" for j in range(len(lost) // 3) for k in range(3)]
    wanted = [other.pop(name) for name in columns]
    np.testing.assert_allclose([own.pop(name) for name in lost], wanted, atol=1e-4)
    assert own.keys() == other.keys()
    np.testing.assert_allclose(list(own.values()), list(other.values()), atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_a_part_of_a_graph_counts_as_in_the_whole(seed):
    """Still at most the share of its own spanning trees: the entropy bounds, and is concave."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in itertools.combinations(range(7), 2) if rng.random() < 0.5]
    whole = ms.FactorGraph([2] * 7, pairs)
    kept = rng.random(7) < 0.7
    part = whole.part(kept)
    inside = [kept[list(pair)].all() for pair in pairs]
    np.testing.assert_array_equal(part.counting()[part.n_nodes :], whole.own_rho[inside])
    alone = ms.FactorGraph(part.cards, part.scope.reshape(-1, 2))
    assert (part.own_rho <= alone.own_rho + 1e-9).all()
    assert part.bound(part.counting()).kind in ("upper", "exact")
    assert part.convex(part.counting())
    assert part != alone


@pytest.mark.parametrize("kind", MODELS)
def test_minus_one_is_a_class_where_it_must_be(kind, rng):
    make, X, y = examples(kind, rng)
    signs = [np.where(labels == 0, -1, 1) for labels in y]
    assert make().fit(X, signs).classes_.tolist() == [-1, 1]
    three = [labels - 1 for labels in y]
    with pytest.warns(UserWarning, match="say void=-1 if that is right"):
        assert make().fit(X, three).classes_.tolist() == [0, 1]
    assert make(void=-1).fit(X, three).classes_.tolist() == [0, 1]
    assert make(void=None).fit(X, three).classes_.tolist() == [-1, 0, 1]
    assert make(void=[0, -1]).fit(X, [labels - 1 for labels in y]).classes_.tolist() == [1]


@pytest.mark.parametrize("kind", MODELS)
def test_nothing_known_anywhere_is_refused(kind, rng):
    make, X, y = examples(kind, rng)
    nothing = [voided(labels, np.ones(labels.shape, dtype=bool), "none") for labels in y]
    for unseen in ("hidden", "left_out"):
        with pytest.raises(ValueError, match=r"no label|no examples"):
            make(unseen=unseen).fit(X, nothing)
    with pytest.raises(ValueError, match="unseen is 'hidden' or 'left_out'"):
        make(unseen="skip").fit(X, y)
    with pytest.raises(ValueError, match="example 1: y has shape"):
        make().fit(X, [y[0], y[1].ravel()[:-1], *y[2:]])


def test_words_and_missing_values(rng):
    X = [rng.standard_normal((3, 2)) for _ in range(3)]
    y = [["a", float("nan"), "b"], ["b", None, "a"], np.array(["a", "b", None], dtype=object)]
    assert ms.SequenceModel().fit(X, y).classes_.tolist() == ["a", "b"]
    pandas = pytest.importorskip("pandas")
    series = [pandas.Series(["a", None, "b"]), pandas.Series(["a", pandas.NA, "b"])]
    assert ms.SequenceModel().fit(X[:2], series).classes_.tolist() == ["a", "b"]
    numbers = [pandas.Series([1, None, 2], dtype="Int64")] * 2
    assert ms.SequenceModel().fit(X[:2], numbers).classes_.tolist() == [1, 2]


@pytest.mark.parametrize("kind", MODELS)
def test_intervals_of_left_out_labels_are_those_of_what_is_left(kind, rng):
    """Parts that one example fell into are one unit; hidden labels are refused with the way out."""
    make, X, y = examples(kind, rng, 12)
    noise = [rng.standard_normal((*labels.shape, 1)) for labels in y]
    X = [(z, x[1]) if kind == "graph" else z for z, x in zip(noise, X, strict=True)]
    y = [labels % 2 for labels in y]
    given = [voided(labels, rng.random(labels.shape) < 0.2, "none") for labels in y]
    model = make(unseen="left_out", alpha=1.0).fit(X, given)
    found = model.intervals(X, given)
    assert (found.units, found.unit) == (12, "examples")
    named = model.intervals(X, given, cohort=[f"c{m // 2}" for m in range(12)])
    assert (named.units, named.unit) == (6, "cohorts")
    with pytest.raises(ValueError, match="a fit with unseen='left_out'"):
        make(alpha=1.0).fit(X, given).intervals(X, given)


def likelihoods(model, x, labels):
    """log P of every way to fill in one binary example's void labels, by all its labellings."""
    structure, scores = model.structures([x])[0], model.potentials([x])[0]
    states = np.array(list(np.ndindex(*structure.cards)))
    reached = np.array([structure.encode(one) for one in states]) @ scores
    fits = ((labels == -1) | (states == labels)).all(axis=1)
    return np.logaddexp.reduce(reached[fits]) - np.logaddexp.reduce(reached)


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_asked_of_labels_counts_those_that_are_known(kind, rng):
    """Likelihoods of what was seen by enumeration; calibration of its parts; alphas by it."""
    make, X, y = examples(kind, rng, 8)
    y = [labels % 2 for labels in y]
    gone = [rng.random(labels.shape) < 0.3 for labels in y]
    given = [voided(labels, g, "none") for labels, g in zip(y, gone, strict=True)]
    model = make(alpha=1.0, learner="exact_mle").fit(X, given)
    codes = [np.where(g, -1, labels).ravel() for labels, g in zip(y, gone, strict=True)]
    truth = sum(likelihoods(model, x, one) for x, one in zip(X, codes, strict=True))
    np.testing.assert_allclose(model.log_likelihood(X, given), truth, atol=1e-8)
    assert model.evidence(X, given).value == pytest.approx(truth, abs=1e-8)
    found = model.calibration(X, given)
    assert found.count.sum() == 2 * sum((~g).sum() for g in gone)
    assert model.recalibrated(X, given).certificate_.withheld
    chosen = make(alpha=[10.0, 1.0], learner="exact_mle").fit(X, given, validation=(X, given))
    scores = dict(chosen.alpha_scores_)
    own = make(alpha=10.0, learner="exact_mle").fit(X, given)
    wanted = [likelihoods(own, x, one) for x, one in zip(X, codes, strict=True)]
    assert scores[10.0] == pytest.approx(np.mean(wanted), abs=1e-4)


def test_likelihoods_of_part_of_a_matching(rng):
    """Of the matchings that agree with it; the share of right parts is for whole ones."""
    structure, X = ms.BipartiteMatching(3), rng.standard_normal((2, 9, 1))
    y = [[0, 1, 2], ms.Partial([2, -1, -1])]
    model = ms.StructuredModel(structure, alpha=1.0).fit(X, y)
    rows = [[2, 0, 1], [2, 1, 0]]
    each = [model.log_likelihood(X[1:], [row])[1] for row in rows]
    low, high = model.log_likelihood(X[1:], y[1:])
    assert low <= model.evidence(X[1:], y[1:]).value <= high
    assert model.evidence(X[1:], y[1:]).value == pytest.approx(
        np.logaddexp(*(model.evidence(X[1:], [row]).value for row in rows)), abs=1e-9
    )
    assert high >= max(each)
    with pytest.raises(ValueError, match="whole outcomes"):
        model.score(X, y)
