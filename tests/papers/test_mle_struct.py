"""The MLE-Struct paper's experiments, briefly: what is claimed of the full runs holds here too."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from papers._run import Row
from papers.mle_struct.denoising import LAMS, STANDARD, denoising
from papers.mle_struct.density import density
from papers.mle_struct.horses import LEARNERS, MLE_STRUCT, horses, horses_80
from papers.mle_struct.house import (
    THIRDS,
    contexts,
    hotel,
    house,
    house_frames,
    pairs_of,
    published,
)
from papers.mle_struct.inference import LEVELS, crossing, inference
from papers.mle_struct.markets import markets
from papers.mle_struct.permanents import permanents
from papers.mle_struct.planar import planar
from papers.mle_struct.roommates import PUBLISHED, roommates
from papers.mle_struct.rules import rules, sweeps

Printed = Callable[..., list[Row]]
KEYS = {"learner", "rho", "gap", "test_error", "nll", "lam", "certificate", "seconds"}


def test_house_at_gap_50(shared_data: Path, printed: Printed) -> None:
    rows = printed(house, shared_data)
    assert {row["learner"] for row in rows} == {"mle_struct", "ssvm", "none", "sinkhorn"}
    assert all(set(row) >= KEYS for row in rows)
    for row in rows:
        uncertified = row["learner"] in ("none", "sinkhorn")
        assert row["certificate"] is None if uncertified else row["certificate"] < 1e-3
    (half,) = (row for row in rows if row["rho"] == 0.5)
    assert half["test_error"] <= 0.017 + 0.03
    assert half["nll"] <= 0.052


def test_no_rule_has_less_validation_loss_than_the_least(
    shared_data: Path, printed: Printed
) -> None:
    least, *others, _ = printed(rules, shared_data)
    known = [row["validation nll"] for row in others if row["validation nll"] is not None]
    assert len(known) == len(others) - 1
    assert min(known) >= least["validation nll"]
    assert others[1]["lam per pair"] >= least["lam per pair"]


def test_pairs_of_frames_are_the_published_ones(shared_data: Path) -> None:
    known = house_frames(shared_data / "cmu_house")
    with (shared_data / "cmu_house" / "pairs.csv").open() as file:
        listed = Counter((int(row["gap"]), row["split"]) for row in csv.DictReader(file))
    for gap, split in product(range(0, 100, 30), THIRDS):
        assert len(pairs_of(known, gap, split).truth) == listed[gap, split]


def test_shape_contexts_are_the_published_counts(shared_data: Path) -> None:
    """So those of a sequence that is published without are what its authors used."""
    known = np.load(shared_data / "cmu_house" / "house.npz")
    found = np.array([contexts(points) for points in known["points"]])
    np.testing.assert_array_equal(found, known["features"])


def test_the_hotel_has_its_own_published_column(
    shared_data: Path, printed: Printed, tmp_path: Path
) -> None:
    """Its landmarks' form, made of the house's: errors are not held to the house's."""
    (tmp_path / "cmu_hotel").mkdir()
    points = np.load(shared_data / "cmu_house" / "house.npz")["points"][:101]
    marked = np.empty(101, dtype=object)
    marked[:] = [one.T for one in points]
    savemat(tmp_path / "cmu_hotel" / "cmum.mat", {"CMUM": {"hotel": {"XTs": marked}}})
    rows = printed(hotel, tmp_path)
    said = {(row["learner"], row["rho"]): row["published"] for row in rows}
    assert said == {
        ("mle_struct", 0.5): 0.061, ("ssvm", None): None, ("none", None): None,
        ("sinkhorn", None): None, ("mle_struct", 1.0): 0.061,
    }  # fmt: skip
    assert published(111, "mle_struct", 0.5, 50) == 0.017
    assert published(77, "mle_struct", 0.5, 50) is None


def test_permanents_keep_the_sandwich(printed: Printed) -> None:
    for row in printed(permanents):
        assert row["violations"] == 0
        assert row["worst gap"] < 1e-6
        assert row["likelihood, half"] < 0


def test_planar_weights_are_certified(printed: Printed) -> None:
    rows = printed(planar)
    assert {row["learner"] for row in rows} == {"exact", "oracle"}
    assert all(row["worst gap"] <= 1e-4 for row in rows)


def test_inference_reaches_every_level(printed: Printed) -> None:
    times = [row for row in printed(inference) if row["method"] != "perturb and MAP"]
    assert all(row[f"s to {level:g}"] is not None for row in times for level in LEVELS)


def test_rounds_and_sweeps_are_counted(printed: Printed) -> None:
    for row in printed(crossing):
        assert row["rounds"] > row["sweeps"] >= 1
        assert row["s of Frank-Wolfe"] > 0
        assert row["s of messages in logarithms"] > 0


def test_sinkhorn_is_the_library_s_likelihood(shared_data: Path, printed: Printed) -> None:
    ours, theirs = printed(sweeps, shared_data)
    assert theirs["test nll"] == pytest.approx(ours["test nll"], abs=1e-3)


def test_density_gains_from_couplings(shared_data: Path, printed: Printed) -> None:
    alone, *rest = printed(density, shared_data)
    assert max(row["held out, exact"] for row in rest) > alone["held out, exact"]
    for row in [alone, *rest]:
        assert row["held out, surrogate"] <= row["held out, exact"] + 1e-6
        assert row["certificate"] < 1e-3


def test_markets_beat_the_obvious_feature(shared_data: Path, printed: Printed) -> None:
    rows = printed(markets, shared_data)
    chess = [row for row in rows if row["market"] == "swiss"]
    likely = [row for row in chess if row["rho"]]  # max-margin finds nothing better than 0 here
    assert all(row["AUC"] > row["AUC, score apart alone"] for row in likely)
    assert all(row["certificate"] <= 1e-5 for row in likely)
    for row in (row for row in rows if row["market"] == "dates"):
        assert row["certificate"] < 2e-3
        assert row["log-likelihood per date"] > row["constant rate"]


def test_denoising_comes_near_the_certified_optimum(printed: Printed) -> None:
    rows = printed(denoising)
    sets = [row for row in rows if "optimum" in row]
    assert len(sets) == 2 * 4 * len(LAMS)
    for row in sets:
        assert row["s to 0.01"] is not None
        if row["method"] == STANDARD:
            assert row["certificate"] is None
        else:
            assert row["certificate"] < 1e-6
        assert row["test error"] < 0.1
    assert all(row["times as long to 0.01"] > 0 for row in rows if "against" in row)


def test_roommates_are_ranked_and_intervals_drawn(printed: Printed) -> None:
    rows = printed(roommates)
    by_name = {row["learner"]: row for row in rows if "learner" in row}
    assert set(by_name) == {*PUBLISHED, "frank_wolfe"}
    assert by_name["mle_struct"]["certificate"] < 1e-9
    assert by_name["mle_struct"]["AUC"] > 0.5
    total = rows[-1]
    assert total["question"] == "all"
    assert total["contrasts"] > 2 * by_name["mle_struct"]["people"]
    assert total["intervals"] == 0  # refused: far fewer pairs than weights


def test_horses_are_found(shared_data: Path, printed: Printed) -> None:
    ground, *rest = printed(horses, shared_data)
    assert [row["method"] for row in rest] == list(LEARNERS)
    assert min(row["test error"] for row in rest) < ground["test error"]
    for row in rest:
        assert row["s to 0.1"] <= row["s to 0.01"] <= row["seconds"]


def test_horses_at_80_are_found_by_both_routes(shared_data: Path, printed: Printed) -> None:
    ground, *rest = printed(horses_80, shared_data)
    assert tuple(row["method"] for row in rest) == MLE_STRUCT
    assert min(row["test error"] for row in rest) < ground["test error"]
