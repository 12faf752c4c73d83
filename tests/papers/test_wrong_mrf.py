"""The wrong-MRF experiments, briefly: Theorem 1 is never violated, and no surrogate beats Bayes."""

from __future__ import annotations

import json
from math import tanh
from typing import Any

import pytest

from papers._run import main
from papers.wrong_mrf import EXPERIMENTS, METHODS


def rows(name: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main("wrong_mrf", EXPERIMENTS, [name, "--quick", "--json"]) == 0
    return [json.loads(row) for row in capsys.readouterr().out.splitlines()]


def test_the_bound_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """And says something: with TRW the loss is positive, and so is the distance L of the models."""
    found = rows("bound", capsys)
    assert {(row["ensemble"], row["alpha"]) for row in found} == {
        (ensemble, alpha) for ensemble in "AB" for alpha in (0.3, 0.6)
    }
    for row in found:
        assert row["violations"] == 0
        assert 0 < row["loss"] <= row["bound"]
        assert row["L"] > 0


def test_errors_on_other_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    """TRW errs by less than sites on their own; BP on a cycle by what goes round it, squared."""
    found = rows("graphs", capsys)
    assert len({row["graph"] for row in found}) == 3
    for row in found:
        assert all(row[name] > 0 for name in METHODS)
        assert row["trw"] < row["independent"]
    for row in found:
        if row["graph"] == "cycle of 20":
            assert row["bp"] < 100 * (20 * tanh(row["beta"]) ** 19) ** 2
