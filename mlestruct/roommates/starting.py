"""``mlestruct check``, the shipped example, ``mlestruct roommates generate`` and ``serve``."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlestruct.roommates.options import (
    add_columns,
    add_options,
    add_reading,
    add_rules,
    aligned,
    fields,
    for_shell,
    names,
    new_file,
    new_folder,
    opened,
    rules,
    say,
    tell,
    whole,
)

if TYPE_CHECKING:
    from mlestruct.roommates.doctor import Told
    from mlestruct.roommates.frames import Table

CHANGED = "changes.csv"


def add_check(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "check",
        help="what is in tables, what is wrong with them, and how to learn from them",
        description="Exit code 1 if there are faults; remarks alone leave it 0.",
    )
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="people, pairs, others")
    add_columns(parser)
    add_options(parser, "mix")
    add_rules(parser)
    parser.add_argument(
        "--trust", type=names, default=[], metavar="COLUMNS", help="answers there are as meant"
    )
    parser.add_argument(
        "--fix", metavar="FOLDER", help="write cleaned copies there, and a list of the changes"
    )
    add_reading(parser)
    add_options(parser, "json")
    parser.set_defaults(run=run_check)


def run_check(given: argparse.Namespace) -> int:
    """A survey and the findings of every table; 1 if there are faults."""
    from mlestruct.roommates.doctor import examine
    from mlestruct.roommates.sections import Surveyed, survey

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
    usual = type(told)()
    named = [(told.id,) if told.id != usual.id else (), told.groups, told.room, told.partner]
    named += [told.partners if told.partners != usual.partners else (), told.trust, told.mix]
    known = dict.fromkeys(name for table in tables for name in table.names)
    for name in (name for columns in named for name in columns):
        if name not in known:
            raise ValueError(f"no table has a column {name!r}; there are {', '.join(known)}")


def _told(given: argparse.Namespace) -> Told:
    """What options say of columns, lists of names as tuples."""
    from mlestruct.roommates.doctor import Told

    asked = {name: value for name, value in vars(given).items() if name in Told.__annotations__}
    lists = {n: tuple(v) for n, v in asked.items() if isinstance(v, list)}
    return Told(**(asked | lists))


def _of_rules(table: Table, given: argparse.Namespace) -> list[Any]:
    """Why rules could not be kept, where this is the table of people."""
    from mlestruct.roommates.doctor import Finding, faults_of_rules

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
    from mlestruct.roommates.report import export_csv
    from mlestruct.roommates.roles import Change, cleaned

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


WIDTH = 78
STUDENTS = (
    "An example: {people} invented students of three years, their answers to {questions} "
    "questions, and who shared a room with whom."
)
LEARNING = (
    "Learning from the {pairs} pairs of years 1 and 2 … (the first time on a machine this also "
    "compiles the program: up to a minute)"
)
PLANNING = "Pairing up year 3 from its answers alone, then looking who really shared:"
YOURS = "With tables of your own (CSV or Excel): mlestruct check PEOPLE PAIRS"
MORE = "What is proven, in technical words: mlestruct roommates --technical"


def add_example(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--technical", action="store_true", help="every weight, the proof and all measures too"
    )
    add_options(parser, "json", "out", "force")
    parser.set_defaults(run=run_example)


def run_example(given: argparse.Namespace) -> int:
    """Learn years 1 and 2, pair up year 3, judge it on the pairs that came about."""
    from mlestruct import data
    from mlestruct.roommates.frames import table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.report import Report
    from mlestruct.roommates.students import TASTE

    people = table(data.shipped("roommates_people.csv"))
    pairs = table(data.shipped("roommates_pairs.csv"))
    before, after = people.rows(people["year"] < 3), people.rows(people["year"] == 3)
    learned, observed = pairs.rows(pairs["year"] < 3), pairs.rows(pairs["year"] == 3)
    questions = sum(name.startswith("q") for name in people.names)
    _say(given, STUDENTS.format(people=len(people), questions=questions))
    _say(given, LEARNING.format(pairs=len(learned)))
    model = RoommateModel(cohort="year", same="gender", ordinal="q*", alpha=(1.0, 10.0, 100.0))
    model.fit(before, learned)
    _say(given, PLANNING, "")
    report = Report.of(model, after, observed, truth=TASTE.scores)
    wrote = list(map(str, report.write(new_folder(given.out, given.force))))
    lines = [*report.headline(), f"The plan with its reasons, to open in a browser: {wrote[-1]}"]
    for line in lines:
        _say(given, line, indent="  ")
    if given.technical:
        say(given, "", model.summary(), "", report.evaluation)
    _say(given, "", YOURS, *([] if given.technical else [MORE]))
    tell(given, lines=lines, files=wrote)
    return 0


def _say(given: argparse.Namespace, *lines: str, indent: str = "") -> None:
    """Lines wrapped to a screen of eighty columns; paths stay whole."""
    wrapper = textwrap.TextWrapper(WIDTH, indent, indent and indent + "  ")
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    for line in lines:
        say(given, wrapper.fill(line))


def add_generate(parts: Any) -> None:
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
    add_options(parser, "force", "json")
    parser.set_defaults(run=run_generate)


def even(text: str) -> int:
    """An even number of people, so that all can be paired."""
    number = whole(2)(text)
    if number % 2:
        raise argparse.ArgumentTypeError(f"needs an even number, so that all have a pair: {text}")
    return number


def run_generate(given: argparse.Namespace) -> int:
    """Write roommates_people.csv and roommates_pairs.csv."""
    from pathlib import Path

    from mlestruct import data
    from mlestruct.roommates.separated import write_csv

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


def add_serve(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("serve", help="a page on this machine, from files to a plan")
    parser.add_argument(
        "--project", default="roommates-project", metavar="FOLDER",
        help="where files, choices and the model are kept; default: roommates-project",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=whole(0, 65535), default=0, metavar="N", help="default: any that is free"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_options(parser, "json")
    parser.set_defaults(run=run_serve)


def run_serve(given: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from mlestruct.roommates.server import serve

    def ready(address: str) -> None:
        say(given, f"open {address}", f"Ctrl-C ends it; {given.project} keeps everything")
        tell(given, address=address, project=given.project)
        if not given.no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(given.project, given.port, ready)
    return 0
