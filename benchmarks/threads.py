"""One cohort on several threads: wall seconds of a fit and of next year's probabilities.

The fit of :mod:`benchmarks.roommates` with one thread and with two, in turns, in a process of its
own with one BLAS thread; the least time of each counts, and every answer has to have the same bits.
Wall clocks need idle cores: the load of the machine stands beside the times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.roommates import ALPHA, GAP, WARM, _years
from mlestruct import RoommateModel

SIZES, TURNS = {False: 2400, True: 900}, {False: 5, True: 2}
THREADS, SHARE = 2, 0.6  # of one thread's wall time, at full size

Row = dict[str, Any]


def run(quick: bool) -> Iterator[Row]:
    """Ours is the time of two threads, the peer's that of one."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    call = [sys.executable, "-m", "benchmarks.threads", str(SIZES[quick]), str(TURNS[quick])]
    env = {**os.environ, **dict.fromkeys(names, "1")}
    found = json.loads(subprocess.run(call, capture_output=True, check=True, env=env).stdout)
    workload = f"one matching of {SIZES[quick]}, load {found['load']:.1f}"
    for part, (one, several) in found["wall"].items():
        goal = {"target": f"at most {SHARE:g}", "met": several <= SHARE * one}
        yield {
            "benchmark": "threads",
            "workload": workload,
            "quantity": f"wall s, {part}, {THREADS} threads",
            "ours": several,
            "peer": one,
            "peer_name": "one thread",
            "ratio": several / one,
        } | (goal if part == "fit" and not quick else {})
    for quantity, value in (("CPU s, fit, over one thread's", found["cpu"]),):
        yield {
            "benchmark": "threads",
            "workload": workload,
            "quantity": quantity,
            "ours": value,
        }
    yield {
        "benchmark": "threads",
        "workload": workload,
        "quantity": "the same bits",
        "ours": found["same"],
        "target": "yes",
        "met": found["same"],
    }


def work(n: int, turns: int) -> Row:
    """Everything in turns, after a small cohort and one of the size that compile."""
    answers, wall, cpu = set(), {"fit": ([], []), "probabilities": ([], [])}, ([], [])
    for size, times in ((WARM, 1), (n, turns)):
        stored = _years(size)
        for _ in range(times):
            for which, threads in enumerate((1, THREADS)):
                taken, used, answer = _once(stored, threads)
                if size == n:
                    answers.add(answer)
                    cpu[which].append(used)
                    for part, seconds in taken.items():
                        wall[part][which].append(seconds)
    return {
        "wall": {part: [min(times) for times in both] for part, both in wall.items()},
        "cpu": min(cpu[1]) / min(cpu[0]),
        "load": os.getloadavg()[0],
        "same": len(answers) == 1,
    }


def _once(stored: dict[str, np.ndarray], threads: int) -> tuple[dict[str, float], float, bytes]:
    """Wall seconds of the parts, CPU seconds of the fit, and all that was found, as bytes."""
    people, pairs = (
        {k.split(".")[1]: v for k, v in stored.items() if k.startswith(name)}
        for name in ("people", "pairs")
    )
    first, second = ({k: v[people["year"] == year] for k, v in people.items()} for year in (1, 2))
    model = RoommateModel(
        cohort="year", ordinal="q*", answers=True, alpha=ALPHA, tol=GAP, workers=threads
    )
    began, used = time.perf_counter(), time.process_time()
    model.fit(first, pairs)
    fitted, used = time.perf_counter(), time.process_time() - used
    chances = model.probabilities(second)
    taken = {"fit": fitted - began, "probabilities": time.perf_counter() - fitted}
    found = (model.coef_, chances["probability"], np.array(model.certificate_.gap))
    contrasts = [(c.estimate, c.low, c.high) for c in model.summary().contrasts]
    return taken, used, b"".join(one.tobytes() for one in (*found, np.array(contrasts)))


if __name__ == "__main__":
    print(json.dumps(work(*map(int, sys.argv[1:]))))
