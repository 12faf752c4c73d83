"""The report's page: text is escaped, numbers are read by people."""

import pytest

from mlestruct.roommates.report import rendered
from mlestruct.roommates.words import number

NASTY = "<script>alert('x')</script>&\"=1+1\u202e"


def test_text_stays_text_wherever_it_stands(parsed):
    pair = {"title": NASTY, "probable": NASTY, "reasons": [NASTY]}
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
