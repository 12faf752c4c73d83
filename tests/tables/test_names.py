"""Names of columns that are no text, or one name twice: read as text, or refused in words."""

import numpy as np
import pandas as pd
import pytest

import mlestruct as ms
from mlestruct.tables import table

IDS, ANSWERS = [f"p{k}" for k in range(12)], [float(k % 4) for k in range(12)]
PAIRS = [(f"p{k}", f"p{k + 6}") for k in range(6)]


def frame(names):
    return pd.DataFrame({"id": IDS, "q": ANSWERS}).set_axis(names, axis=1)


@pytest.mark.parametrize("name", [1, 1.5, None, ("a", "b"), "", pd.Timestamp("2026-01-01")])
def test_names_that_are_no_text_are_read_as_it(name):
    """A column 1 was AttributeError in frames, and without an answer in lists of dicts."""
    plain = ms.RoommateModel(ordinal="q").fit({"id": IDS, "q": ANSWERS}, PAIRS).coef_
    wide = frame(pd.Index(["id", name], tupleize_cols=False))
    rows = [{"id": i, name: q} for i, q in zip(IDS, ANSWERS, strict=True)]
    for given in (wide, rows):
        if name is None and given is wide:
            continue  # pandas makes NaN of it
        model = ms.RoommateModel(ordinal=str(name), missing="neutral").fit(given, PAIRS)
        np.testing.assert_allclose(model.coef_, plain, rtol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        frame(["id", "id"]),
        frame(pd.Index([1, "1"], dtype=object)),
        [{"id": "a", 1: 2.0, "1": 3.0}],
        {1: [2.0], "1": [3.0]},
    ],
)
def test_one_name_twice_is_refused(given):
    with pytest.raises(ValueError, match="two columns have one name"):
        table(given)


def test_features_whose_names_are_told_apart_by_type_alone_are_refused():
    """As text both are 0: in another order they were taken by position, and nothing was said."""
    X = [pd.DataFrame(np.eye(4)[:, :2]).set_axis([0, "0"], axis=1) for _ in "12"]
    with pytest.raises(ValueError, match=r"two columns have one name, as text, among \[0, '0'\]"):
        ms.SequenceModel().fit(X, [[0, 1, 0, 1]] * 2)
