"""Rows of this checkout beside those of another one: in turn, row by row, medians of a few turns.

Each side is a process that makes its next row when it is asked to, so that both sides meet the same
load. The other folder runs its own benchmarks with its own library: by its ``.venv`` if it has one,
else by this interpreter with the folder first on the path.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

Row = dict[str, Any]
ALLOWED = 0.05
MEASURED = r"\d\.?\d*e[-+]\d+"
HERE = Path(__file__).resolve().parents[1]

PEAK = "peak memory, GB"
ROWS = """
import json, sys
from benchmarks.__main__ import results
out, sys.stdout = sys.stdout, sys.stderr
def made():
    yield from results({name!r}, {quick})
    held = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    found = int(held.split()[1]) * 1024 / 1e9
    yield {{"workload": "the whole run", "quantity": {peak!r}, "ours": found}}
for turn in range({turns}):
    rows = made()
    while sys.stdin.readline():
        row = next(rows, None)
        print(json.dumps(row, default=float), file=out, flush=True)
        if row is None:
            break
"""


class Failed(RuntimeError):
    """A side's benchmark ended before its last row; ``ours`` or the other's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"the benchmark of {folder.name} ended before its last row")
        self.ours = folder == HERE


class Side:
    """One checkout's benchmark, which makes a row whenever it is asked for one."""

    def __init__(self, folder: Path, name: str, quick: bool, turns: int) -> None:
        self.folder = folder
        own = folder / ".venv" / "bin" / "python"
        program = ROWS.format(name=name, quick=quick, turns=turns, peak=PEAK)
        paths = [str(folder), str(folder / "oracles")]
        self.process = subprocess.Popen(
            [
                str(own) if own.exists() else sys.executable,
                "-c",
                ROWS.format(peak=PEAK, **locals()),
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def next(self) -> Row | None:
        """The next row; None at the end of a turn."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Failed(self.folder)
        found: Row | None = json.loads(answer)
        return found

    def end(self) -> None:
        """Ends this process only."""
        self.process.kill()
        self.process.communicate()


def against(name: str, quick: bool, folder: Path, turns: int) -> Iterator[Row]:
    """A row for every row of both sides; ``met`` where it is a time, a rate or peak memory."""
    sides = [Side(where, name, quick, turns) for where in (HERE, folder.resolve())]
    try:
        runs = [_turn(sides) for _ in range(turns)]
    finally:
        for side in sides:
            side.end()
    ours, theirs = (list(zip(*rows, strict=True)) for rows in zip(*runs, strict=True))
    for one, other in _together(ours, theirs):
        yield compared(name, one, other, folder.name)


def _turn(sides: list[Side]) -> list[list[Row]]:
    """All rows of both sides, one of each in turn."""
    rows: list[list[Row]] = [[] for _ in sides]
    going = list(range(len(sides)))
    while going:
        for k in list(going):
            row = sides[k].next()
            if row is None:
                going.remove(k)
            else:
                rows[k].append(row)
    return rows


def _together(
    ours: list[tuple[Row, ...]], theirs: list[tuple[Row, ...]]
) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """Rows of one name; measured numbers in it or a quantity (1.3e-07) do not tell rows apart."""
    known = {_key(rows[0]): rows for rows in theirs}
    return ((rows, known[_key(rows[0])]) for rows in ours if _key(rows[0]) in known)


def _key(row: Row) -> tuple[str, str]:
    workload, quantity = row["workload"], row.get("quantity") or ""
    return re.sub(MEASURED, "#", workload), re.sub(MEASURED, "#", quantity)


def compared(name: str, ours: Iterable[Row], theirs: Iterable[Row], peer: str) -> Row:
    """Medians, their ratio, and whether ours is at most 5 % worse, or its own scatter."""
    one, other = list(ours), list(theirs)
    row = {key: one[0].get(key) for key in ("workload", "quantity")}
    mine, its = ([r.get("ours") for r in rows] for rows in (one, other))
    if not all(isinstance(value, int | float) for value in [*mine, *its]):
        return {"benchmark": name, **row}
    middle, before = float(median(mine)), float(median(its))
    scatter = max(_scatter(mine), _scatter(its))
    ratio = middle / before if before else None
    worse = _worse(str(row["quantity"]), ratio)
    return {
        "benchmark": name,
        **row,
        "ours": middle,
        "peer": before,
        "peer_name": peer,
        "ratio": ratio,
        "target": f"worse <= {max(ALLOWED, scatter):.0%}{_peers(one, other)}",
        "met": None if worse is None else worse <= max(ALLOWED, scatter),
    }


def _peers(ours: list[Row], theirs: list[Row]) -> str:
    """What the rows' own peer took here for what it took there: questions of fits may differ."""
    names = {row.get("peer_name") for row in (*ours, *theirs)}
    mine, its = ([row.get("peer") for row in rows] for rows in (ours, theirs))
    if len(names) > 1 or not all(isinstance(one, int | float) and one for one in (*mine, *its)):
        return ""
    return f"; {names.pop()} {median(mine) / median(its):.2f} ×"


def _scatter(values: list[float]) -> float:
    """Half the span of the middle values over their median; a single turn has none."""
    middle, inner = median(values), sorted(values)[1:-1] or [median(values)]
    return float((inner[-1] - inner[0]) / (2 * middle)) if middle else 0.0


def _worse(quantity: str, ratio: float | None) -> float | None:
    """How much worse ours is; None where the quantity is no time, rate or peak memory."""
    if ratio is None:
        return None
    if quantity.endswith("/s"):
        return 1 / ratio - 1
    if quantity == PEAK:
        return ratio - 1
    return ratio - 1 if re.search(r"(^|\s)(s|ms|µs|us|seconds)\b", quantity) else None
