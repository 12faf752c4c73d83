"""The fitting experiments run and print what they promise; noise draws are what the page says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers._run import Experiment, Row, Setting
from papers.fitting.chains import FLIPS, LENGTH, chains, curves, sequences
from papers.fitting.choices import choices
from papers.fitting.digits import both, digits, ink, iterations, load, strokes
from papers.fitting.entropies import early, entropies, settled
from papers.fitting.scenes import HIDDEN, scenes, scenes_of
from papers.fitting.window import window

EXPERIMENTS = (
    digits,
    ink,
    strokes,
    iterations,
    choices,
    entropies,
    early,
    settled,
    window,
    chains,
    curves,
    scenes,
)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_runs_quickly(
    experiment: Experiment, shared_data: Path, printed: Callable[..., list[Row]]
) -> None:
    rows = printed(experiment, shared_data)
    assert rows
    found = [value for row in rows for key, value in row.items() if key in ("error", "test 4")]
    assert all(0 <= value <= 1 for value in found)


def test_further_draws_are_other_coins_on_the_same_images(shared_data: Path) -> None:
    """Draw 0 is stored; the share of changed pixels is half the noise in all."""
    arrays: Any = load(Setting(shared_data))
    (_, stored), (_, other) = both(arrays, 50, 0), both(arrays, 50, 1)
    np.testing.assert_array_equal(stored.batch.target, other.batch.target)
    truth = arrays["y_test"].ravel()
    for part in (stored, other):
        assert (part.features.nodes[:, 1] != truth).mean() == pytest.approx(0.25, abs=0.01)
    assert (stored.features.nodes != other.features.nodes).any()


def test_sequences_are_of_their_kind() -> None:
    """Alternating tens change at every tenth place; five of a constant's values are flipped."""

    def states(kind: str) -> Any:
        part = sequences(kind, 4)
        return part.batch.target.reshape(4, -1)[:, 1 : 2 * LENGTH : 2]

    for tens in states("semi"):
        assert np.flatnonzero(np.diff(tens)).tolist() == [9, 19, 29, 39]
    for flipped in states("misspecified"):
        assert min(flipped.sum(), LENGTH - flipped.sum()) == FLIPS


def test_scenes_hide_labels_only_where_told() -> None:
    """About a fifth of the variables have no observed state, and no factor of theirs has one."""
    part = scenes_of(2, HIDDEN, 0)
    graph: Any = part.batch.structure(0)
    seen = np.bincount(graph.table_of, weights=part.batch.target[part.batch.coordinates(0)])
    assert seen[: graph.n_nodes].mean() == pytest.approx(0.8, abs=0.06)
    ends = graph.scope.reshape(-1, 2)
    np.testing.assert_array_equal(seen[graph.n_nodes :], seen[: graph.n_nodes][ends].min(axis=1))
    assert (scenes_of(2, 0.0, 1).batch.target.reshape(2, -1).sum(axis=1) > 0).all()
