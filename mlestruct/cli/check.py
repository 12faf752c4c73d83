"""``mlestruct check``: what is in tables of people and pairs, what is wrong, and what to type."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlestruct.cli.options import (
    add_columns,
    add_json,
    add_mix,
    add_reading,
    add_rules,
    aligned,
    fields,
    for_shell,
    names,
    opened,
    rules,
    say,
    tell,
)

if TYPE_CHECKING:
    from mlestruct.doctor.diagnosis import Told
    from mlestruct.tables import Table

CHANGED = "changes.csv"


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "check",
        help="what is in tables, what is wrong with them, and how to learn from them",
        description="Exit code 1 if there are faults; remarks alone leave it 0.",
    )
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="people, pairs, others")
    add_columns(parser)
    add_mix(parser)
    add_rules(parser)
    parser.add_argument(
        "--trust", type=names, default=[], metavar="COLUMNS", help="answers there are as meant"
    )
    parser.add_argument(
        "--fix", metavar="FOLDER", help="write cleaned copies there, and a list of the changes"
    )
    add_reading(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """A survey and the findings of every table; 1 if there are faults."""
    from mlestruct.doctor import examine
    from mlestruct.report.survey import Surveyed, survey

    told = _told(given)
    tables = [opened(given, path) for path in given.tables]
    _refuse_unknown(told, tables)
    found = examine(tables, told, given.tables)
    faults = [*found.faults]
    surveys = [survey(table) for table in tables]
    for number, table in enumerate(tables):
        say(given, f"{given.tables[number]}: {len(table)} rows, {len(table.names)} columns")
        say(given, aligned(Surveyed._fields, surveys[number]))
        mine = [finding for finding in found.findings if finding.table == number]
        extra = _of_rules(table, given)
        faults += extra
        for finding in sorted([*mine, *extra], key=lambda f: f.kind != "fault"):
            mark = "!" if finding.kind == "fault" else "-"
            say(given, f"  {mark} {for_shell(finding.words)}")
    if found.command:
        say(given, "to learn from these tables:", f"  {found.command}")
    wrote = _fix(given, tables) if given.fix else []
    say(given, f"faults found: {len(faults)}" if faults else "no faults found")
    tell(
        given,
        tables=[
            {"file": path, "rows": len(table), "columns": [fields(row) for row in rows]}
            for path, table, rows in zip(given.tables, tables, surveys, strict=True)
        ],
        faults=[{"file": given.tables[f.table], "words": for_shell(f.words)} for f in faults],
        remarks=[
            {"file": given.tables[f.table], "words": for_shell(f.words)}
            for f in found.findings
            if f.kind == "remark"
        ],
        roles=found.roles,
        fit=found.command,
        files=wrote,
    )
    return 1 if faults else 0


def _refuse_unknown(told: Told, tables: Sequence[Table]) -> None:
    """Columns that were named and are in no table; the usual ones may be missing."""
    from mlestruct.doctor.diagnosis import Told

    usual = Told()
    named = [(told.id,) if told.id != usual.id else (), told.groups, told.room, told.partner]
    named += [told.partners if told.partners != usual.partners else (), told.trust, told.mix]
    known = dict.fromkeys(name for table in tables for name in table.names)
    for name in (name for columns in named for name in columns):
        if name not in known:
            raise ValueError(f"no table has a column {name!r}; there are {', '.join(known)}")


def _told(given: argparse.Namespace) -> Told:
    from mlestruct.doctor.diagnosis import Told

    return Told(
        given.id,
        given.cohort,
        tuple(given.same),
        tuple(given.partners),
        tuple(given.room),
        tuple(given.partner),
        given.no_answer,
        tuple(given.trust),
        tuple(given.mix),
    )


def _of_rules(table: Table, given: argparse.Namespace) -> list[Any]:
    """Why rules could not be kept, where this is the table of people."""
    from mlestruct.doctor import Finding
    from mlestruct.doctor.rows import faults_of_rules

    if given.id not in table.names:
        return []
    asked = rules(given, table.as_names(given.id).tolist())
    if not asked["forbid"] and not asked["require"]:
        return []
    groups = [*([given.cohort] if given.cohort else []), *given.same]
    found = faults_of_rules(table, given.id, groups, asked["forbid"], asked["require"])
    return [Finding("fault", 0, words) for words in found]


def _fix(given: argparse.Namespace, tables: Sequence[Table]) -> list[str]:
    """Cleaned copies and the list of changes, in a folder of their own."""
    from mlestruct.cli.roommates.common import new_folder
    from mlestruct.doctor import Change, cleaned
    from mlestruct.report.export import export_csv

    folder = new_folder(given.fix, False)
    wrote, rows = [], []
    for path, table in zip(given.tables, tables, strict=True):
        columns, changes = cleaned(table, (given.id, *given.partners, *given.trust))
        target = _free(folder / f"{Path(path.partition('#')[0]).stem}.csv")
        export_csv(target, columns)
        wrote.append(str(target))
        rows += [Change(f"{path} as a whole", None, None, None, line) for line in table.said]
        rows += changes
    listed: dict[str, Any] = {
        name: [row[k] for row in rows] for k, name in enumerate(Change._fields)
    }
    export_csv(folder / CHANGED, listed)
    say(given, f"wrote {', '.join(wrote)} and {folder / CHANGED}: {len(rows)} lines of changes")
    return [*wrote, str(folder / CHANGED)]


def _free(path: Path) -> Path:
    """A name that no other table of the same call has taken."""
    number = 2
    found = path
    while found.exists():
        found, number = path.with_stem(f"{path.stem}-{number}"), number + 1
    return found
