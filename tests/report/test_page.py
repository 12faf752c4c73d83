"""The report's page: text is escaped, numbers are read by people, bars stand on their scale."""

from types import SimpleNamespace

import pytest

from mlestruct.roommates.evaluation import RULES
from mlestruct.roommates.report import _effects, rendered
from mlestruct.roommates.words import number, words
from mlestruct.statistics import Interval

NASTY = "<script>alert('x')</script>&\"=1+1\u202e"


def effects_of(*spans):
    """The chart of effects of a model that has these."""
    rows = [("q", Interval(f"q{k}", m, 0.1, a, b)) for k, (m, a, b) in enumerate(spans)]
    return _effects(SimpleNamespace(effects=lambda: rows))


def test_text_stays_text_wherever_it_stands(parsed):
    pair = {"title": NASTY, "probable": NASTY, "reasons": [NASTY], "near": []}
    home = {"group": NASTY, "title": NASTY, "pairs": [pair]}
    given = {"headline": [NASTY], "homes": [home], "notes": [NASTY]}
    html = rendered("report.html", certificate={"withheld": NASTY}, sizes=[(NASTY, 1)], **given)
    read = parsed(html)
    assert "script" not in read.tags
    assert " ".join(read.words).count(NASTY.replace("\u202e", "\\u202e")) == 8
    assert "\u202e" not in html
    assert not {"link", "img", "iframe", "object"} & set(read.tags)


@pytest.mark.parametrize(("value", "said"), [(-0.567, "−0.57"), (1e-9, "1e−09"), (1234.5, "1234")])
def test_numbers_have_two_digits(value, said):
    assert number(value) == said


def test_bars_stand_on_one_scale():
    """The line is where people share as often; an interval that crosses it is open."""
    rows = effects_of((1.0, 0.5, 2.0), (-1.0, -3.0, 1.0), (-1.0, -2.0, -0.5))
    bars = [row[1] for row in rows]
    assert [bar["kind"] for bar in bars] == ["plus", "open", "minus"]
    assert {bar["zero"] for bar in bars} == {60.0}  # of −3 to 2
    assert [(bar["left"], bar["width"]) for bar in bars] == [(70, 30), (0, 80), (20, 30)]
    (endless,) = effects_of((1.0, 0.2, float("inf")))
    assert endless[-1] == "…"
    assert endless[1]["left"] + endless[1]["width"] == pytest.approx(100)


def test_every_rule_has_a_name():
    assert all(words(name) for name in (*RULES, "marginal", "score"))
