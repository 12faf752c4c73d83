"""The MLE-Struct paper's experiments, briefly: what is claimed of the full runs holds here too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers._run import Setting, main
from papers.mle_struct.area import area
from papers.mle_struct.density import density
from papers.mle_struct.house import house, load
from papers.mle_struct.inference import LEVELS, inference
from papers.mle_struct.markets import markets
from papers.mle_struct.permanents import draw, permanents
from papers.mle_struct.planar import planar

QUICK = Setting(quick=True)
KEYS = {"learner", "rho", "gap", "test_error", "nll", "lam", "certificate", "seconds"}


def test_house_at_gap_50(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ρ = ½ is as good as promised, every fit that has a certificate is certified."""
    given = ["house", "--quick", "--json", "--data", str(shared_data)]
    assert main("mle_struct", {"house": house}, given) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["learner"] for row in rows} == {"mle_struct", "ssvm", "none", "sinkhorn"}
    assert all(set(row) >= KEYS for row in rows)
    for row in rows:
        uncertified = row["learner"] in ("none", "sinkhorn")
        assert row["certificate"] is None if uncertified else row["certificate"] < 1e-3
    (half,) = (row for row in rows if row["rho"] == 0.5)
    assert half["test_error"] <= 0.017 + 0.03
    assert half["nll"] <= 0.052


def test_landmarks_are_shuffled_and_none_is_lost(shared_data: Path) -> None:
    pairs = load(shared_data / "cmu_house", 90, "test")
    assert len(pairs.truth) == 7
    for truth in pairs.truth:
        assert sorted(truth) == list(range(30))
        assert (truth != np.arange(30)).any()


def test_permanents_keep_the_sandwich() -> None:
    for row in permanents(QUICK):
        assert row["violations"] == 0
        assert row["worst gap"] < 1e-6
        assert row["likelihood, half"] < 0


def test_drawn_matchings_have_the_right_frequencies() -> None:
    """Two by two: the diagonal's chance is e^{0} / (e^{0} + e^{-2})."""
    drawn = draw(np.array([[0.0, -1.0], [-1.0, 0.0]]), 4000, np.random.default_rng(0))
    assert abs((drawn[:, 0] == 0).mean() - 1 / (1 + np.exp(-2))) < 0.02


def test_planar_weights_are_certified() -> None:
    rows = list(planar(QUICK))
    assert {row["learner"] for row in rows} == {"exact", "oracle"}
    assert all(row["worst gap"] <= 1e-4 for row in rows)


def test_inference_reaches_every_level() -> None:
    times = [row for row in inference(QUICK) if row["method"] != "perturb and MAP"]
    assert all(row[f"s to {level:g}"] is not None for row in times for level in LEVELS)


@pytest.fixture(scope="module")
def quick(shared_data: Path) -> Setting:
    return Setting(shared_data, quick=True)


def test_density_gains_from_couplings(quick: Setting) -> None:
    """Held out, pairs beat independent questions, and the surrogate stays below the exact value."""
    alone, *rest = density(quick)
    assert max(row["held out, exact"] for row in rest) > alone["held out, exact"]
    for row in [alone, *rest]:
        assert row["held out, surrogate"] <= row["held out, exact"] + 1e-6
        assert row["certificate"] < 1e-3


def test_markets_beat_the_obvious_feature(quick: Setting) -> None:
    rows: list[dict[str, Any]] = list(markets(quick))
    chess = [row for row in rows if row["market"] == "swiss"]
    assert all(row["AUC"] > row["AUC, score apart alone"] for row in chess)
    for row in (row for row in rows if row["market"] == "dates"):
        assert row["certificate"] < 2e-3
        assert row["log-likelihood per date"] > row["constant rate"]


def test_area_counts_ties_half() -> None:
    assert area([1.0, 2.0, 2.0, 3.0], [0, 0, 1, 1]) == pytest.approx(3.5 / 4)
