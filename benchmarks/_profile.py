"""Where our side's time goes, workload by workload."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mlestruct_oracles

import mlestruct

PACKAGES = [Path(package.__file__).parent for package in (mlestruct, mlestruct_oracles)]
TOP = 5
Place = tuple[str, int, str]


def profiled(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Instead of a benchmark's rows, one per workload: our functions that took most of its time."""
    spent: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    pending = iter(rows)
    while True:
        profile = cProfile.Profile(time.process_time)
        row = profile.runcall(next, pending, None)
        if row is None:
            break
        spent[row["benchmark"], row["workload"]].update(shares(pstats.Stats(profile)))
    for (benchmark, workload), seconds in spent.items():
        whole = max(seconds.total(), 1e-9)
        parts = [f"{taken / whole:.0%} {name}" for name, taken in seconds.most_common(TOP)]
        yield {
            "benchmark": benchmark,
            "workload": workload,
            "quantity": "CPU s: " + ", ".join(parts),
            "ours": whole,
        }


def shares(stats: pstats.Stats) -> Counter[str]:
    """Seconds in each of our functions, the kernels and foreign functions it calls included."""
    found: Counter[str] = Counter()
    for place, (_, _, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if _name(place):
            found[_name(place)] += own
        elif "numba" not in place[0]:  # that is compiling
            for caller, (_, _, _, below) in callers.items():
                if _name(caller):
                    found[_name(caller)] += below
    return found


def _name(place: Place) -> str:
    """``folder/module.py:function`` where it is ours, else nothing."""
    path, _, function = place
    for package in PACKAGES:
        if package in Path(path).parents:
            return f"{Path(path).relative_to(package)}:{function}"
    return ""
