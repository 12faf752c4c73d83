"""More of what may stand at a door: read as it is meant, or refused with its place and value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mlestruct as ms

RNG = np.random.default_rng(0)
WORDS = [RNG.normal(size=(4, 2)) for _ in range(6)]
TAGS = [(x[:, 0] > 0).astype(int).tolist() for x in WORDS]
BAGS = RNG.normal(size=(12, 2))
SETS = (BAGS > 0).astype(int)
TABLES = [RNG.normal(size=(3, 3, 2)) for _ in range(6)]
ROWS = [RNG.permutation(3) for _ in TABLES]
CHOICE = ms.Custom(6, exactly_one=[[0, 1, 2], [3, 4, 5]])


def best(scores):
    """The best of either half."""
    return np.eye(3)[scores.reshape(2, 3).argmax(axis=1)].ravel()


def framed(x):
    return pd.DataFrame(x, columns=["a", "b"])


SAME_ROWS = {
    "nullable": lambda x: framed(x).astype("Float64"),
    "integers of a frame": lambda x: framed(x).astype(object),
    "a window": lambda x: np.lib.stride_tricks.sliding_window_view(x.ravel(), 2)[::2],
    "an index of dates": lambda x: framed(x).set_index(pd.date_range("2026", periods=4)),
}


@pytest.mark.parametrize("form", SAME_ROWS)
def test_odd_rows_are_read_as_they_are(form):
    plain = ms.SequenceModel().fit(WORDS, TAGS)
    given = [SAME_ROWS[form](x) for x in WORDS]
    if form in ("nullable", "integers of a frame", "an index of dates"):
        plain._columns = ["a", "b"]
    model = ms.SequenceModel().fit(given, TAGS)
    assert model.coef_.tobytes() == plain.coef_.tobytes()


def sequences(value):
    return lambda: ms.SequenceModel().fit([[{"a": value}] * 4] * 6, TAGS)


def fitted(make, X, y, *more, **settings):
    return lambda: make(**settings).fit(X, y, *more)


REFUSED = {
    "NA in a frame": (
        fitted(ms.SequenceModel, [framed(x).astype("Float64").mask(x > 0.5) for x in WORDS], TAGS),
        r"example 0: node features must be numbers.*entry \d, \d is <NA>",
    ),
    "sparse X": (fitted(ms.MultiLabelModel, sp.csr_array(BAGS), SETS), "not a csr_array"),
    "text for a switch": (
        fitted(ms.MultiLabelModel, BAGS, SETS, pairs="false"), "pairs is 'false'; it must be True"
    ),
    "a negative seed": (
        fitted(ms.MatchingModel, TABLES, ROWS, alpha=[1, 2], random_state=-1), "random_state is -1"
    ),
    "weights NA": (
        fitted(ms.MatchingModel, TABLES, ROWS, pd.array([1, None, 1, 1, 1, 1], dtype="Int64")),
        "example 1 has weight nan",
    ),
    "attribute NA": (sequences(pd.NA), r"example 0, position 0: attribute 'a' has value <NA>"),
    "attribute masked": (sequences(np.ma.masked), "attribute 'a' has value masked"),
    "attribute of bytes": (sequences(b"x"), "attribute 'a' has value b'x'"),
    "attribute of 401 digits": (sequences(10**400), "'a' is a number of 401 digits"),
    "attribute complex": (sequences(1j), "attribute 'a' has value 1j"),
    "generators": (fitted(ms.MatchingModel, iter(TABLES), ROWS), "not a list_iterator"),
    "a dict of examples": (
        fitted(ms.MatchingModel, dict(enumerate(TABLES)), ROWS), "X is a list of examples"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_in_words(case):
    call, why = REFUSED[case]
    with pytest.raises(ValueError, match=why):
        call()


class Blocks:
    """A solver of many at once, which stumbles over one of them."""

    polytope = "hull"

    def __init__(self, error):
        self.error, self.asked = error, 0

    def many(self, batch, scores):
        self.asked += len(batch)
        rows = scores.reshape(len(batch), -1)
        if (rows > 90).any():
            raise self.error()
        found = np.stack([best(row) for row in rows])
        return found.ravel(), (found * rows).sum(axis=1)

    def perturbable(self, batch):
        return None


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("error", [ZeroDivisionError, StopIteration, KeyError])
def test_a_solver_of_many_names_the_one_it_fails_at(error, place):
    batch, scores = ms.Batch.of(CHOICE, count=8), RNG.normal(size=48)
    scores[6 * place + 2], oracle = 99.0, Blocks(error)
    with pytest.raises((error, RuntimeError)) as stop:
        ms.inference.best(batch, scores, oracle)
    told = [str(stop.value), *getattr(stop.value, "__notes__", [])]
    assert any(text.startswith(f"example {place}: ") for text in told)
    assert oracle.asked <= 25  # halves: no more than the first question again, and a bit
