"""Pages and charts: text is escaped, markup is well-formed, numbers stay themselves."""

import re

import numpy as np
import pytest

from mlestruct.report.charts import Axis, bars, calibration_plot, intervals
from mlestruct.report.page import Html, element, page, shown, table

NASTY = "<script>alert('x')</script>&\"=1+1"


def test_text_stays_text_wherever_it_stands(parsed):
    body = [element("p", NASTY, title=NASTY), table({NASTY: [NASTY, None]}, NASTY)]
    read = parsed(page(NASTY, {"Data": [*body, bars({"<b>&": 0.5}, 0, 1)]}, NASTY))
    assert "script" not in read.tags
    assert read.words.count(NASTY) == 7  # title, h1, lead, p, caption, head, cell
    assert read.words.count("<b>&") == 1


def test_a_page_needs_no_script_and_no_network(parsed):
    read = parsed(page("A", {"Data": ["x"], "Limits": ["y"]}))
    assert read.ids == ["data", "limits"]
    assert read.targets == ["#data", "#limits"]
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)


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


@pytest.mark.parametrize(("low", "high"), [(-0.71, 0.33), (0.0, 1.0), (0.5, 0.8), (-3e-4, 9e4)])
def test_ticks_are_round_few_and_inside(low, high):
    ticks = np.array(Axis(low, high, 0.0, 100.0).ticks)
    step = ticks[1] - ticks[0]
    digits = step / 10.0 ** np.floor(np.log10(step))
    assert min(abs(digits - m) for m in (1, 2, 5, 10)) < 1e-6
    assert 3 <= len(ticks) <= 9
    assert ticks.min() >= low - 1e-9
    assert ticks.max() <= high + 1e-9
    assert np.allclose(ticks / step, np.round(ticks / step))


def test_charts_place_marks_on_their_scales(parsed):
    drawn = intervals(["a", "b"], [1.0, -1.0], [0.5, -3.0], [2.0, 1.0])
    parsed(drawn)
    scale = Axis(-3.0, 2.0, 150, 348)
    assert f'cx="{scale(1.0)}"' in drawn
    assert drawn.count('fill="#ffffff"') == 1  # b's interval crosses 0
    assert f">{'M' * 16}…<" in intervals(["M" * 40], [0.0], [0.0], [0.0])
    drawn = calibration_plot([0.01, 0.25], [0.04, 0.25], [0.0, 0.16], [0.09, 0.36])
    parsed(drawn)
    scale = Axis(0.0, 0.6, 46, 346)
    assert f'cx="{scale(0.1)}" cy="{Axis(0.0, 0.6, 300, 20)(0.2)}"' in drawn
    label = re.search(r'aria-label="([^"]*)"', bars({"score": 0.75}, 0.5, 1.0))
    assert label is not None
    assert label[1] == "score 0.750"
