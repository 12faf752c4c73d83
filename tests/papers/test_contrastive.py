"""The contrastive free energies' experiments, briefly."""

import json
from pathlib import Path

import pytest

from papers._run import main
from papers.contrastive import CURVE, METHODS, curve, f1, hidden


@pytest.mark.nightly
def test_f1_and_curve_quickly(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["all", "--quick", "--json", "--data", str(shared_data)]
    assert main("contrastive", {"f1": f1, "curve": curve}, given) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2 * len(METHODS) + len(CURVE)
    assert all(0 <= row["F1 mean"] <= 100 for row in rows)
    assert all(row["training CPU s"] > 0 for row in rows)


def test_hidden_labels_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("contrastive", {"hidden": hidden}, ["hidden", "--quick", "--json"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert {"CF5-Bethe", "ML-BP"} <= {row["method"] for row in rows}
    assert all(0 <= row["test error %, all labels"] <= 100 for row in rows)
