"""Solvers of one's own: data that ride along, sizes that differ, known scores, decisions judged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mlestruct as ms


def packings(item):
    """Every 0/1 vector that fits."""
    vectors = np.array(list(itertools.product([0, 1], repeat=len(item["weights"]))))
    return vectors[vectors @ item["weights"] <= item["capacity"]]


def pack(scores, instance):
    vectors = packings(instance)
    return vectors[(vectors @ scores).argmax()]


def knapsacks(rng, count=20):
    X, y = [], []
    for _ in range(count):
        parts = int(rng.integers(2, 6))
        item = {
            "features": rng.standard_normal((parts, 2)),
            "weights": rng.integers(1, 5, parts),
            "capacity": int(rng.integers(1, 8)),
            "known": rng.standard_normal(parts),
        }
        X.append(item)
        y.append(pack(item["features"] @ [1.0, -1.0] + 0.3 * rng.gumbel(size=parts), item))
    return X, y


@pytest.mark.parametrize("seed", range(5))
def test_every_example_is_solved_with_its_own_data(seed):
    rng = np.random.default_rng(seed)
    X, y = knapsacks(rng)
    model = ms.StructuredModel(oracle=pack).fit(X, y)
    assert model.converged_
    for item, predicted, scores in zip(X, model.predict(X), model.potentials(X), strict=True):
        np.testing.assert_allclose(scores, item["features"] @ model.coef_)
        assert predicted @ item["weights"] <= item["capacity"]
        assert predicted @ scores == pytest.approx((packings(item) @ scores).max())


def test_equal_features_with_other_data_are_other_examples(rng):
    parts = rng.random((3, 1))
    X = [{"features": parts, "weights": [1, 1, 1], "capacity": c} for c in (0, 1, 2, 3)]
    y = [pack(parts[:, 0], item) for item in X]
    model = ms.StructuredModel(oracle=pack).fit(X, y)
    assert [int(p.sum()) for p in model.predict(X)] == [0, 1, 2, 3]
    assert model.predict_marginals(X)[0].sum() == pytest.approx(0.0)


def test_the_likelihood_bound_holds_by_enumeration(rng):
    """The proven interval contains Σ score(y) − log Σ over what fits exp(score)."""
    X, y = knapsacks(rng)
    model = ms.StructuredModel(oracle=pack, bias="known").fit(X, y)
    low, high = model.log_likelihood(X, y)
    truth = 0.0
    for item, outcome in zip(X, y, strict=True):
        scores = item["features"] @ model.coef_ + item["known"]
        each = packings(item) @ scores
        truth += outcome @ scores - np.log(np.exp(each - each.max()).sum()) - each.max()
    assert low <= truth <= high + 1e-9


@pytest.mark.parametrize("learner", ["mle_struct", "ssvm", "perceptron"])
def test_known_scores_count_once_and_are_not_learned(learner, rng):
    X, y = knapsacks(rng)
    model = ms.StructuredModel(oracle=pack, learner=learner, bias="known").fit(X, y)
    for item, scores in zip(X, model.potentials(X), strict=True):
        np.testing.assert_allclose(scores, item["features"] @ model.coef_ + item["known"])


def test_known_scores_that_do_not_fit_are_refused(rng):
    X, y = knapsacks(rng, 3)
    with pytest.raises(ValueError, match="example 0 has no 'price', which bias= names"):
        ms.StructuredModel(oracle=pack, bias="price").fit(X, y)
    longer = [{**item, "more": np.zeros(len(item["known"]) + 1)} for item in X]
    with pytest.raises(ValueError, match=r"example 0: bias has \d entries for \d parts"):
        ms.StructuredModel(oracle=pack, bias="more").fit(longer, y)
    X[1]["known"][0] = np.inf
    with pytest.raises(ValueError, match="example 1: bias of part 0 is inf"):
        ms.StructuredModel(oracle=pack, bias="known").fit(X, y)


def solve_one(scores):
    return scores > 0


def solve_old(structure, score):
    return score > 0


class Callable:
    def __call__(self, scores, van):
        return scores > 0


def test_solvers_of_the_scores_alone_see_plain_arrays_alike(rng):
    X = [rng.standard_normal((n, 2)) for n in (2, 3, 4, 3, 2)]
    y = [(x[:, 0] + 0.5 * rng.standard_normal(len(x)) > 0).astype(int) for x in X]
    fits = [ms.StructuredModel(oracle=s).fit(X, y) for s in (solve_one, solve_old, Callable())]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.coef_, fits[0].coef_, atol=1e-3)
    with pytest.raises(ValueError, match="needs structure=, or oracle="):
        ms.StructuredModel().fit(X, y)


def test_names_are_as_many_as_features(rng):
    X = [np.stack([size, np.ones(3)], axis=1) for size in rng.random((3, 3))]
    names = ["size", "constant"]
    model = ms.StructuredModel(oracle=lambda scores: scores > 0, feature_names=names)
    assert model.fit(X, [(x[:, 0] > 0.5).astype(int) for x in X]).names() == names
    model.set_params(feature_names=["size"])
    with pytest.raises(ValueError, match="1 names for 2 features"):
        model.names()


@pytest.mark.parametrize(
    "structure",
    [
        ms.Matching(4),
        ms.Matching(4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
        ms.Matching(2),
        ms.BipartiteMatching(2, 3, "partial"),
        ms.BipartiteMatching(3),
        ms.Paths([(0, 1), (1, 2), (0, 2)], 0, 2),
    ],
)
def test_outcomes_may_be_zeros_and_ones(structure, rng):
    from mlestruct.inference import best

    seen, X, forms = set(), [], ([], [])
    for _ in range(30):
        x = rng.standard_normal((structure.size, 2))
        (outcome,), _, _ = best(ms.Batch.of(structure, count=1), x @ [1.0, 2.0])
        vertex = structure.encode(outcome)
        seen.add(vertex.tobytes())
        X.append(x)
        forms[0].append(outcome)
        forms[1].append(vertex.astype(int).tolist())
    fits = [ms.StructuredModel(structure).fit(X, y) for y in forms]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].score(X, forms[1]) == fits[0].score(X, forms[0])
    with pytest.raises(ValueError, match="example 0"):
        fits[0].fit(X[:1], [np.ones(structure.size) * 2])


def test_regret_and_equal_costs_by_enumeration(rng):
    X, y = knapsacks(rng)
    for item in X:
        item["cost"] = -rng.integers(-1, 3, len(item["weights"])).astype(float)
    model = ms.StructuredModel(oracle=pack).fit(X, y)
    reached = np.array([p @ item["cost"] for p, item in zip(model.predict(X), X, strict=True)])
    least = np.array([(packings(item) @ item["cost"]).min() for item in X])
    expected = (reached - least).sum() / np.abs(least).sum()
    assert ms.scorers.regret("cost")(model, X, y) == pytest.approx(-expected)
    assert ms.scorers.regret(lambda item: item["cost"])(model, X, y) == pytest.approx(-expected)
    assert ms.scorers.cost_equal("cost")(model, X, y) == np.mean(reached == least)
    with pytest.raises(ValueError, match="example 0: 1 costs for"):
        ms.scorers.regret(lambda item: [0.0])(model, X, y)


def test_state_the_constraints_and_need_no_solver(rng):
    pytest.importorskip("ortools")
    weights, capacity = np.array([3, 1, 2, 2]), 4
    stated = ms.Custom(4, A=[weights], lower=[0], upper=[capacity])
    X = [rng.standard_normal((4, 2)) for _ in range(20)]
    items = [{"features": x, "weights": weights, "capacity": capacity} for x in X]
    y = [pack(x @ [1.0, -1.0] + 0.3 * rng.gumbel(size=4), items[0]) for x in X]
    model = ms.StructuredModel(stated, oracle="cp_sat", tol=1e-4).fit(X, y)
    twin = ms.StructuredModel(oracle=pack, tol=1e-4).fit(items, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=0.02)


def test_columns_of_frames_inside_examples_are_names():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def best(scores, instance):
        return np.arange(len(scores)) == scores.argmax()

    frames = [pandas.DataFrame(rng.standard_normal((3, 2)), columns=["a", "b"]) for _ in range(8)]
    X = [{"features": frame} for frame in frames]
    y = [best(frame["a"].to_numpy() - frame["b"].to_numpy(), None) for frame in frames]
    model = ms.StructuredModel(oracle=best).fit(X, y)
    assert model.names() == ["a", "b"]
    for swapped in (["b", "a"], ["a", "c"]):
        other = frames[0].set_axis(swapped, axis=1)
        with pytest.raises(ValueError, match="X has columns"):
            model.predict([{"features": other}])
    plain = ms.StructuredModel(oracle=best).fit([frame.to_numpy() for frame in frames], y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)


def test_parts_may_form_a_table(rng):
    from scipy.optimize import linear_sum_assignment

    def best(scores, instance):
        assert scores.shape == instance["features"].shape[:-1]
        used = np.zeros(scores.shape)
        used[linear_sum_assignment(scores, maximize=True)] = 1.0
        return used

    def flat(scores, instance):
        return best(scores.reshape(instance["shape"]), instance["table"]).ravel()

    X = [{"features": rng.random((n, n + 1, 2))} for n in (2, 3, 4) * 3]
    y = [best(x["features"] @ [2.0, -1.0] + rng.gumbel(size=x["features"].shape[:2]), x) for x in X]
    rows = [
        {"features": x["features"].reshape(-1, 2), "shape": one.shape, "table": x}
        for x, one in zip(X, y, strict=True)
    ]
    model = ms.StructuredModel(oracle=best).fit(X, y)
    for outcomes in ([one.ravel() for one in y], [set(np.flatnonzero(one)) for one in y]):
        twin = ms.StructuredModel(oracle=flat).fit(rows, outcomes)
        np.testing.assert_array_equal(model.coef_, twin.coef_)
    for x, found, tau in zip(X, model.predict(X), model.predict_marginals(X), strict=True):
        assert found.shape == tau.shape == x["features"].shape[:2]
    assert model.score(X, y) == twin.score(rows, [one.ravel() for one in y])


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ([1], r"example 0: an outcome has 3 coordinates, got 1; .* are a set, as in \{0, 2\}"),
        ({3}, "example 0: there is no coordinate 3; there are 0 to 2"),
        ({-1}, "example 0: there is no coordinate -1"),
        ({0.5}, "example 0: numbers of coordinates are integers"),
    ],
)
def test_numbers_of_parts_are_a_set(outcome, message):
    X = [np.arange(6.0).reshape(3, 2)]
    with pytest.raises(ValueError, match=message):
        ms.StructuredModel(oracle=lambda scores: scores > 0).fit(X, [outcome])
    for used in ({0, 2}, set(), frozenset({1})):
        vector = np.isin(np.arange(3), list(used)).astype(float)
        np.testing.assert_array_equal(ms.Custom(3).encode(used), vector)
