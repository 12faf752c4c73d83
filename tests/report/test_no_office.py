"""Without the extra office everything but the page is written, and the extra is named."""

import importlib.util
import sys

import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.cli import main
from mlestruct.roommates import report
from mlestruct.roommates.frames import table


@pytest.fixture
def no_jinja(monkeypatch):
    """As on a machine that has not installed Jinja2."""
    found = importlib.util.find_spec

    def without(name, *more):
        return None if name == "jinja2" else found(name, *more)

    monkeypatch.setattr(report, "find_spec", without)
    report._template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)


def test_the_example_ends_with_a_plan_and_names_the_extra(no_jinja, tmp_path, capsys):
    assert main(["roommates", "--out", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "pip install 'mlestruct[office]'" in shown
    assert "pairs" in shown
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".csv", ".csv"]


def test_a_page_is_refused_by_name(no_jinja, tmp_path):
    people, pairs, _ = data.roommates(12, 2, 0)
    model = ms.RoommateModel(cohort="year", ordinal="q*", mix="gender").fit(people, pairs)
    assert [path.suffix for path in report.Report.of(model, table(people)).write(tmp_path)] == [
        ".csv"
    ] * 2
    with pytest.raises(ValueError, match=r"need the extra mlestruct\[office\]"):
        model.report(tmp_path / "page.html", people)
