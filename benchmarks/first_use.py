"""First answers from an empty home, a process for each job, and the same on 20 times the data.

CPU seconds of everything the process does, its start and imports included. Nothing is compiled or
kept between processes, so a second process takes as long as the first.
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

MOST = 1.2  # CPU s to the first answer
FASTER = 0.9  # of the first process's time: a second one below it would profit from something kept


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """Every job; ``quick`` leaves the two out that take longest."""
    for name, job in _first_jobs.JOBS.items():
        if quick and name in ("roommate", "grid"):
            continue
        with tempfile.TemporaryDirectory() as home:
            first, second = (in_a_process(name, home) for _ in range(2))
        row = {"benchmark": "first_use", "workload": (job.__doc__ or name).partition(".")[0]}
        took, again = first["cpu"]["small"], second["cpu"]["small"]
        limit = {"target": f"<= {MOST}", "met": took <= MOST}
        yield {**row, "quantity": "CPU s to the first answer", "ours": took, **limit}
        row["workload"] = name
        same = {"ratio": again / took, "target": f">= {FASTER}", "met": again >= FASTER * took}
        yield {**row, "quantity": "CPU s, second run", "ours": again, "peer": took, **same}
        for quantity, seconds in (
            ("wall s to the first answer", first["wall"]["small"]),
            ("CPU s, 20 ×, warm", first["cpu"]["again"]),
        ):
            yield {**row, "quantity": quantity, "ours": seconds}


def in_a_process(name: str, home: str) -> Any:
    """Return the times that a job printed."""
    root = Path(_first_jobs.__file__).parents[1]
    paths = os.pathsep.join((str(root), str(root / "oracles")))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    answer = subprocess.run(
        [sys.executable, "-P", _first_jobs.__file__, name],
        env={**os.environ, **threads, "PYTHONPATH": paths, "HOME": home},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)
