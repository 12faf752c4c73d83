"""CAMEL's experiments, briefly, and what their generator promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from papers._run import Experiment, Row
from papers.camel import (
    BRIEFLY,
    CCCP,
    LEARN,
    MAIL_FOLDS,
    NAMES,
    PLAINLY,
    SIGNAL,
    TABLE_1,
    conll,
    conll_sample,
    hints,
    ner,
    plain,
    seminar_sample,
    seminars,
    vision,
)
from papers.contrastive import QUARTERS

Printed = Callable[..., list[Row]]


def test_vision_quickly(printed: Printed) -> None:
    rows = printed(vision)
    assert [row["learner"] for row in rows] == list(LEARN)
    for row in rows:
        assert 0 < row["accuracy"] <= 100
        assert row["accuracy"] - row["above piecewise"] == pytest.approx(rows[0]["accuracy"])
        assert 1 <= row["to 99 % of the gain"] <= row["rounds"] <= CCCP["rounds"]
        assert row["CPU s"] > 0


def test_hints_quickly(printed: Printed) -> None:
    rows = printed(hints)
    assert {row["learner"] for row in rows} == set(BRIEFLY)
    assert {row["hints"] for row in rows} == {SIGNAL}
    assert all(0 < row["accuracy"] <= 100 for row in rows)


def test_plain_quickly(printed: Printed) -> None:
    rows = printed(plain)
    assert [row["learner"] for row in rows] == list(PLAINLY)
    assert all(0 < row["accuracy"] <= 100 for row in rows)


def test_ner_quickly(shared_data: Path, printed: Printed) -> None:
    rows = printed(ner, shared_data)
    assert [row["learner"] for row in rows] == list(LEARN)
    for row in rows:
        assert all(0 <= row[name] <= 100 for name in row if "F1" in name)
        assert 1 <= row["to 99 % of the gain"] <= row["rounds"] <= CCCP["rounds"]


@pytest.mark.parametrize(
    ("experiment", "folds"),
    [(seminar_sample, QUARTERS), pytest.param(seminars, MAIL_FOLDS, marks=pytest.mark.nightly)],
)
def test_seminars_quickly(
    experiment: Experiment, folds: int, shared_data: Path, printed: Printed
) -> None:
    rows = printed(experiment, shared_data)
    assert [row["learner"] for row in rows] == list(LEARN)
    assert all(row["folds"] == folds for row in rows)
    assert all(0 <= row[name] <= 100 for row in rows for name in ("micro F1", "macro F1"))


CORPUS = """-DOCSTART- -X- -X- O

{0} NNP I-NP I-PER
met VBD I-VP O
{1} NNP I-NP I-LOC

Later RB I-ADVP O
{0} NNP I-NP I-PER
left VBD I-VP O

-DOCSTART- -X- -X- O

The DT I-NP O
{0} NNP I-NP I-ORG
{1} NNP I-NP B-ORG
"""  # made up, in the form of CoNLL-2003's files


@pytest.mark.parametrize(
    ("experiment", "folds", "best"), [(conll, 1, 100), (conll_sample, QUARTERS, 50)]
)
def test_conll_prints_table_1(
    experiment: Experiment, folds: int, best: float, tmp_path: Path, printed: Printed
) -> None:
    home = tmp_path / "conll2003"
    home.mkdir()
    people = [("Ada", "Rome"), ("Bo", "Rio"), ("Cy", "Oslo"), ("Di", "Bonn")]
    (home / "eng.train").write_text("\n".join(CORPUS.format(*names) for names in people))
    (home / "eng.testb").write_text(CORPUS.format("Ada", "Rio"))
    rows = printed(experiment, tmp_path)
    assert [row["learner"] for row in rows] == list(LEARN)
    for row in rows:
        said = TABLE_1.get(row["learner"], (None, None))
        assert (row["paper's micro F1"], row["paper's macro F1"]) == said
        assert 0 <= row["macro F1"] <= row["micro F1"] * len(NAMES) <= 100 * len(NAMES)
        assert row["folds"] == folds
    assert max(row["micro F1"] for row in rows) >= best
