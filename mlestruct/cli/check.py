"""``mlestruct check``: what is in tables of people and pairs, and what is wrong with them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mlestruct.cli.options import (
    add_columns,
    add_json,
    add_reading,
    add_rules,
    aligned,
    opened,
    rules,
)

if TYPE_CHECKING:
    from mlestruct.tables import Table


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("check", help="types, gaps, duplicates and faults of tables")
    parser.add_argument("tables", nargs="+", metavar="TABLE.csv", help="people, pairs, others")
    add_columns(parser)
    add_rules(parser)
    add_reading(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """A survey and the faults of every table; 1 if there are faults."""
    from mlestruct.report.faults import group_labels
    from mlestruct.report.survey import Surveyed, survey

    tables = [opened(given, path) for path in given.tables]
    group: dict[Any, str] = {}
    for read in tables:
        if given.id in read.names:
            labels = group_labels(read, _groups(given))
            group.update(zip(read[given.id].tolist(), labels, strict=True))
    count = 0
    for path, read in zip(given.tables, tables, strict=True):
        print(f"{path}: {len(read)} rows, {len(read.names)} columns")
        print(aligned(Surveyed._fields, survey(read)))
        for fault in _faults(read, given, group):
            count += 1
            print(f"  ! {fault}")
    print(f"faults found: {count}" if count else "no faults found")
    return 1 if count else 0


def _faults(read: Table, given: argparse.Namespace, group: dict[Any, str]) -> Iterator[str]:
    from mlestruct.report import faults

    yield from faults.faults(read)
    if given.id in read.names:
        asked = rules(given, read[given.id].tolist())
        yield from faults.faults_of_people(read, given.id, _groups(given))
        if asked["forbid"] or asked["require"]:
            asked.pop("consent")
            yield from faults.faults_of_rules(read, given.id, _groups(given), **asked)
    if set(given.partners) <= set(read.names):
        yield from faults.faults_of_pairs(read, given.partners, group, given.cohort)


def _groups(given: argparse.Namespace) -> list[str]:
    return [*([given.cohort] if given.cohort else []), *given.same]
