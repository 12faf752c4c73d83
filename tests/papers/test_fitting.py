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
from papers.pixels import blurs, centres, gradient_histograms, indicators

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


def test_blurs_keep_the_mean_and_the_channels(rng: np.random.Generator) -> None:
    image = rng.standard_normal((6, 7, 3))
    found = blurs(image, scales=(0, 3))
    np.testing.assert_array_equal(found[:, :, :3], image)
    assert found[:, :, 3:].std() < 0.5 * image.std()
    np.testing.assert_allclose(blurs(np.full((5, 5), 2.0)), 2.0)


def test_clusters_are_found_and_indicated(rng: np.random.Generator) -> None:
    points = np.concatenate([rng.normal(k, 0.1, (20, 2)) for k in (0, 5, 9)])
    middles = centres(points, 3)
    np.testing.assert_allclose(np.sort(middles[:, 0]), [0, 5, 9], atol=0.2)
    ones = indicators(points, middles).toarray()
    assert (ones.sum(axis=1) == 1).all()
    assert ones.sum(axis=0).tolist() == [20, 20, 20]
