"""The contrastive free energies' experiments, briefly."""

from collections.abc import Callable
from pathlib import Path

from papers._run import Row
from papers.contrastive import COLD, CURVE, METHODS, curve, f1, hidden, seminar_sample, seminars

Printed = Callable[..., list[Row]]


def test_f1_and_curve_quickly(shared_data: Path, printed: Printed) -> None:
    rows = [*printed(f1, shared_data), *printed(curve, shared_data)]
    assert len(rows) == 2 * len(METHODS) + len(CURVE)
    assert all(0 <= row["F1 mean"] <= 100 for row in rows)
    assert all(row["training CPU s"] > 0 for row in rows)


def test_seminars_quickly(shared_data: Path, printed: Printed) -> None:
    """The paper's corpus, whole folds and one split; cold messages label as warm ones do."""
    rows = [*printed(seminars, shared_data), *printed(seminar_sample, shared_data)]
    assert len(rows) == 4 * len(METHODS | COLD)
    for row in rows:
        if row["method"] in COLD:
            assert row["tokens only it / only ML-BP has right"] == "0 / 0"


def test_hidden_labels_quickly(printed: Printed) -> None:
    rows = printed(hidden)
    assert {"CF5-Bethe", "ML-BP"} <= {row["method"] for row in rows}
    assert all(0 <= row["test error %, all labels"] <= 100 for row in rows)
