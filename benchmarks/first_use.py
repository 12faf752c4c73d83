"""First answers on an empty kernel cache, a process per job, and the first on 20 times the data.

CPU seconds of everything the process does, its start, imports and compiling included. The larger
problem follows in the same process and is solved twice: what its first solution takes beyond its
second is compiling, too, and counts. The environment variable MLESTRUCT_BEFORE names another
checkout, whose jobs run in turn with ours; targets are shares of commit 1892acb's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import _first_jobs

HERE = Path(_first_jobs.__file__).parents[1]
SHARES = {"roommate": 0.17, "matching": 0.17, "grid": 0.26, "solver": 0.24, "sequence": 0.38}


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """Every job; ``quick`` leaves the two out that take longest."""
    before = os.environ.get("MLESTRUCT_BEFORE")
    for name, share in SHARES.items():
        if quick and name in ("roommate", "grid"):
            continue
        ours, then = first(name, HERE), first(name, Path(before)) if before else None
        ratio = ours["compiled"] / then["compiled"] if then else None
        yield {
            "benchmark": "first_use",
            "workload": (_first_jobs.JOBS[name].__doc__ or name).partition(".")[0],
            "quantity": "CPU s to both first answers",
            "ours": ours["compiled"],
            "peer": then and then["compiled"],
            "peer_name": before and "the other checkout",
            "ratio": ratio,
            "target": f"ratio ≤ {share}",
            "met": None if ratio is None else ratio <= share,
        }
        for quantity in ("wall s to the first answer", "CPU s, second run", "CPU s, 20 ×, warm"):
            yield {
                "benchmark": "first_use",
                "workload": name,
                "quantity": quantity,
                "ours": ours[quantity],
                "peer": then and then[quantity],
            }


def first(name: str, root: Path) -> dict[str, float]:
    """A job's figures with the checkout at ``root``."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (_process(name, root, folder) for _ in range(2))
    compiled = cold["cpu"]["small"] + cold["cpu"]["large"] - cold["cpu"]["again"]
    return {
        "compiled": compiled,
        "wall s to the first answer": cold["wall"]["small"],
        "CPU s, second run": warm["cpu"]["small"],
        "CPU s, 20 ×, warm": cold["cpu"]["again"],
    }


def _process(name: str, root: Path, folder: str) -> Any:
    paths = os.pathsep.join((str(root), str(root / "oracles")))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    answer = subprocess.run(
        [sys.executable, "-P", _first_jobs.__file__, name],
        env={**os.environ, **threads, "PYTHONPATH": paths},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)
