"""More of what may stand at a door: read as it is meant, or refused with its place and value."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

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


def objects(kind):
    return lambda x: np.array([[kind(float(v)) for v in row] for row in x], dtype=object)


SAME_ROWS = {
    "nullable": lambda x: framed(x).astype("Float64"),
    "decimals": objects(Decimal),
    "fractions": objects(Fraction),
    "integers of a frame": lambda x: framed(x).astype(object),
    "long doubles": lambda x: x.astype(np.longdouble),
    "a window": lambda x: np.lib.stride_tricks.sliding_window_view(x.ravel(), 2)[::2],
    "an index of dates": lambda x: framed(x).set_index(pd.date_range("2026", periods=4)),
    "tuples": lambda x: tuple(map(tuple, x.tolist())),
}


@pytest.mark.parametrize("form", SAME_ROWS)
def test_odd_rows_are_read_as_they_are(form):
    plain = ms.SequenceModel().fit(WORDS, TAGS)
    given = [SAME_ROWS[form](x) for x in WORDS]
    if form in ("nullable", "integers of a frame", "an index of dates"):
        plain._columns = ["a", "b"]
    model = ms.SequenceModel().fit(given, TAGS)
    assert model.coef_.tobytes() == plain.coef_.tobytes()


def doubled(x):
    """Every entry in two halves."""
    rows, columns = np.tile(np.repeat(np.arange(4), 2), 2), np.tile([0, 1], 8)
    return sp.coo_array((np.tile(x.ravel() / 2, 2), (rows, columns)), shape=x.shape)


@pytest.mark.parametrize(
    "form", [doubled, sp.dok_array, sp.dia_matrix, sp.bsr_matrix, sp.coo_matrix]
)
def test_odd_sparse_rows_are_one_matrix(form):
    plain = ms.SequenceModel().fit([sp.csr_array(x) for x in WORDS], TAGS)
    model = ms.SequenceModel().fit([form(x) for x in WORDS], TAGS)
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
    "text in a frame": (
        fitted(ms.SequenceModel, [framed(x).astype(object).replace(x[0, 0], "x") for x in WORDS],
               TAGS),
        r"example 0: node features must be numbers.*entry 0, 0 is 'x'",
    ),
    "categories": (
        fitted(ms.SequenceModel, [framed(x).assign(a=pd.Categorical(list("xyxy"))) for x in WORDS],
               TAGS),
        r"example 0: node features must be numbers.*entry 0, 0 is 'x'",
    ),
    "dates in a frame": (
        fitted(ms.SequenceModel, [framed(x).assign(a=pd.Timestamp(0)) for x in WORDS], TAGS),
        r"example 0: node features must be numbers.*Timestamp",
    ),
    "sparse complex": (
        fitted(ms.SequenceModel, [sp.csr_array(x + 1j) for x in WORDS], TAGS),
        r"example 0: node features have dtype complex128",
    ),
    "masked labels alone": (
        fitted(ms.MultiLabelModel, BAGS, np.ma.masked_all_like(SETS)), "no label in y is known"
    ),
    "sets of mixed labels": (fitted(ms.MultiLabelModel, BAGS, [{"1", 1}] * 12), "text and others"),
    "sparse X": (fitted(ms.MultiLabelModel, sp.csr_array(BAGS), SETS), "not a csr_array"),
    "sparse y": (fitted(ms.MultiLabelModel, BAGS, sp.csr_array(SETS)), "not a csr_array"),
    "text for a switch": (
        fitted(ms.MultiLabelModel, BAGS, SETS, pairs="false"), "pairs is 'false'; it must be True"
    ),
    "text for another": (
        fitted(ms.MatchingModel, TABLES, ROWS, one_standard_error="no"),
        "one_standard_error is 'no'",
    ),
    "a list for a switch": (
        fitted(ms.MultiLabelModel, BAGS, SETS, intercept=[True]), r"intercept is \[True\]"
    ),
    "NaN for a switch": (
        fitted(ms.MultiLabelModel, BAGS, SETS, intercept=np.nan), "intercept is nan"
    ),
    "a negative seed": (
        fitted(ms.MatchingModel, TABLES, ROWS, alpha=[1, 2], random_state=-1), "random_state is -1"
    ),
    "weights by name": (
        fitted(ms.MatchingModel, TABLES, ROWS, dict.fromkeys(range(6), 1)), "sample_weight"
    ),
    "weights NA": (
        fitted(ms.MatchingModel, TABLES, ROWS, pd.array([1, None, 1, 1, 1, 1], dtype="Int64")),
        "example 1 has weight nan",
    ),
    "weights with a masked entry in a list": (
        fitted(ms.MatchingModel, TABLES, ROWS, [np.ma.masked_array(1.0, True)] * 6), "masked"
    ),
    "attribute NA": (sequences(pd.NA), r"example 0, position 0: attribute 'a' has value <NA>"),
    "attribute masked": (sequences(np.ma.masked), "attribute 'a' has value masked"),
    "attribute of bytes": (sequences(b"x"), "attribute 'a' has value b'x'"),
    "attribute of no axes": (sequences(np.array(1.5)), r"attribute 'a' has value array\(1.5\)"),
    "attribute of 401 digits": (sequences(10**400), "'a' is a number of 401 digits"),
    "attribute complex": (sequences(1j), "attribute 'a' has value 1j"),
    "attribute of NumPy's complex": (sequences(np.complex64(1j)), "attribute 'a' has value"),
    "attribute of a date": (sequences(pd.Timestamp(0)), "attribute 'a' has value Timestamp"),
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
