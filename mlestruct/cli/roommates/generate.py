"""``mlestruct roommates generate``: tables to try the other commands on, at any size."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_json, say, tell, whole
from mlestruct.cli.roommates.common import add_force, new_file


def add(parts: Any) -> None:
    """The command's options; the defaults are the shipped example's."""
    parser = parts.add_parser("generate", help="write generated people and pairs")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument(
        "--people", type=even, default=200, metavar="N", help="of each year (default: 200)"
    )
    parser.add_argument("--years", type=whole(1), default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--seed", type=whole(0), default=0, metavar="N", help="another one, other students"
    )
    add_force(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def even(text: str) -> int:
    """An even number of people, so that all can be paired."""
    number = whole(2)(text)
    if number % 2:
        raise argparse.ArgumentTypeError(f"needs an even number, so that all have a pair: {text}")
    return number


def run(given: argparse.Namespace) -> int:
    """Write roommates_people.csv and roommates_pairs.csv."""
    from pathlib import Path

    from mlestruct import data
    from mlestruct.tables import write_csv

    folder = Path(given.folder)
    paths = [folder / f"roommates_{name}.csv" for name in ("people", "pairs")]
    for path in paths:
        new_file(str(path), given.force)
    people, pairs, _ = data.roommates(given.people, given.years, given.seed)
    folder.mkdir(parents=True, exist_ok=True)
    for path, columns in zip(paths, (people, pairs), strict=True):
        write_csv(path, columns)
        say(given, f"wrote {path}")
    tell(given, files=paths)
    return 0
