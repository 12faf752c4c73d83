"""Ids, answers, groups and rooms that are paths, markup or formulas stay text wherever they go."""

import csv
import re

import pytest

import mlestruct as ms
from mlestruct.roommates.report import FORMULA, Report
from mlestruct.tables import table

NASTY = [
    "../../up",
    "/etc/passwd",
    "C:\\up",
    "con",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt;",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=2",
    "\r=3",
    "\n=4",
    "＝1",
    'a","b',
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report on people of such names, in rooms of such names, and where it was written."""
    place = tmp_path_factory.mktemp("nasty")
    people = table(
        {
            "id": NASTY,
            "house": ["=cmd|'/C calc'!A0"] * 8 + ["<b>"] * 8,
            "diet": [NASTY[k % 2 + 4] for k in range(16)],
        }
    )
    pairs = [(NASTY[k], NASTY[k + 1]) for k in range(0, 16, 2)]
    model = ms.RoommateModel(same="house", categorical="diet").fit(people, pairs)
    named = {"room": [f"={k}<i>" for k in range(8)], "house": people["house"][::2].tolist()}
    rooms = table(named | {"size": [2] * 8})
    report = Report.of(model, people, rooms=rooms)
    return place, report.write(place / "out")


def test_files_are_made_where_they_were_asked_for_and_nowhere_else(written):
    place, paths = written
    made = sorted(p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file())
    assert made == sorted(f"out/{path.name}" for path in paths)


def test_no_cell_is_a_formula_and_every_id_can_be_read_back(written):
    for path in written[1][:2]:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        text = [
            cell for row in rows for cell in row.values() if not re.fullmatch(r"[-\d.e]*", cell)
        ]
        assert not any(cell.startswith(FORMULA) for cell in text)
        named = {row[end].removeprefix("'") for row in rows for end in ("a", "b")}
        assert named - {""} == {name.strip() for name in NASTY}


def test_the_page_holds_the_names_as_text(written):
    html = written[1][2].read_text(encoding="utf-8")
    assert not re.search(r"<(img|iframe|b|i)\b", html)
    assert "<script" not in html
    assert "onerror=alert(1)&gt;" in html
    assert "&amp;lt;b&amp;gt;" in html
