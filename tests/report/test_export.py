"""Exports hold what they were given, and no spreadsheet finds a formula in them."""

import csv

import pytest

from mlestruct.roommates.report import export_csv


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("x")']
)
def test_formulas_become_text(tmp_path, text):
    export_csv(tmp_path / "x.csv", {"id": [text, "a=1"], text: [-0.5, 2.0]})
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["id", "'" + text], ["'" + text, "-0.5"], ["a=1", "2.0"]]


def test_missing_values_are_empty_and_whole_numbers_whole(tmp_path):
    export_csv(tmp_path / "x.csv", {"a": [1, -2], "room": [None, "=R"]})
    assert (tmp_path / "x.csv").read_text() == "a,room\n1,\n-2,'=R\n"
