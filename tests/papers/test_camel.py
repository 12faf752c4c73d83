"""CAMEL's experiments, briefly, and what their generator promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from papers._run import Experiment, Row
from papers.camel import (
    CCCP,
    CLASSES,
    LEARN,
    MAIL_FOLDS,
    PAIRS,
    SIGNAL,
    accuracy,
    coarse,
    generate,
    hints,
    ner,
    seminar_sample,
    seminars,
    vision,
)

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
    """The cell that ``vision`` begins with, but for its ridge and its rounds."""
    rows = printed(hints)
    assert [row["learner"] for row in rows] == list(LEARN)
    assert {row["hints"] for row in rows} == {SIGNAL}
    assert all(0 < row["accuracy"] <= 100 for row in rows)


def test_more_hints_are_stronger_hints_on_the_same_labels() -> None:
    weak, strong = generate(0.5, 0, 2), generate(0.5, 0, 2, 2 * SIGNAL)
    for m in range(2):
        np.testing.assert_array_equal(weak.labels[m], strong.labels[m])
        assert (weak.features[m] != strong.features[m]).nnz > 0


def test_edges_tell_something_that_hints_do_not() -> None:
    """The weights that drew labels and hints are better than those of the hints alone."""
    for seed in range(2):
        images = generate(1.0, seed, 4)
        drawn = np.random.default_rng([2008, seed]).normal(-1.0, 1.0, len(PAIRS))
        hints = np.vstack([SIGNAL * np.eye(CLASSES), np.zeros(CLASSES)]).ravel()
        alone = accuracy(np.concatenate([hints, 0 * drawn]), images)
        assert 100 / CLASSES < alone < accuracy(np.concatenate([hints, drawn]), images)


def test_graphs_are_triangulations_and_a_tenth_as_many_chords() -> None:
    for graph in generate(0.25, 0, 5).graphs:
        assert 30 <= graph.n_nodes <= 50
        least, most = 2 * graph.n_nodes - 3, 3 * graph.n_nodes - 6  # edges of a triangulation
        assert int(1.1 * least) <= graph.n_factors <= int(1.1 * most)


def test_seven_tags() -> None:
    tags = ["O", "B-person", "I-location", "B-product", "I-creative-work"]
    assert [coarse(tag) for tag in tags] == ["O", "B-person", "I-location", "B-other", "I-other"]


def test_ner_quickly(shared_data: Path, printed: Printed) -> None:
    rows = printed(ner, shared_data)
    assert [row["learner"] for row in rows] == list(LEARN)
    for row in rows:
        assert all(0 <= row[name] <= 100 for name in row if "F1" in name)
        assert 1 <= row["to 99 % of the gain"] <= row["rounds"] <= CCCP["rounds"]


@pytest.mark.parametrize(
    ("experiment", "folds"),
    [(seminar_sample, 1), pytest.param(seminars, MAIL_FOLDS, marks=pytest.mark.nightly)],
)
def test_seminars_quickly(
    experiment: Experiment, folds: int, shared_data: Path, printed: Printed
) -> None:
    rows = printed(experiment, shared_data)
    assert [row["learner"] for row in rows] == list(LEARN)
    assert all(row["folds"] == folds for row in rows)
    assert all(0 <= row[name] <= 100 for row in rows for name in ("micro F1", "macro F1"))
