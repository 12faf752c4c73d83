"""``mlestruct check``, and ``mlestruct roommates`` with its parts."""

from __future__ import annotations

import argparse
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlestruct.roommates.options import (
    COLUMNS,
    REPORT,
    RULES,
    add_options,
    add_people,
    add_reading,
    aligned,
    among,
    chosen,
    finish,
    for_shell,
    load,
    new_file,
    new_folder,
    opened,
    rules,
    say,
    tell,
)

if TYPE_CHECKING:
    from mlestruct.roommates.doctor import Told
    from mlestruct.roommates.frames import Table
    from mlestruct.roommates.model import RoommateModel

CHANGED = "changes.csv"


def add_fit(parts: Any) -> None:
    """The command's options; COLUMNS are names or patterns like 'q*', separated by commas."""
    parser = parts.add_parser("fit", help="learn from people and the pairs observed")
    add_people(parser, "pairs")
    add_options(parser, *COLUMNS, "ordinal", "binary", "categorical", "ignore", "protected")
    add_options(parser, "answers", "weight", "missing", "unknown", "unpaired")
    add_options(parser, "alpha", "rho", "checkpoint", "strict", "force")
    parser.set_defaults(run=run_fit)


def table_of_pairs(given: argparse.Namespace, model: RoommateModel) -> Table | None:
    """The table of pairs, where there is one beside that of people."""
    if given.pairs is None:
        return None
    columns = [*model.room, *model.partner]
    return opened(given, given.pairs, [model.id, *columns] if columns else list(model.partners))


def run_fit(given: argparse.Namespace) -> int:
    """Print the summary, write the model."""
    from mlestruct.errors import DataWarning
    from mlestruct.roommates.model import RoommateModel

    settings = RoommateModel().get_params()
    told = {k: v for k, v in vars(given).items() if k in settings and v is not None}
    model = RoommateModel(**told)
    path = new_file(given.model, given.force, [given.people, given.pairs])
    wanted = [model.id, *([model.cohort] if model.cohort else []), *model.same]
    everybody = opened(given, given.people, wanted)
    people = chosen(everybody, given.cohort, given.only)
    pairs = among(table_of_pairs(given, model), everybody, people, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the summary's notes say it
        summary = model.fit(people, pairs, checkpoint=given.checkpoint).summary()
    model.save(path)
    say(given, summary, f"\nwrote {path}")
    tell(
        given,
        model=path,
        contrasts=summary.contrasts,
        unidentified=summary.unidentified,
        notes=summary.notes,
        certificate=summary.certificate,
        alpha=summary.alpha,
    )
    return 0


def add_assign(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("assign", help="pair up people")
    add_people(parser)
    add_options(parser, *RULES, "unknown", "rooms", "fixed", "decision", *REPORT)
    parser.set_defaults(run=run_assign)


def run_assign(given: argparse.Namespace) -> int:
    """Print the plan; write pairs.csv, probabilities.csv and report.html."""
    from mlestruct.roommates.report import Report

    model, _, people = load(given)
    ids = {str(who): who for who in people.as_names(model.id).tolist()}
    report = Report.of(
        model,
        people,
        **rules(given, ids.values()),
        rooms=opened(given, given.rooms, ("room",)) if given.rooms else None,
        fixed={
            room: [ids.get(who.strip(), who.strip()) for who in listed.split(",")]
            for room, listed in given.fixed
        },
        decision=given.decision or "map",
        mix=given.mix,
        names=given.names,
        protected=given.show_protected,
    )
    wrote = finish(report.plan, report, given)
    plan = report.plan
    tell(
        given,
        pairs=plan.pairs,
        singles=plan.singles,
        left_over=plan.left_over,
        total=plan.objective,
        gap=plan.gap,
        notes=plan.people.notes,
        files=wrote,
    )
    return 0


def add_evaluate(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("evaluate", help="judge a model on pairs it has not seen")
    add_people(parser, "pairs")
    add_options(parser, "unknown", *REPORT)
    parser.set_defaults(run=run_evaluate)


def run_evaluate(given: argparse.Namespace) -> int:
    """Print the evaluation; write what assign writes, with the evaluation in the report."""
    from mlestruct.roommates.report import Report

    model, everybody, people = load(given)
    pairs = among(table_of_pairs(given, model), everybody, people, model)
    pairs = people if pairs is None else pairs
    shown = {"names": given.names, "protected": given.show_protected, "mix": given.mix}
    report = Report.of(model, people, pairs, **shown)
    wrote = finish(report.evaluation, report, given)
    tell(given, **vars(report.evaluation), files=wrote)
    return 0


def add_explain(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("explain", help="why two people are a pair, and who else was near")
    add_people(parser, "person")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    add_options(parser, *RULES, "unknown", "show-protected")
    parser.set_defaults(run=run_explain)


def run_explain(given: argparse.Namespace) -> int:
    """Print the contributions of all answers, then the alternatives."""
    model, _, people = load(given)
    own = {str(who): who for who in people.as_names(model.id).tolist()}
    plan = model.assign(people, **rules(given, own.values()), mix=given.mix)
    person, partner = (own.get(who, who) for who in (given.person, given.partner))
    found = model.explain(plan, person, partner, protected=given.show_protected)
    near = plan.alternatives(person)
    listed = aligned(type(near[0])._fields, near) if near else "  none"
    say(given, found, f"\nother partners of {person}:", listed)
    tell(given, **vars(found), alternatives=near)
    return 0


def add_check(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "check",
        help="what is in tables, what is wrong with them, and how to learn from them",
        description="Exit code 1 if there are faults; remarks alone leave it 0.",
    )
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="people, pairs, others")
    add_options(parser, *COLUMNS, "mix", *RULES, "trust", "fix", "json")
    add_reading(parser)
    parser.set_defaults(run=run_check)


def run_check(given: argparse.Namespace) -> int:
    """A survey and the findings of every table; 1 if there are faults."""
    from mlestruct.roommates.doctor import examine
    from mlestruct.roommates.sections import Surveyed, survey

    told = _told(given)
    tables = [opened(given, path) for path in given.tables]
    _refuse_unknown(told, tables)
    found = examine(tables, told, given.tables)
    findings = [*found.findings]
    for number, table in enumerate(tables):
        findings += _of_rules(number, table, given)
    findings.sort(key=lambda f: f.kind != "fault")
    surveys = [survey(table) for table in tables]
    for number, table in enumerate(tables):
        say(given, f"{given.tables[number]}: {len(table)} rows, {len(table.names)} columns")
        say(given, aligned(Surveyed._fields, surveys[number]))
        for finding in (f for f in findings if f.table == number):
            mark = "!" if finding.kind == "fault" else "-"
            say(given, f"  {mark} {for_shell(finding.words)}")
    if found.command:
        say(given, "to learn from these tables:", f"  {found.command}")
    wrote = _fix(given, tables) if given.fix else []
    faults, remarks = (
        [
            {"file": given.tables[f.table], "words": for_shell(f.words)}
            for f in findings
            if f.kind == k
        ]
        for k in ("fault", "remark")
    )
    say(given, f"faults found: {len(faults)}" if faults else "no faults found")
    tell(
        given,
        tables=[
            {"file": path, "rows": len(table), "columns": rows}
            for path, table, rows in zip(given.tables, tables, surveys, strict=True)
        ],
        faults=faults,
        remarks=remarks,
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


def _of_rules(number: int, table: Table, given: argparse.Namespace) -> list[Any]:
    """Why rules could not be kept, where this is the table of people."""
    from mlestruct.roommates.doctor import Finding, faults_of_rules

    if given.id not in table.names:
        return []
    asked = rules(given, table.as_names(given.id).tolist())
    if not asked["forbid"] and not asked["require"]:
        return []
    groups = [*([given.cohort] if given.cohort else []), *given.same]
    found = faults_of_rules(table, given.id, groups, asked["forbid"], asked["require"])
    return [Finding("fault", number, words) for words in found]


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


def add_example(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
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
    _say(given, "", YOURS)
    tell(given, lines=lines, files=wrote)
    return 0


def _say(given: argparse.Namespace, *lines: str, indent: str = "") -> None:
    """Lines wrapped to a screen of eighty columns; paths stay whole."""
    wrapper = textwrap.TextWrapper(WIDTH, indent, indent and indent + "  ")
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    for line in lines:
        say(given, wrapper.fill(line))


def add_serve(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("serve", help="a page on this machine, from files to a plan")
    add_options(parser, "project", "port", "no-browser", "json")
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


def add(commands: Any) -> None:
    """``mlestruct check``, and ``mlestruct roommates`` with its parts."""
    add_check(commands)
    parser = commands.add_parser(
        "roommates",
        help="learn who shares with whom, pair up the next cohort; alone: a shipped example",
        description="Without a command: learn two years of a shipped example, predict the third.",
    )
    add_example(parser)
    parts = parser.add_subparsers(metavar="COMMAND")
    for add_part in (add_fit, add_assign, add_evaluate, add_explain, add_serve):
        add_part(parts)
