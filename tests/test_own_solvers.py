"""Solvers of one's own: what they may answer, and what is said where they cannot be right."""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.inference import best
from mlestruct.oracle import Solver


class Status(IntEnum):
    OPTIMAL = 4


GROUPS = [[0, 1, 2], [3, 4, 5]]
STRUCTURE = ms.Custom(6, exactly_one=GROUPS)


def chosen(score):
    """The parts of the best outcome."""
    return [group[int(np.argmax(score[group]))] for group in GROUPS]


def vector(score):
    out = np.zeros(6)
    out[chosen(score)] = 1.0
    return out


FORMS = {
    "vector": vector,
    "items": chosen,
    "a set of items": lambda s: set(chosen(s)),
    "NumPy's items": lambda s: np.array(chosen(s)),
    "vector and value": lambda s: (vector(s), float(s @ vector(s))),
    "items and value": lambda s: (chosen(s), float(s[chosen(s)].sum())),
    "answer of items": lambda s: ms.Answer(chosen(s), float(s[chosen(s)].sum()) + 1e-12),
    "value in an array": lambda s: (vector(s), np.array(s @ vector(s))),
    "value in four bytes": lambda s: (vector(s), np.float32(s @ vector(s))),
    "one array again and again": (lambda kept: lambda s: np.copyto(kept, vector(s)) or kept)(
        np.zeros(6)
    ),
    "read only": lambda s: np.frombuffer(vector(s).tobytes()),
    "half precision": lambda s: vector(s).astype("f2"),
    "big-endian": lambda s: vector(s).astype(">f8"),
    "flags": lambda s: vector(s) > 0,
    "objects": lambda s: vector(s).astype(object),
    "a series": lambda s: pd.Series(vector(s), index=range(5, -1, -1)),
    "a list": lambda s: vector(s).tolist(),
    "bytes": lambda s: vector(s).astype(np.uint8),
}
NO_ANSWER = {
    "complex": (lambda s: vector(s) + 0j, "it holds complex numbers"),
    "masked": (lambda s: np.ma.masked_array(vector(s), vector(s) > 0), "entry . is masked"),
    "nearly whole": (lambda s: 0.9999 * vector(s), "answered 0.9999 at coordinate"),
    "a generator": (lambda s: iter(vector(s).tolist()), "is no outcome"),
    "a dict": (lambda s: dict(enumerate(vector(s))), "is no outcome.*of type dict"),
    "text": (lambda s: str(vector(s)), "is no outcome"),
    "another instance's": (lambda s: np.r_[vector(s), 0], "6 coordinates, got 7"),
    "sparse": (lambda s: sp.csr_array(vector(s)[None]), "is no outcome"),
    "three things": (lambda s: (vector(s), 1.0, "OPTIMAL"), r"tuple \(ndarray, float, str\)"),
    "value first": (lambda s: (1.0, vector(s)), r"of type tuple \(float, ndarray\)"),
    "no value": (lambda s: (vector(s), None), r"of type tuple \(ndarray, NoneType\)"),
    "a status": (lambda s: (vector(s), Status.OPTIMAL), r"of type tuple \(ndarray, Status\)"),
    "whether it is best": (lambda s: (vector(s), True), r"of type tuple \(ndarray, bool\)"),
    "bounded by nan": (lambda s: ms.Answer(vector(s), np.nan), "by nan, .* say None"),
    "off by more than rounding": (
        lambda s: np.abs(vector(s) - 1e-4),
        r"answered 0\.\d+ .*Solver\(solve, polytope",
    ),
}


def examples(rng, count=6):
    X = [rng.normal(size=(6, 2)) for _ in range(count)]
    return X, [vector(x @ [1.0, -1.0] + rng.gumbel(size=6)) for x in X]


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_may_have_any_form(form, rng):
    X, y = examples(rng)
    plain = ms.StructuredModel(STRUCTURE, oracle=vector).fit(X, y)
    model = ms.StructuredModel(STRUCTURE, oracle=FORMS[form]).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    assert np.array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("form", NO_ANSWER)
def test_what_is_no_answer_names_the_example(form, rng):
    solve, why = NO_ANSWER[form]
    with pytest.raises(ValueError, match=rf"example \d.*{why}"):
        ms.StructuredModel(STRUCTURE, oracle=solve).fit(*examples(rng))


@pytest.mark.parametrize(
    ("bounded", "learner"),
    [(True, "mle_struct"), *((False, one) for one in ("mle_struct", "ssvm", "perceptron"))],
)
def test_a_solver_of_costs_says_so(bounded, learner, rng):
    X, y = examples(rng)

    def cheapest(cost):
        found = vector(-cost)
        return ms.Answer(found, float(cost @ found)) if bounded else found

    settings = {"structure": STRUCTURE, "learner": learner}
    plain = ms.StructuredModel(oracle=vector, **settings).fit(X, y)
    model = ms.StructuredModel(oracle=Solver(cheapest, sense="min"), **settings).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(X), plain.predict(X))
    with pytest.raises(ValueError, match="sense is 'max' or 'min'"):
        Solver(vector, sense="least")


@pytest.mark.parametrize(
    ("form", "learner"),
    [
        ("plain", "ssvm"),
        ("plain", "perceptron"),
        *((form, "mle_struct") for form in ("plain", "bounded", "valued")),
    ],
)
def test_a_solver_of_costs_that_does_not_say_so_is_asked(form, learner, rng):
    X, y = examples(rng)
    forms = {
        "plain": lambda s: vector(-s),
        "bounded": lambda s: ms.Answer(vector(-s), float(s @ vector(-s))),
        "valued": lambda s: (vector(-s), float(-s @ vector(-s))),
    }
    with pytest.raises(ValueError, match=r"sense='min'|minus the score"):
        ms.StructuredModel(STRUCTURE, oracle=forms[form], learner=learner, tol=1e-6).fit(X, y)


@pytest.mark.parametrize("bound", [None, 1e3])
def test_no_answer_is_no_end(bound, rng):
    X, y = examples(rng)
    calls = 0

    def slow(score):
        nonlocal calls
        calls += 1
        if calls % 7 == 3:
            return None if bound is None else ms.Answer(None, bound)
        return vector(score)

    plain = ms.StructuredModel(STRUCTURE, oracle=vector, tol=1e-4).fit(X, y)
    model = ms.StructuredModel(STRUCTURE, oracle=slow, tol=1e-4, max_rounds=300)
    model.fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.05)


def test_never_an_answer_is_said(rng):
    X, y = examples(rng)
    silent = ms.StructuredModel(STRUCTURE, oracle=lambda score: None, max_rounds=3)
    with pytest.warns(ms.ConvergenceWarning, match=r"without a bound; .*Answer\(None, upper\)"):
        silent.fit(X, y)
    assert not silent.converged_
    assert not np.isfinite(silent.certificate_.gap)
    assert "how far from the optimum is not known, as the oracle left" in str(silent.summary())
    with pytest.raises(ValueError, match="example 0: the solver gave no answer"):
        silent.predict(X)


def test_no_answer_is_not_the_right_one(rng):
    X = list(rng.standard_normal((8, 4, 2)))
    y = [np.arange(4) == x[:, 0].argmax() for x in X]
    model = ms.StructuredModel(oracle=lambda s: np.arange(4) == s.argmax()).fit(X, y)
    assert model.score(X, y) == ms.scorers.all_right(model, X, y) == 1.0
    model.oracle = lambda s: None
    for judge in (model.score, lambda *given: ms.scorers.all_right(model, *given)):
        with pytest.raises(ValueError, match="example 0: the solver gave no answer"):
            judge(X, y)


@pytest.mark.parametrize("slack", [1e-12, 1e-5, 0.3])
def test_honest_slack_still_proves_what_no_answer_uses(slack, rng):
    X = [rng.normal(size=(3, 2)) for _ in range(5)]
    y = [np.eye(3)[k] for k in (0, 1, 1, 0, 1)]

    def solve(score):
        found = np.eye(3)[int(np.argmax(score[:2]))]
        return ms.Answer(found, float(score @ found) + slack)

    structure = ms.Custom(3, exactly_one=[[0, 1, 2]])
    model = ms.StructuredModel(structure, oracle=solve, tol=5.0).fit(X, y)
    assert model.certificate_.withheld is None
    assert model.certificate_.unused == len(X)


def test_a_part_in_every_answer_is_said_to_be_just_that(rng):
    X = [rng.normal(size=(3, 1)) for _ in range(4)]
    y = [[1, 0, 1], [1, 1, 0], [1, 1, 1], [1, 0, 0]]

    def solve(score):
        found = np.array([1.0, score[1] > 0, score[2] > 0])
        return ms.Answer(found, float(score @ found) + 1.5)

    with pytest.warns(ms.ConvergenceWarning, match="always used the parts 0"):
        model = ms.StructuredModel(ms.Custom(3), oracle=solve, max_rounds=5).fit(X, y)
    assert "always used the parts 0" in str(model.certificate_)


def test_a_wrong_value_is_refused(rng):
    batch, score = ms.Batch.of(STRUCTURE, count=1), rng.normal(size=6)
    with pytest.raises(ValueError, match=r"example 0: the solver says that its answer is worth"):
        best(batch, score, lambda s: (vector(s), float(s @ vector(s)) + 1.0))


@pytest.mark.parametrize("wrapped", [False, True])
def test_stop_iteration_ends_nothing_quietly(wrapped, rng):
    X, y = examples(rng)

    def solve(score):
        return next(iter(()))

    class Mine:
        polytope = "convex hull"

        def many(self, batch, scores):
            return next(iter(()))

        def perturbable(self, batch):
            return None

    with pytest.raises(RuntimeError, match="StopIteration"):
        ms.StructuredModel(STRUCTURE, oracle=Mine() if wrapped else solve).fit(X, y)


def test_an_error_of_the_solver_says_what_was_asked(rng):
    X, y = examples(rng)

    def costs_alone(cost):
        if cost.min() < 0:
            raise ValueError("contradictory paths")
        return vector(-cost)

    with pytest.raises(ValueError, match="contradictory") as stop:
        ms.StructuredModel(STRUCTURE, oracle=Solver(costs_alone, sense="min")).fit(X, y)
    (told,) = (note for note in stop.value.__notes__ if note.startswith("example "))
    assert re.search(r"costs between -[\d.e-]+ and [\d.e-]+, and learning asks with either", told)


def test_closed_parts_are_declared_by_example():
    rng = np.random.default_rng(0)
    X = [{"features": rng.standard_normal((4, 2)), "closed": rng.random(4) < 0.3}
         for _ in range(30)]  # fmt: skip

    def solve(scores, city):
        return (np.asarray(scores) > 0) & ~city["closed"]

    def structure(city):
        return ms.Custom(len(city["features"]), fixed=np.where(city["closed"], 0, -1))

    y = [solve(x["features"] @ [1.0, -1.0], x) for x in X]
    model = ms.StructuredModel(structure, oracle=solve).fit(X, y)
    assert model.converged_
    for x, tau, found in zip(X, model.predict_marginals(X), model.predict(X), strict=True):
        assert (tau[x["closed"]] == 0).all()
        assert not np.asarray(found)[x["closed"]].any()
    careless = ms.StructuredModel(structure, oracle=lambda scores: np.asarray(scores) > -9)
    with pytest.raises(ValueError, match="example"):
        careless.fit(X, y)


def test_a_solver_whose_ties_break_its_constraints_is_told(rng):
    def two(scores):
        return (scores >= np.sort(scores)[-2]).astype(float)  # all of them where all are equal

    X = [rng.random((5, 2)) for _ in range(8)]
    y = [two(x @ [1.0, -1.0]) for x in X]
    with pytest.raises(ValueError, match=r"where scores are equal, .* keep its constraints"):
        ms.StructuredModel(oracle=two).fit(X, y)


def test_an_outcome_that_no_answer_may_be_is_named_as_one(rng):
    X = [rng.normal(size=(3, 2)) for _ in range(4)]
    with pytest.raises(ValueError, match=r"the observed outcome has .*; where that breaks its"):
        ms.StructuredModel(oracle=lambda s: np.eye(3)[np.argmax(s)]).fit(X, [np.ones(3)] * 4)
