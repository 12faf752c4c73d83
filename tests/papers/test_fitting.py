"""The fitting experiments run and print what they promise; noise draws are what the page says."""

from pathlib import Path

import numpy as np
import pytest

from papers import fitting
from papers._run import Setting


@pytest.mark.nightly
@pytest.mark.parametrize("name", fitting.EXPERIMENTS)
def test_every_experiment_runs_quickly(name: str, shared_data: Path) -> None:
    rows = list(fitting.EXPERIMENTS[name](Setting(shared_data, quick=True)))
    assert rows
    found = [value for row in rows for key, value in row.items() if key in ("error", "test 4")]
    assert all(0 <= value <= 1 for value in found)


def test_sequences_are_of_their_kind(rng: np.random.Generator) -> None:
    """Alternating tens change at every tenth place; five of a constant's values are flipped."""
    tens = fitting.alternating(rng)
    assert np.flatnonzero(np.diff(tens)).tolist() == [9, 19, 29, 39]
    flipped = fitting.flipped(rng)
    assert min(flipped.sum(), len(flipped) - flipped.sum()) == fitting.FLIPS
    assert set(fitting.well(rng)) <= {0, 1}


def test_scenes_hide_labels_only_where_told() -> None:
    """About a fifth of the variables have no observed state, and no factor of theirs has one."""
    part = fitting.scene_part(2, fitting.HIDDEN, 0)
    graph, target = part.batch.structure(0), part.batch.target
    seen = np.bincount(graph.table_of, weights=target[part.batch.coordinates(0)])
    assert seen[: graph.n_nodes].mean() == pytest.approx(0.8, abs=0.06)
    ends = graph.scope.reshape(-1, 2)
    both = seen[: graph.n_nodes][ends].min(axis=1)
    np.testing.assert_array_equal(seen[graph.n_nodes :], both)
    assert (fitting.scene_part(2, 0.0, 0).batch.target.reshape(2, -1).sum(axis=1) > 0).all()
