"""Room-mates from tables to a proven plan: one observed matching of 2,400, and known weights.

The job runs in a process of its own: learn 14 questions' 224 weights from one year's matching, with
certificate, odd-set proof and standard errors; then next year's probabilities of all pairs, and
its assignment with proof. Everything is compiled beforehand on sixty people. Its CPU time is held
against one rustworkx assignment of the same learned scores; its peak memory is the process's own.
People and pairs are the women of :func:`mlestruct.data.roommates`.

With MLESTRUCT_DATA, the weights learned from ``roommates_semisynthetic``'s first year are held
against the known ones, in units of the exact maximum likelihood estimate's standard errors, and
the second year's pairs are ranked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peak import peak
from benchmarks.blossom import by_rustworkx
from mlestruct import RoommateModel, data
from mlestruct.tables import Table, table

SEED, WARM, ALPHA = 0, 60, 1.0
SIZES = {False: 2400, True: 600}  # people; quick
FACTOR = 30.0  # times one assignment by rustworkx, at full size
GAP, MEMORY = 1e-9, 0.75  # relative; GB, at full size
AREA, SPREAD = 0.741, 3.0  # of the second year's pairs by score; standard errors
ERRORS = (0.092, 0.137, 0.097, 0.172, 0.067, 0.119, 0.071, 0.098, 0.093, 0.079, 0.087, 0.082,
          0.071, 0.054)  # fmt: skip
"""Of the exact maximum likelihood estimate from the first year, as the data's description has."""

Row = dict[str, Any]


def run(quick: bool) -> Iterator[Row]:
    """The job at full or quick size, then the data with known weights."""
    yield from job(SIZES[quick], quick)
    yield from known()


def row(workload: str, quantity: str, ours: Any, **rest: Any) -> Row:
    return {
        "benchmark": "roommates",
        "workload": workload,
        "quantity": quantity,
        "ours": ours,
    } | rest


def at_most(workload: str, quantity: str, ours: float, limit: float | None) -> Row:
    if limit is None:
        return row(workload, quantity, ours)
    return row(workload, quantity, ours, target=f"at most {limit:g}", met=ours <= limit)


def job(n: int, quick: bool) -> Iterator[Row]:
    """Fit, proofs, errors, probabilities and plan, beside rustworkx's assignment."""
    workload = f"one matching of {n}, next year's plan"
    with tempfile.TemporaryDirectory() as folder:
        for size in (WARM, n):
            np.savez(Path(folder) / f"{size}.npz", **_years(size))
        call = [sys.executable, "-m", "benchmarks.roommates", folder, str(WARM), str(n)]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        scores = np.load(Path(folder) / "scores.npy")
    square = np.zeros((n, n))
    square[np.triu_indices(n, 1)] = scores
    seconds, weight = by_rustworkx(square + square.T, time.process_time)
    assert abs(weight - found["objective"]) <= 1e-6 * abs(weight), "the plans differ"
    total = sum(found["seconds"].values())
    speed = {} if quick else {"target": FACTOR, "met": seconds / total >= FACTOR}
    yield row(
        workload,
        "CPU seconds in all",
        total,
        peer=seconds,
        peer_name="rustworkx, assignment alone",
        ratio=seconds / total,
        **speed,
    )
    for part, taken in found["seconds"].items():
        yield row(workload, f"CPU seconds: {part}", taken)
    yield at_most(workload, "fit's certified relative gap", found["gap"], GAP)
    yield at_most(workload, "plan's proven relative gap", found["plan"], GAP)
    proven = "odd sets proven" in found["polytope"]
    yield row(workload, "odd sets proven, both years", proven, target="yes", met=proven)
    yield at_most(workload, "peak memory, GB", found["memory"], None if quick else MEMORY)


def _years(n: int) -> dict[str, np.ndarray]:
    """Two years of n women each, and their pairs."""
    people, pairs, _ = data.roommates(2 * n, 2, SEED)
    women = people["gender"] == "F"
    theirs = np.isin(pairs["id_a"], people["id"][women])
    return {f"people.{k}": v[women] for k, v in people.items() if k != "gender"} | {
        f"pairs.{k}": v[theirs] for k, v in pairs.items()
    }


def work(path: Path) -> Row:
    """The whole job on stored tables, timed part by part."""
    stored = dict(np.load(path))
    people, pairs = (
        {k.split(".")[1]: v for k, v in stored.items() if k.startswith(name)}
        for name in ("people", "pairs")
    )
    first, second = ({k: v[people["year"] == year] for k, v in people.items()} for year in (1, 2))
    clock = [time.process_time()]
    model = RoommateModel(cohort="year", ordinal="q*", answers=True, alpha=ALPHA, tol=GAP)
    summary = model.fit(first, pairs).summary()
    assert summary.sure.units
    clock.append(time.process_time())
    chances = model.probabilities(second)
    clock.append(time.process_time())
    plan = model.assign(second)
    clock.append(time.process_time())
    (pairing,) = plan.pairings
    np.save(path.parent / "scores.npy", pairing.scores)
    proofs = (model.certificate_, pairing.beliefs.certificate)
    assert len(chances["probability"]) == pairing.structure.size
    return {
        "seconds": dict(
            zip(("fit, proof, errors", "probabilities", "plan"), np.diff(clock), strict=True)
        ),
        "gap": model.certificate_.relative,
        "plan": plan.gap / max(1.0, abs(plan.objective)),
        "objective": plan.objective,
        "polytope": min((proof.polytope for proof in proofs), key=lambda p: "proven" in p),
        "memory": peak(),
    }


def known() -> Iterator[Row]:
    """Weights against the known ones, and the second year's pairs ranked."""
    workload, folder = "known weights, 284 + 194 people", os.environ.get("MLESTRUCT_DATA")
    if not folder:
        yield row("known weights: skipped without MLESTRUCT_DATA", "", None)
        return
    place = Path(folder) / "roommates_semisynthetic"
    people, pairs = table(place / "students.csv"), table(place / "pairings.csv")
    truth = table(place / "questions.csv")["true_weight"]
    model = RoommateModel(same="gender", ordinal="q*").fit(*_year(people, pairs, 1))
    worst = np.abs(model.coef_ - truth) / ERRORS
    yield at_most(workload, "largest |weight − truth|, in errors", float(worst.max()), SPREAD)
    found = model.evaluate(*_year(people, pairs, 2))
    met = found.auc["score"] >= AREA
    yield row(
        workload,
        "AUC of next year's pairs by score",
        found.auc["score"],
        target=f"at least {AREA:g}",
        met=met,
    )
    yield row(workload, "AUC of next year's pairs by marginal", found.auc["marginal"])


def _year(people: Table, pairs: Table, year: int) -> tuple[Table, Table]:
    """The pairs of a year, and the people in them: the table of people has no years."""
    mine = pairs.rows(pairs["year"] == year)
    there = np.isin(people["id"], np.concatenate([mine["id_a"], mine["id_b"]]))
    return people.rows(there), mine


if __name__ == "__main__":
    where, *sizes = sys.argv[1:]
    for size in sizes:
        answer = work(Path(where) / f"{size}.npz")
    print(json.dumps(answer))
