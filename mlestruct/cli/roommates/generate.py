"""``mlestruct roommates generate``: tables to try the other commands on, at any size."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(parts: Any) -> None:
    """The command's options; the defaults are the shipped example's."""
    parser = parts.add_parser("generate", help="write generated people and pairs")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--people", type=int, default=200, help="of each year (default: 200)")
    parser.add_argument("--years", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write roommates_people.csv and roommates_pairs.csv."""
    from mlestruct import data
    from mlestruct.tables import write_csv

    people, pairs, _ = data.roommates(given.people, given.years, given.seed)
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in (("people", people), ("pairs", pairs)):
        write_csv(folder / f"roommates_{name}.csv", columns)
        print(f"wrote {folder / f'roommates_{name}.csv'}")
    return 0
