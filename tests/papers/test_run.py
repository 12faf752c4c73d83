"""The papers' scripts share one command line: tables, JSON, figures, data that may be absent."""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import papers
from papers._run import Row, Setting, main

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"


def experiment(setting: Setting) -> Iterator[Row]:
    yield {"name": "a", "value": 1.0 if setting.quick else 2.0, "none": None}
    yield {"name": "b", "value": 3.0, "none": float("inf")}


def needs_data(setting: Setting) -> Iterator[Row]:
    yield {"files": len(list(setting.data("moon").iterdir()))}


def test_a_table_has_one_header(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("x", {"e": experiment}, ["e"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[1] == "| name | value | none |"
    assert [row for row in lines if row.startswith("| b")] == ["| b | 3 |  |"]


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("x", {"e": experiment}, ["e", "--json", "--quick"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert rows == [
        {"name": "a", "value": 1.0, "none": None},
        {"name": "b", "value": 3.0, "none": None},
    ]


def test_absent_data_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("x", {"e": needs_data}, ["e", "--data", str(tmp_path)]) == 2
    assert "moon" in capsys.readouterr().err
    (tmp_path / "moon").mkdir()
    assert main("x", {"e": needs_data}, ["e", "--data", str(tmp_path), "--json"]) == 0


@pytest.mark.parametrize("paper", ["camel", "contrastive", "fitting", "mle_struct", "wrong_mrf"])
def test_the_page_names_every_experiment_and_no_other(paper: str) -> None:
    package = (Path(papers.__file__).parent / paper).is_dir()
    script = importlib.import_module(f"papers.{paper}.__main__" if package else f"papers.{paper}")
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    assert set(re.findall(rf"python -m papers\.{paper} (\w+)", pages)) == set(script.EXPERIMENTS)
