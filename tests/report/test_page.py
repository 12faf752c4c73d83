"""Pages and charts: text is escaped, markup is well-formed, numbers stay themselves."""

import re

import numpy as np
import pytest

from mlestruct.html import Html, element, shown, table
from mlestruct.roommates.report import page
from mlestruct.roommates.sections import APART, Axis, calibration_plot, factors, shares, spread
from mlestruct.roommates.summary import PairContrast

NASTY = "<script>alert('x')</script>&\"=1+1"


def test_text_stays_text_wherever_it_stands(parsed):
    body = [element("p", NASTY, title=NASTY), table({NASTY: [NASTY, None]}, NASTY)]
    chart = shares({"<b>&": 50.0}, 50.0)
    read = parsed(page(NASTY, {"data": [*body, chart]}, [NASTY]))
    assert "script" not in read.tags
    assert read.words.count(NASTY) == 7  # title, h1, opening, p, caption, head, cell
    assert read.words.count("<b>&") == 1


def test_a_page_loads_nothing_and_leaves_out_what_is_empty(parsed):
    read = parsed(page("A", {"data": ["x"], "plan": [], "limits": ["y"]}, []))
    assert read.ids == ["data", "limits"]
    assert read.targets == ["#data", "#limits"]
    assert not {"link", "img", "iframe", "object"} & set(read.tags)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1234567, "1234567"),
        (np.int64(-3), "-3"),
        (-0.123456, "−0.1235"),
        (np.float64(1e-9), "1e−09"),
        ("007", "007"),
        (None, ""),
        (True, "True"),
    ],
)
def test_numbers_are_rounded_and_names_are_not(value, expected):
    assert shown(value) == expected


def test_markup_is_marked():
    assert element("p", Html("<b>x</b>"), ["<", ["&"]]) == "<p><b>x</b>&lt;&amp;</p>"


@pytest.mark.parametrize("top", [0.01, 0.3, 1.0])
def test_numbers_of_an_axis_do_not_collide(top):
    """At least ``APART`` units between any two, the first of them always there."""
    axis = Axis(0.0, top, 0.0, 300.0)
    ticks = {k * top / 40: str(k) for k in range(41)}
    kept = spread(axis, ticks, first=7 * top / 40)
    places = sorted(axis(value) for value in kept)
    assert 7 * top / 40 in kept
    assert min(np.diff(places)) >= APART
    assert len(kept) >= 300 / (2 * APART)


def test_charts_place_marks_on_their_scales(parsed):
    def effect(name, middle, low, high):
        return PairContrast("q", name, middle, 0.1, low, high)

    drawn = factors([effect("a", 1.0, 0.5, 2.0), effect("b", -1.0, -3.0, 1.0)])
    parsed(drawn)
    scale = Axis(-3.0, 2.0, 150, 346)
    assert f'cx="{scale(1.0)}"' in drawn
    assert drawn.count("fill:var(--card)") == 1  # b's interval crosses 1
    assert f">{'M' * 16}…<" in factors([effect("M" * 40, 0.0, 0.0, 0.0)])
    parsed(factors([effect("open", 1.0, 0.2, np.inf)]))
    labels = "predicted", "came true"
    drawn = calibration_plot([0.01, 0.25], [0.04, 0.25], [0.0, 0.16], [0.09, 0.36], labels)
    parsed(drawn)
    scale = Axis(0.0, 0.6, 46, 346)
    assert f'cx="{scale(0.1)}" cy="{Axis(0.0, 0.6, 300, 20)(0.2)}"' in drawn
    label = re.search(r'aria-label="([^"]*)"', shares({"score": 75.0}, 50.0))
    assert label is not None
    assert label[1] == "score 75"
