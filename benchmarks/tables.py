"""Messy tables: how many are read right, and how long a table of 5,000 people takes to read.

The CSV files of ``benchmarks._messy`` that hold a readable table of people: right is every name and
the cells of five columns, as text or as the number that they spell. Peers read with what they find
by themselves; each is skipped where it is not installed.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _messy as messy
from mlestruct.tables import read

Row = dict[str, Any]
COMPARED = ("id", "year", "gender", "q1", "hours")
REPEATS = 84  # of the clean rows, for time


def run(quick: bool) -> Iterator[Row]:
    """Files read right, then CPU seconds."""
    clean = messy.clean()
    cases = [case for case in messy.texts() if not case.says and case.like == "clean"]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, case in enumerate(cases):
            place = Path(folder) / str(number)
            place.mkdir()
            files.append(place / case.write(place, clean).people)
        large = Path(folder) / "large.csv"
        large.write_text(messy.as_text([clean.people[0], *clean.people[1:] * REPEATS], ";", ","))
        ours, seconds = _right(_ours, files, clean), _seconds(_ours, large)
        yield _row(f"{len(files)} messy CSV files", "read right", ours)
        yield _row(f"{80 * REPEATS} people", "CPU seconds", seconds)
        for name, peer in PEERS.items():
            try:
                right = _right(peer, files, clean)
            except ModuleNotFoundError:
                continue
            yield _row(f"{len(files)} messy CSV files", "read right", ours, right, name)
            spent = _seconds(peer, large)
            yield _row(f"{80 * REPEATS} people", "CPU seconds", seconds, spent, name)


def _row(workload: str, quantity: str, ours: Any, peer: Any = None, name: str | None = None) -> Row:
    found = {"benchmark": "tables", "workload": workload, "quantity": quantity, "ours": ours}
    return found if name is None else {**found, "peer": peer, "peer_name": name}


def _right(
    reader: Callable[[Path], dict[str, list[Any]]], files: Sequence[Path], clean: messy.Clean
) -> int:
    """How many files give the clean table's columns."""
    count = 0
    for path in files:
        try:
            found = reader(path)
            count += all(_same(found[name], clean, name) for name in COMPARED)
        except ModuleNotFoundError:
            raise
        except Exception:  # a peer may refuse as it likes
            continue
    return count


def _same(column: Sequence[Any], clean: messy.Clean, name: str) -> bool:
    expected = [row[clean.column(name)] for row in clean.people[1:]]
    return len(column) == len(expected) and all(map(_equal, column, expected))


def _equal(cell: Any, expected: Any) -> bool:
    if isinstance(expected, str):
        return str(cell) == expected
    try:
        return float(cell) == expected
    except (TypeError, ValueError):
        return False


def _seconds(reader: Callable[[Path], dict[str, list[Any]]], path: Path) -> float:
    """Of a second reading; infinite where the file is refused."""
    try:
        reader(path)
        start = time.process_time()
        reader(path)
    except Exception:
        return float("inf")
    return time.process_time() - start


def _ours(path: Path) -> dict[str, list[Any]]:
    found = read(path, COMPARED)
    return {name: found[name].tolist() for name in found.names}


def _sniffer(path: Path) -> dict[str, list[Any]]:
    text = path.read_text(encoding="utf-8")
    head, *rows = csv.reader(text.splitlines(True), csv.Sniffer().sniff(text))
    return {name: [row[k] for row in rows] for k, name in enumerate(head)}


def _clevercsv(path: Path) -> dict[str, list[Any]]:
    import clevercsv

    head, *rows = clevercsv.read_table(path)
    return {name: [row[k] for row in rows] for k, name in enumerate(head)}


def _pandas(path: Path) -> dict[str, list[Any]]:
    import pandas as pd

    return pd.read_csv(path, sep=None, engine="python").to_dict("list")


def _polars(path: Path) -> dict[str, list[Any]]:
    import polars as pl

    return pl.read_csv(path).to_dict(as_series=False)


PEERS = {
    "csv.Sniffer": _sniffer,
    "clevercsv": _clevercsv,
    "pandas sep=None": _pandas,
    "polars": _polars,
}
