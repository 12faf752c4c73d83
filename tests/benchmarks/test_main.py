"""The benchmarks' command line: one shape of row, skipped peers, profiles of our own functions."""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType

import numpy as np
import pytest

import mlestruct as ms
from benchmarks.__main__ import KEYS, main, names
from benchmarks._against import compared


@pytest.fixture
def stub(monkeypatch):
    """A benchmark that learns a little, and makes the rows it is given."""

    def make(*rows, absent=None):
        def run(quick):
            if absent:
                importlib.import_module(absent)
            batch = ms.Batch.of(ms.BipartiteMatching(3), [[0, 1, 2], [1, 0, 2]])
            features = ms.Dense.of(batch, np.eye(9)[np.arange(18) % 9])
            ms.mle_struct().fit(batch, features)
            for row in rows:
                yield {"benchmark": "stub", "quantity": "q", "ours": 1.0} | row

        module = ModuleType("benchmarks.stub", "What is measured.\n\nHow.")
        module.run = run
        monkeypatch.setitem(sys.modules, "benchmarks.stub", module)
        monkeypatch.setattr("benchmarks.__main__.names", lambda: ["stub"])

    return make


def test_every_benchmark_says_what_it_measures():
    for name in names():
        module = importlib.import_module(f"benchmarks.{name}")
        assert module.__doc__, name
        assert callable(module.run), name


def test_json_lines_have_every_key_and_a_miss_is_the_exit_code(stub, capsys):
    stub({"workload": "a", "met": True}, {"workload": "b", "met": False})
    assert main(["stub", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [tuple(row) for row in rows] == [KEYS, KEYS]
    assert [row["met"] for row in rows] == [True, False]


def test_an_absent_peer_is_a_line(stub, capsys):
    stub(absent="no_such_peer")
    assert main(["stub"]) == 0
    assert "skipped: no_such_peer is not installed" in capsys.readouterr().out


def rows(quantity, *values):
    return [{"workload": "w", "quantity": quantity, "ours": value} for value in values]


@pytest.mark.parametrize(
    ("quantity", "ours", "met"),
    [
        ("CPU s", [1.04] * 5, True),
        ("CPU s", [1.06] * 5, False),
        ("CPU s", [0.5] * 5, True),
        ("million messages/s", [0.9] * 5, False),
        ("million messages/s", [2.0] * 5, True),
        ("CPU s", [0.8, 0.9, 1.1, 1.3, 1.4], True),  # held to its scatter
        ("peak memory, GB", [1.06] * 5, False),
        ("worst relative gap", [2.0] * 5, None),
    ],
)
def test_a_row_is_held_to_five_percent_or_its_scatter(quantity, ours, met):
    found = compared("stub", rows(quantity, *ours), rows(quantity, *[1.0] * 5), "before")
    assert found["met"] is met
    assert found["peer"] == 1.0


def checkout(folder, results):
    """A folder whose one benchmark does that."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / "walk.py").touch()
    text = f"def results(name, quick):\n    {results}\n"
    (folder / "benchmarks" / "__main__.py").write_text(text)
    return folder


def test_a_benchmark_that_fails_or_is_missing_stops_no_other(tmp_path, capsys, monkeypatch):
    """``all --against``: a row says so, and only ours makes it a miss."""
    good = checkout(tmp_path / "good", "yield {'workload': 'w', 'quantity': 'CPU s', 'ours': 1.0}")
    bad = checkout(tmp_path / "bad", "1 / 0")
    monkeypatch.setattr("benchmarks.__main__.names", lambda: ["qpbo", "walk"])
    command = ["all", "--quick", "--turns", "2", "--against"]
    monkeypatch.setattr("benchmarks._against.HERE", good)
    assert main([*command, str(bad)]) == 0
    missing, failed = capsys.readouterr().out.splitlines()[1:]
    assert "skipped: bad has no such benchmark" in missing
    assert "failed: the benchmark of bad ended" in failed
    monkeypatch.setattr("benchmarks._against.HERE", bad)
    assert main([*command, str(good)]) == 1
