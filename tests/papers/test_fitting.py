"""The fitting experiments run and print what they promise; noise draws are what the page says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from papers._run import Experiment, Row
from papers.fitting.chains import chains, curves
from papers.fitting.choices import choices
from papers.fitting.digits import digits, ink, iterations, strokes
from papers.fitting.entropies import early, entropies, settled
from papers.fitting.scenes import scenes
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
