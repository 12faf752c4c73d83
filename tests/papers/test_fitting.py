"""The fitting experiments run and print what they promise; noise draws are what the page says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from papers._run import Experiment, Row
from papers.fitting.chains import chains, curves
from papers.fitting.choices import choices
from papers.fitting.digits import digits, ink, iterations, strokes
from papers.fitting.entropies import early, entropies, settled
from papers.fitting.scenes import scenes
from papers.fitting.window import window
from papers.gradients import gradient_histograms

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


def test_gradients_fall_in_the_bin_of_their_direction() -> None:
    """A ramp to the right has all its gradient in bin 0, one downwards in bin 2 of 8."""
    ramp = np.tile(np.arange(20.0), (20, 1))
    for image, bin_ in ((ramp, 0), (ramp.T, 2), (-ramp, 4), (-ramp.T, 6)):
        found = gradient_histograms(image, scales=(1,))[10, 10]
        assert found[bin_] == pytest.approx(1.0)
        assert found.sum() == pytest.approx(1.0)
    both = gradient_histograms(ramp + ramp.T, scales=(1, 2))[10, 10]
    np.testing.assert_allclose(both[[1, 9]], np.sqrt(2), rtol=1e-3)
