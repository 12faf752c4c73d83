"""The snakes benchmark: its features, its choice of λ, and its brief run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import snakes

COLOURS = {1: (255, 0, 0), 2: (0, 255, 0), 3: (255, 255, 0), 6: (0, 255, 255), 4: (0, 0, 255)}


@pytest.fixture
def data(rng):
    """Six training and three test images of random colours and labels."""
    found = {}
    for split, count in (("train", 6), ("test", 3)):
        cells = 6 * count
        codes = rng.choice(list(COLOURS), cells)
        found[f"offsets_{split}"] = np.arange(0, cells + 1, 6)
        found[f"shapes_{split}"] = np.tile([2, 3], (count, 1))
        found[f"rgb_{split}"] = np.array([COLOURS[code] for code in codes], dtype=np.uint8)
        found[f"labels_{split}"] = rng.integers(0, 11, cells).astype(np.uint8)
    return found


def test_features_are_the_colours_around_with_a_direction(data, rng):
    """Score of a labelling: a sum of weights looked up by colour, place and direction."""
    given = snakes.images(data, "train")
    theta = rng.standard_normal(given.features.d)
    nodes = theta[: 46 * 11].reshape(46, 11)
    edges = theta[46 * 11 :].reshape(2, 91, 11, 11)
    code = data["rgb_train"][:6].astype(int) @ [1, 2, 4] // 255
    outside = np.full((4, 5), snakes.BACKGROUND)
    outside[1:3, 1:4] = code.reshape(2, 3)
    near = []
    for i in range(2):
        for j in range(3):
            hot = [
                float(outside[i + a, j + b] == colour)
                for colour in snakes.CODES
                for a in range(3)
                for b in range(3)
            ]
            near.append(np.array([*hot, 1.0]))
    y = given.labels[0]
    score = sum(near[i] @ nodes[:, y[i]] for i in range(6))
    for way, pairs in enumerate(([(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 3), (1, 4), (2, 5)])):
        for a, b in pairs:
            score += np.concatenate([near[a], near[b][:-1]]) @ edges[way, :, y[a], y[b]]
    first = given.batch.coordinates(0)
    assert given.features.potentials(theta)[first] @ given.batch.target[first] == pytest.approx(
        score
    )


def test_the_test_images_are_seen_once_lambda_is_chosen(data, monkeypatch):
    """Fits on the first images, errors on the last training images, and only then the test's."""
    train, test = snakes.images(data, "train"), snakes.images(data, "test")
    asked, errors, judged = [], iter([0.3, 0.1, 0.2, 0.0, 0.0]), []
    monkeypatch.setattr(snakes, "HELD_OUT", 2)

    def fit(contender, part, lam):
        asked.append((len(part.labels), lam, list(judged)))
        return None, 0.0

    def judge(theta, part):
        judged.append(len(part.labels))
        return next(errors)

    monkeypatch.setattr(snakes, "fit", fit)
    monkeypatch.setattr(snakes, "by_marginals", judge)
    monkeypatch.setattr(snakes, "by_map", lambda theta, part: 0.5)
    contender = snakes.Contender(None, 1, (0.1, 0.01, 0.001))
    rows = list(snakes.compare("any", contender, train, test))
    assert [one[:2] for one in asked] == [(4, 0.1), (4, 0.01), (4, 0.001), (6, 0.01)]
    assert asked[-1][2] == [2, 2, 2]
    assert all("λ = 0.01" in row["workload"] for row in rows)


@pytest.mark.nightly  # compiles for 20 s what no other test needs
def test_snakes_briefly(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a search pseudo-likelihood already finds the positions of nearly all cells."""
    monkeypatch.setenv("MLESTRUCT_DATA", str(shared_data))
    rows = list(snakes.run(quick=True))
    errors = {row["quantity"]: row["ours"] for row in rows if "error" in row["quantity"]}
    assert set(errors) == {"cell error by marginals", "cell error by map", "cell error"}
    assert errors["cell error"] == min(errors.values()) < snakes.NETWORK / 4
