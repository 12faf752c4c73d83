"""One way in for all estimators: however examples are handed over, every method answers the same.

A list, a Series, a frame where rows are examples, or a list with examples that have no part.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mlestruct as ms

rng = np.random.default_rng(0)
RING = [(i, (i + 1) % 5) for i in range(5)]
ROWS, BITS = rng.standard_normal((12, 2)), rng.integers(0, 2, (12, 3))
CHAINS = [rng.standard_normal((n, 2)) for n in (3, 4, 1, 5, 4, 2)]
TAGS = [rng.integers(0, 3, len(x)) for x in CHAINS]
CASES = {
    "matching": (
        ms.MatchingModel(tol=0.1),
        [rng.standard_normal((3, 3, 2)) for _ in range(5)],
        [rng.permutation(3) for _ in range(5)],
    ),
    "sequence": (ms.SequenceModel(), CHAINS, TAGS),
    "sequence, tags missing": (ms.SequenceModel(unseen="left_out", void=2), CHAINS, TAGS),
    "skip chain": (
        ms.SkipChainModel(lambda x: [(0, len(x) - 1)] if len(x) > 2 else [], learner="lbp"),
        CHAINS,
        TAGS,
    ),
    "grid": (
        ms.GridModel(tol=0.1),
        [rng.standard_normal((2, 3, 2)) for _ in range(5)],
        [rng.integers(0, 2, (2, 3)) for _ in range(5)],
    ),
    "graph": (
        ms.GraphModel(),
        [(rng.standard_normal((5, 2)), RING) for _ in range(5)],
        [rng.integers(0, 2, 5) for _ in range(5)],
    ),
    "labels": (ms.MultiLabelModel(), list(ROWS), list(BITS)),
    "solver": (
        ms.StructuredModel(ms.Custom(4, exactly_one=[range(4)]), oracle="simplices", tol=0.1),
        [rng.standard_normal((4, 2)) for _ in range(5)],
        list(np.eye(4)[[0, 1, 3, 2, 2]]),
    ),
}


def series(values):
    """Whose index says nothing of places."""
    found = pd.Series(list(values))
    found.index = found.index[::-1]
    return found


ASKED = {
    "predict": lambda model, X: model.predict(X),
    "expected": lambda model, X: model.predict(X, "expected"),
    "decode": lambda model, X: model.decode(X).outcomes,
    "bounds": lambda model, X: list(model.decode(X).upper),
    "predict_marginals": lambda model, X: model.predict_marginals(X),
    "potentials": lambda model, X: model.potentials(X),
    "sample": lambda model, X: [found[0] for found in model.sample(X, 1, 0).outcomes],
}
JUDGED = {
    "score": lambda model, X, y: model.score(X, y),
    "log_likelihood": lambda model, X, y: model.log_likelihood(X, y),
    "evidence": lambda model, X, y: model.evidence(X, y, 0),
    "calibration": lambda model, X, y: model.calibration(X, y),
    "intervals": lambda model, X, y: model.intervals(X, y),
    "recalibrated": lambda model, X, y: model.recalibrated(X, y).coef_,
}


def said(ask, *given):
    """An answer as text of all its digits, or what was wrong."""
    try:
        found = ask(*given)
    except ValueError as error:
        return str(error)
    with np.printoptions(floatmode="unique", threshold=10**6):
        return str(found)


def with_empty(values, nothing):
    """With an example that has no part at the beginning and in the middle."""
    return [nothing, *values[:2], nothing, *values[2:]]


FORMS = {
    "series": (series, series, CASES),
    "frames": (lambda X: pd.DataFrame(X), lambda y: pd.DataFrame(y), ("labels",)),
    "empty": (
        lambda X: with_empty(X, np.zeros((0, 2))),
        lambda y: with_empty(y, np.zeros(0, int)),
        [name for name in CASES if name.startswith(("sequence", "skip"))],
    ),
}
EACH = [(form, name) for form, (_, _, names) in FORMS.items() for name in names]


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, y) for name, (model, X, y) in CASES.items()}


@pytest.mark.parametrize(("form", "name"), EACH)
def test_every_form_of_examples_is_answered_alike(form, name, fitted):
    model, (_, X, y), (of_X, of_y, _) = fitted[name], CASES[name], FORMS[form]
    other, others = of_X(X), of_y(y)
    again = type(model)(**model.get_params()).fit(other, others)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    places = [m for m in range(len(other)) if form != "empty" or m not in (0, 3)]
    for asked, ask in ASKED.items():
        found = ask(again, other)
        assert len(found) == len(other)
        assert said(list, [found[m] for m in places]) == said(list, ask(model, X)), asked
        if form == "empty" and asked != "bounds":
            assert len(found[0]) == len(found[3]) == 0
    for asked, judge in JUDGED.items() if name != "sequence, tags missing" else ():
        if asked != "intervals":  # of which other tests hold the same
            assert said(judge, again, other, others) == said(judge, model, X, y), asked


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing_is_said_by_every_method(name, fitted):
    model, (_, X, y) = fitted[name], CASES[name]
    blank = type(model)(**model.get_params())
    for ask in ASKED.values():
        with pytest.raises(ValueError, match="not fitted yet"):
            ask(blank, X)
        assert list(ask(model, [])) == []
    for judge in JUDGED.values():
        with pytest.raises(ValueError, match="not fitted yet"):
            judge(blank, X, y)
        with pytest.raises(ValueError, match="target y is None"):
            judge(model, X, None)
        with pytest.raises(ValueError, match="no examples"):
            judge(model, [], [])
