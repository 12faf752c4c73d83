"""Sequences: k best, allowed tags, constraints, empty sentences, elastic net, against lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.decoding import k_best
from mlestruct.metrics import entities
from mlestruct.readers.transitions import ForbiddenTags

TAGS = ["B-x", "I-x", "O"]


def every(length, states=3):
    return np.array(list(itertools.product(range(states), repeat=length)), dtype=int)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_k_best_are_those_of_the_whole_list(seed, ties):
    """Scores of the first k of all sequences, each once, with forbidden steps and equal scores."""
    rng = np.random.default_rng(seed)
    n, states, k = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 40))
    nodes, steps = rng.standard_normal((n, states)), rng.standard_normal((n - 1, states, states))
    if ties:
        nodes, steps = np.zeros_like(nodes), np.round(steps)
    steps[rng.random(steps.shape) < 0.2] = -np.inf
    found, scores = k_best(nodes, steps, k)
    listed = every(n, states)
    total = nodes[np.arange(n), listed].sum(axis=1)
    total = total + steps[np.arange(n - 1), listed[:, :-1], listed[:, 1:]].sum(axis=1)
    best = np.sort(total[np.isfinite(total)])[::-1][:k]
    np.testing.assert_allclose(scores, best, atol=1e-12)
    assert len({tuple(one) for one in found.tolist()}) == len(found)
    place = found @ (states ** np.arange(n)[::-1])
    np.testing.assert_allclose(total[place], scores, atol=1e-12)


def tagged(rng, count=8):
    X = [rng.standard_normal((int(rng.integers(1, 5)), 2)) for _ in range(count)]
    y = []
    for x in X:
        tags = ["O"]
        for row in x:
            kinds = TAGS if tags[-1] != "O" else ["B-x", "O"]
            tags.append(kinds[int(row[0] > 0) - 1] if row[1] > -1 else "O")
        y.append(tags[1:])
    y[0] = (["B-x", "I-x", "O"] * 2)[: len(X[0])]
    return X, y


@pytest.mark.parametrize("constraints", [None, "bio", [("O", "O"), ("O", "I-x"), (None, "I-x")]])
def test_k_best_probabilities_are_exact(constraints, rng):
    X, y = tagged(rng)
    model = ms.SequenceModel(alpha=0.5).fit(X, y).set_params(constraints=constraints)
    rules = ForbiddenTags.of(model.classes_.tolist(), constraints)
    for x, found, predicted, scores in zip(
        X, model.k_best(X, 81), model.predict(X), model.potentials(X), strict=True
    ):
        fine = [s for s in every(len(x)) if rules.broken(s) is None]
        graph = ms.chain(len(x), 3)
        weight = np.exp([scores @ graph.encode(s) for s in fine])
        assert len(found) == len(fine)
        shares = np.array([p for _, p in found])
        np.testing.assert_allclose(shares, np.sort(weight / weight.sum())[::-1], atol=1e-9)
        assert found[0][0].tolist() == predicted.tolist()


@pytest.mark.parametrize("scheme", ["bio", "iobes"])
def test_schemes_allow_what_entities_write(scheme):
    """A sequence is allowed if and only if writing its entities again gives the same tags."""
    tags = ["B-a", "I-a", "B-b", "I-b", "O"] + (["E-a", "S-a", "E-b", "S-b"] * (scheme == "iobes"))
    rules = ForbiddenTags.of(tags, scheme)

    def written(sequence):
        again = ["O"] * len(sequence)
        for first, last, kind in entities(sequence):
            inner = [f"I-{kind}"] * (last - first)
            inner[0] = f"B-{kind}"
            if scheme == "iobes":
                inner[-1] = f"E-{kind}"
                inner = [f"S-{kind}"] if len(inner) == 1 else inner
            again[first:last] = inner
        return again

    for states in every(3, len(tags)):
        sequence = [tags[k] for k in states]
        assert (rules.broken(states) is None) == (written(sequence) == sequence), sequence


def test_constraints_hold_and_violations_are_named(rng):
    X, y = tagged(rng)
    pairs = [("O", "I-x"), (None, "I-x"), ("B-x", None)]
    y = [
        ["O" if t == "B-x" and i == len(tags) - 1 else t for i, t in enumerate(tags)] for tags in y
    ]
    model = ms.SequenceModel(constraints=pairs, alpha=5.0).fit(X, y)
    rules = ForbiddenTags.of(model.classes_.tolist(), pairs)
    others = [rng.standard_normal((n, 2)) * 3 for n in (1, 2, 5, 9)]
    drawn = [one for draws in model.sample(others, 5).outcomes for one in draws]
    for tags in [*model.predict(others), *drawn]:
        assert rules.broken(np.searchsorted(model.classes_, tags)) is None
    y[3] = ["O", "I-x"]
    X[3] = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"example 3: token 1 is 'I-x', which may not follow 'O'"):
        ms.SequenceModel(constraints=pairs).fit(X, y)
    y[3] = ["O", "B-x"]
    with pytest.raises(ValueError, match="example 3: token 1 is 'B-x', which may not come last"):
        ms.SequenceModel(constraints=pairs).fit(X, y)
    with pytest.raises(ValueError, match="constraints hold 'O'; expected pairs"):
        ms.SequenceModel(constraints=["O"]).fit(X, y)
    with pytest.raises(ValueError, match="constraints are 5; expected pairs"):
        ms.SequenceModel(constraints=5).fit(X, y)
    with pytest.raises(ValueError, match="constraints is None, 'bio', 'iobes' or pairs"):
        ms.SequenceModel(constraints="biluo").fit(X, y)


def test_allowed_tags_restrict_what_is_asked(rng):
    X, y = tagged(rng)
    model = ms.SequenceModel().fit(X, y)
    allowed = [[{"O", "B-x"} if rng.random() < 0.5 else None for _ in x] for x in X]
    allowed[1] = None
    found = zip(
        X, allowed, model.potentials(X), model.predict(X, allowed=allowed),
        model.predict_marginals(X, allowed=allowed), strict=True,
    )  # fmt: skip
    for x, sets, scores, predicted, tau in found:
        graph = ms.chain(len(x), 3)
        sets = [set(TAGS) if a is None else a for a in sets or [None] * len(x)]
        named = model.classes_[every(len(x))]
        held = [all(t in a for t, a in zip(tags, sets, strict=True)) for tags in named]
        fine = every(len(x))[held]
        totals = np.array([scores @ graph.encode(s) for s in fine])
        best = model.classes_[fine[int(totals.argmax())]]
        assert predicted.tolist() == best.tolist()
        weight = np.exp(totals - totals.max())
        mean = sum(w * np.eye(3)[s] for w, s in zip(weight, fine, strict=True)) / weight.sum()
        np.testing.assert_allclose(tau, mean, atol=1e-6)
    with pytest.raises(ValueError, match=r"example 0: y has shape \(9,\)"):
        model.predict(X, allowed=[[None] * 9, *allowed[1:]])
    with pytest.raises(ValueError, match="example 0: label 'Z' was not seen"):
        model.predict(X[:1], allowed=[[{"Z"}] * len(X[0])])
    with pytest.raises(ValueError, match="example 0: node 0 may have no label at all"):
        model.predict(X[:1], allowed=[[set()] * len(X[0])])


def test_sets_of_tags_are_learned_from(rng):
    X, y = tagged(rng)
    single = [[{t} if i == 0 else t for i, t in enumerate(tags)] for tags in y]
    whole = [[set(TAGS) if i == 0 else t for i, t in enumerate(tags)] for tags in y]
    void = [[None if i == 0 else t for i, t in enumerate(tags)] for tags in y]
    fits = [ms.SequenceModel(tol=1e-7).fit(X, given).coef_ for given in (y, single, whole, void)]
    np.testing.assert_allclose(fits[1], fits[0], atol=2e-3)
    np.testing.assert_allclose(fits[3], fits[2], atol=1e-6)
    assert np.abs(fits[2] - fits[0]).max() > 0.01


@pytest.mark.parametrize("estimator", ["sequence", "structured"])
def test_the_elastic_net_is_optimal(estimator, rng):
    """Zero weights have a slope of at most l1, others of exactly l1 and the ridge's."""
    alpha, l1 = 0.3, 1.5
    if estimator == "sequence":
        X, y = tagged(rng, 12)
        model = ms.SequenceModel(alpha=alpha, l1=l1, tol=1e-9).fit(X, y)
    else:
        X = [rng.standard_normal((3, 4)) for _ in range(12)]
        y = [np.eye(3)[int((x[:, 0]).argmax())] for x in X]
        groups = ms.Custom(3, exactly_one=[[0, 1, 2]])
        model = ms.StructuredModel(groups, oracle="simplices", alpha=alpha, l1=l1, tol=1e-6)
        model.fit(X, y)
    batch = ms.Batch.of(model.structures(X), model.encode(X, y))
    features = model.features(batch, X)
    scores = features.potentials(model.coef_)
    if estimator == "sequence":
        tau = ms.marginals(batch, scores).tau
    else:
        weight = np.exp(scores.reshape(-1, 3))
        tau = (weight / weight.sum(axis=1, keepdims=True)).ravel()
    slope = features.moments(batch.target - tau) - alpha * model.coef_
    zero = np.abs(model.coef_) < 1e-6
    assert zero.any()
    assert not zero.all()
    assert (np.abs(slope[zero]) <= l1 + 0.02).all()
    np.testing.assert_allclose(slope[~zero], l1 * np.sign(model.coef_[~zero]), atol=0.02)
    with pytest.raises(ValueError, match="l1=0"):
        model.intervals(X, y)


def test_what_empty_sequences_say_beside_others(rng):
    X, y = tagged(rng, 10)
    more, labels = [np.zeros((0, 2)), *X], [[], *y]
    model, plain = ms.SequenceModel().fit(more, labels), ms.SequenceModel().fit(X, y)
    assert model.k_best(more, 2)[0][0][1] == 1.0
    told = model.intervals(more, labels, cohort=[9, *range(10)])
    assert str(told) == str(plain.intervals(X, y, cohort=range(10)))
    assert model.log_likelihood(more[:1], labels[:1]) == (0.0, 0.0)
    with pytest.raises(ValueError, match="no examples"):
        ms.SequenceModel().fit(more[:1], labels[:1])


def test_a_column_far_from_zero_needs_a_constant(rng):
    """Heart rates near 110: labels are told as from centred ones, and the summary says why."""
    y = [np.sort(rng.integers(0, 2, 20)) for _ in range(30)]
    X = [(110.0 + 8.0 * labels + 6.0 * rng.standard_normal(20))[:, None] for labels in y]
    plain, centred = ms.SequenceModel(), ms.SequenceModel(intercept=False)
    plain.fit(X[:20], y[:20])
    centred.fit([x - 114.0 for x in X[:20]], y[:20])
    assert plain.names()[2:4] == ["constant: 0", "constant: 1"]
    assert "every label has a constant" in str(plain.summary())
    right = centred.score([x - 114.0 for x in X[20:]], y[20:])
    assert plain.score(X[20:], y[20:]) > right - 0.03
    assert not any("constant" in name for name in centred.names())
    told = [{"rate": "high"}, {"rate": "low"}]
    dicts = ms.SequenceModel().fit([told], [["a", "b"]])
    assert not any("constant" in name for name in dicts.names())
    again = ms.SequenceModel(intercept=True).fit([told], [["a", "b"]])
    assert again.predict([told])[0].tolist() == ["a", "b"]
