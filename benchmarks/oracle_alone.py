"""Learning with nothing but an oracle, to certified relative gaps of 1e-1, 1e-2 and 1e-3.

Every method runs in a process of its own, one after the other: the library's default, the papers'
block-coordinate Frank-Wolfe with exact line search, the direct route to 1e-4 where the library has
messages, and the default of an earlier checkout, the folder ``MLESTRUCT_BEFORE``. Some are learned
by max-margin as well, with and without the centre. Calls are per example; times are of the
processor, kernels compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._oracle_alone import DIRECT, LEVELS, MARGIN, MOST, WORK

Row = dict[str, Any]
HERE = Path(__file__).resolve().parents[1]
SCRIPT = HERE / "benchmarks" / "_oracle_alone.py"
QUICK = ("12 grids 12×12, α = .1", "knapsack of 12, own solver")
# (workload, level) → most calls, calls against the earlier default, CPU against the direct route's
GRID = {1e-2: (110.0, None, 3.0), 1e-3: (300.0, None, 12.0)}
AIMS: dict[str, dict[float, tuple[float | None, float | None, float | None]]] = {
    **dict.fromkeys(tuple(WORK)[:3], GRID),
    "20 grids 20×20, α = 1": {1e-2: (100.0, None, 2.5)},
    "chains 20 × 10 states, M = 50": {1e-2: (None, 1.05, None)},
    "bipartite n=30, peaked": {1e-2: (None, 0.8, None), 1e-3: (None, 0.8, None)},
    "bipartite n=30, diffuse": {1e-2: (None, 1.05, None), 1e-3: (None, 1.05, None)},
    "general n=20": {1e-2: (None, 0.8, None), 1e-3: (None, 0.8, None)},
    "knapsack of 12, own solver": {1e-2: (None, 0.7, None)},
    "knapsack of 30, own solver": {1e-2: (None, 0.35, None)},
    "TSP of 12 cities, Held-Karp": {1e-2: (None, 0.6, None)},
    "alignment, own program, blind": {1e-2: (None, 1.05, None)},
    "the same, declared as Paths": {1e-2: (350.0, None, None)},
}


def run(quick: bool) -> Iterator[Row]:
    """A row per workload, level and method; ``quick``: two workloads, fewer passes."""
    for name in QUICK if quick else WORK:
        most = 100 if quick else MOST
        found = {"ours": _ran(name, "ours", most, HERE)}
        found["bcfw"] = _ran(name, "bcfw", most, HERE)
        if name in DIRECT:
            found["direct"] = _ran(name, "direct", most, HERE)
        before = os.environ.get("MLESTRUCT_BEFORE")
        if before is not None:
            found["before"] = _ran(name, "ours", most, Path(before))
        yield from _rows(name, found)
        if name in MARGIN and not quick:
            held, free = (_ran(name, method, most, HERE) for method in ("margin", "margin, free"))
            for level in LEVELS:
                ours, peer = _reached(held, level)[0], _reached(free, level)[0]
                yield _row(name, f"max-margin: calls to {level:g}", ours, peer, "no centre")


def _ran(name: str, method: str, rounds: int, folder: Path) -> dict[str, Any]:
    """By a checkout's own library; by this file's script, alone on a core.

    BLAS gets one thread: others spin while they wait, which the processor's clock counts.
    """
    paths = os.pathsep.join([str(folder), str(folder / "oracles")])
    done = subprocess.run(
        [sys.executable, str(SCRIPT), name, method, str(rounds)],
        env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}, cwd=folder,
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _rows(name: str, found: dict[str, dict[str, Any]]) -> Iterator[Row]:
    for level in LEVELS:
        calls, ratio, direct = AIMS.get(name, {}).get(level, (None, None, None))
        ours = _reached(found["ours"], level)
        if calls is not None:
            yield _row(name, f"calls to {level:g}", ours[0], limit=calls)
        for method in ("bcfw", "before"):
            if method in found:
                peer = _reached(found[method], level)
                most = ratio if method == "before" else None
                yield _row(name, f"calls to {level:g}", ours[0], peer[0], method, most)
                yield _row(name, f"CPU s to {level:g}", ours[1], peer[1], method)
        if "direct" in found:
            peer = _reached(found["direct"], 1e-4)
            yield _row(name, f"CPU s to {level:g}", ours[1], peer[1], "direct, to 1e-4", direct)
        outside = (ours[1] - ours[2]) / max(ours[2], 1e-9)
        yield _row(name, f"time outside the solver / in it, to {level:g}", outside)


def _reached(found: dict[str, Any], level: float) -> tuple[float, float, float]:
    """(calls, CPU s, in the solver); infinite where it was not reached."""
    calls, seconds, asking = found["reached"].get(str(level), [float("inf")] * 3)
    return calls, seconds, asking


def _row(
    workload: str,
    quantity: str,
    ours: float,
    peer: float | None = None,
    peer_name: str | None = None,
    most: float | None = None,
    limit: float | None = None,
) -> Row:
    both = peer is not None and max(ours, peer) < float("inf")
    ratio = ours / peer if both and peer else None
    target, met = (f"≤ {limit:g}", ours <= limit) if limit is not None else (None, None)
    if most is not None and peer is not None:
        target, met = f"ratio ≤ {most:g}", ours <= most * peer and ours < float("inf")
    return {
        "benchmark": "oracle_alone", "workload": workload, "quantity": quantity, "ours": ours,
        "peer": peer, "peer_name": peer_name, "ratio": ratio, "target": target, "met": met,
    }  # fmt: skip
