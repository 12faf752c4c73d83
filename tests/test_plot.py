"""Pictures: the artists hold the numbers, on the axes that were given or on new ones."""

from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import mlestruct as ms
from mlestruct import plot
from mlestruct.estimators import Calibration
from mlestruct.readers.graphs import to_networkx

HISTORY = [(4, 0.1, -3.0, np.inf), (8, 0.2, -2.0, 5.0), (12, 0.3, -1.0, 0.5)]
TAU = np.array([[0.9, 0.1, 0.0], [0.1, 0.5, 0.4]])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize(("against", "x"), [("calls", [8, 12]), ("seconds", [0.2, 0.3])])
def test_gap_draws_finite_rounds_and_marks_the_last(against, x):
    ax = plot.gap(HISTORY, against, label="first")
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.c_[x, [5.0, 0.5]])
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[x[-1], 0.5]])
    assert ax.get_yscale() == "log"
    assert plot.gap(HISTORY, against, ax=ax, label="second") is ax
    assert ax.lines[0].get_linestyle() != ax.lines[2].get_linestyle()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["first", "second"]
    with pytest.raises(ValueError, match="no round of this history"):
        plot.gap(HISTORY[:1])
    with pytest.raises(ValueError, match="against is calls or seconds, not 'hours'"):
        plot.gap(HISTORY, "hours")


@pytest.mark.parametrize(
    ("draw", "image", "rings"),
    [
        (lambda ax: plot.matrix(TAU, outcome=[0, -1], ax=ax), TAU, [[0, 0]]),
        (lambda ax: plot.sequence(TAU, "abc", outcome="ac", ax=ax), TAU.T, [[0, 0], [1, 2]]),
        (lambda ax: plot.picture(np.stack([1 - TAU, TAU], 2), ax=ax), TAU, []),
    ],
)
def test_heat_maps_hold_the_probabilities_on_one_scale(draw, image, rings):
    _, given = plt.subplots()
    ax = draw(given)
    assert ax is given
    np.testing.assert_array_equal(ax.images[0].get_array(), image)
    assert ax.images[0].get_clim() == (0.0, 1.0)
    for line in ax.lines:
        np.testing.assert_array_equal(line.get_xydata(), rings)
    assert len(ax.lines) == 2 * bool(rings)


@pytest.mark.parametrize(
    ("structure", "outcome"),
    [(ms.BipartiteMatching(2, 3, "one_sided"), [0, 1]), (ms.Matching(4), [(0, 1), (2, 3)])],
)
def test_matchings_are_as_wide_as_they_are_probable(structure, outcome):
    graph = to_networkx(structure, TAU, outcome)
    ax = plot.matching(graph)
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    others, matched = lines
    assert matched.get_zorder() > others.get_zorder()
    vertex = structure.encode(outcome) > 0
    np.testing.assert_allclose(matched.get_linewidths(), plot.WIDEST * TAU.ravel()[vertex])
    np.testing.assert_allclose(others.get_linewidths(), plot.WIDEST * TAU.ravel()[~vertex])
    assert [t.get_text() for t in ax.texts] == [str(v) for v in graph.nodes]


class Found(NamedTuple):
    names: list[str]
    weights: np.ndarray
    intervals: np.ndarray | None
    level: float = 0.95


@pytest.mark.parametrize("sure", [False, True])
def test_weights_show_the_largest_with_their_intervals(sure):
    intervals = np.array([[0.5, 1.5], [-4.0, -2.5], [-np.inf, np.inf]])
    found = Found(["a", "b", "c"], np.array([1.0, -3.0, 2.0]), intervals if sure else None)
    ax = plot.weights(found, top=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c", "b"]
    np.testing.assert_array_equal(ax.lines[-1].get_xdata(), [2.0, -3.0])
    segments = [line.tolist() for c in ax.collections for line in c.get_segments()]
    assert segments == ([[[-4.0, 1.0], [-2.5, 1.0]]] if sure else [])


def test_calibration_draws_every_bin_with_its_interval(rng):
    p = rng.random(500)
    report = Calibration.of(p, rng.random(500) < p, bins=5)
    ax = plot.calibration(report)
    np.testing.assert_array_equal(
        ax.lines[1].get_xydata(), np.c_[report.predicted, report.observed]
    )
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_array_equal(segments[:, :, 1].T, report.interval)
    assert [t.get_text() for t in ax.texts] == [str(n) for n in report.count]
