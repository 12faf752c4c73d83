"""Every result shows itself: words, columns, a frame, a notebook's table, a picture."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.estimators import Calibration
from mlestruct.results import SHOWN

NASTY = "<b onclick=x>&"


@pytest.fixture(scope="module")
def results():
    """One of each kind, by name."""
    people, pairs, _ = data.roommates(n=60, years=2, seed=3)
    before, after = (
        {name: column[people["year"] == year].tolist() for name, column in people.items()}
        for year in (1, 2)
    )
    model = ms.RoommateModel(cohort="year", same="gender", ordinal="q*", alpha=10.0)
    model.fit(before, pairs)
    held = model.evaluate(after, pairs)
    own = after["id"][0]
    after["id"] = [NASTY if who == own else f"p{who}" for who in after["id"]]
    plan = model.assign(after)
    train, _, _ = data.landmarks((8, 1, 1))
    matching = ms.MatchingModel(alpha=1.0).fit(train.X, train.y)
    return {
        "plan": plan,
        "summary of rooms": model.summary(),
        "evaluation": held,
        "explanation": model.explain(plan, NASTY),
        "certificate": matching.certificate_,
        "calibration": Calibration.of([0.1, 0.4, 0.9], [0, 1, 1]),
        "summary": matching.summary(),
        "summary with errors": matching.summary(matching.intervals(train.X, train.y)),
    }


KINDS = [
    "plan", "summary of rooms", "evaluation", "explanation", "certificate", "calibration",
    "summary", "summary with errors",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_of_one_length_and_a_frame_has_them(results, kind) -> None:
    columns = results[kind].columns()
    assert len({len(values) for values in columns.values()}) == 1
    frame = results[kind].to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(columns)
    assert len(frame) == len(next(iter(columns.values()))) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_sees_a_table_and_no_markup_of_the_data(results, kind) -> None:
    html = results[kind]._repr_html_()
    reader = _Rows()
    reader.feed(html)
    count = len(next(iter(results[kind].columns().values())))
    assert reader.rows == 1 + min(count, SHOWN)
    assert "<b onclick" not in html
    assert ("more rows" in html) == (count > SHOWN)


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k not in ("plan", "explanation", "evaluation")]
)
def test_a_picture_is_drawn_on_the_axes_given(results, kind) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, ax = plt.subplots()
    assert results[kind].plot(ax) is ax
    assert ax.lines or ax.collections
    plt.close(figure)


def test_words_of_every_kind(results) -> None:
    assert all(len(str(found)) > 20 for found in results.values())
    assert repr(results["plan"]) == "<Plan of 30 pairs, 0 people alone: print it>"


def test_a_plan_is_a_row_for_each_pair_and_single(results) -> None:
    plan = results["plan"]
    columns = plan.columns()
    assert [tuple(pair) for pair in plan.pairs] == list(zip(*columns.values(), strict=True))
    assert np.isfinite(columns["probability"]).all()


class _Rows(HTMLParser):
    rows = 0

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
