"""``mlestruct check``, and ``mlestruct roommates`` with its parts."""

from __future__ import annotations

import argparse
import shlex
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlestruct.results import aligned
from mlestruct.roommates.options import (
    COLUMNS,
    MODEL,
    PAGE,
    READING,
    RULES,
    SHOWN,
    add_options,
    add_reading,
    for_shell,
    new_file,
    new_folder,
    say,
    spare,
    tell,
)
from mlestruct.roommates.words import FILE, REPORT
from mlestruct.roommates.words import PAGE as WORDS

if TYPE_CHECKING:
    from mlestruct.roommates.doctor import Diagnosis
    from mlestruct.roommates.evaluation import Evaluation
    from mlestruct.roommates.frames import Table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.office import Office
    from mlestruct.roommates.plan import Explanation
    from mlestruct.roommates.project import Choices, Decided, Project, Settings
    from mlestruct.roommates.report import Report

PAIRS = 20  # of a plan that are printed
FIT = ("alpha", "max_seconds")  # settings of a fit beside columns
TABLES = ("people", "pairs", "rooms", "rules")


def add_part(parts: Any, run: Callable[..., int], words: str, *more: str) -> Any:
    """A part of ``mlestruct roommates``: the tables it names, and its options."""
    parser = parts.add_parser(run.__name__.removeprefix("run_"), help=words)
    for name in ("people", *(name for name in more if name in ("pairs", "person"))):
        optional: dict[str, Any] = {} if name == "person" else {"nargs": "?"}
        parser.add_argument(name, metavar="ID" if optional == {} else name.upper(), **optional)
    add_options(parser, "project", "only", "mix", "json", "model", "max-seconds", "technical")
    add_options(parser, *(name for name in more if name not in ("pairs", "person")))
    add_reading(parser)
    parser.set_defaults(run=run)
    return parser


def project_of(given: argparse.Namespace) -> tuple[Project, Choices]:
    """The project, where there is one, with the tables and readings that a command names."""
    from mlestruct.roommates.project import Dropped, Project

    path = Path(given.project or FILE)
    project = Project(path.parent, path.name)
    if given.project and not path.exists() and given.run is not run_check:
        raise FileNotFoundError(2, "No such file or directory", given.project)
    choices = project.choices()
    files = {kind: file._replace(name="") for kind, file in choices.files.items()}
    for kind in TABLES:
        own = getattr(given, kind, None)
        if own and isinstance(own, str):
            files[kind] = Dropped(own if path.parent == Path() else str(Path(own).absolute()))
    reading = {n: getattr(given, n) for n in READING if getattr(given, n) is not None}
    separator = reading.get("separator")
    if separator is not None:
        reading["separator"] = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if len(reading["separator"]) != 1:
            raise ValueError(f"--separator is one sign or tab, not {separator!r}")
    return project, replace(choices, files=files, reading={**choices.reading, **reading})


def told_by(given: argparse.Namespace, choices: Choices) -> dict[str, Any]:
    """The settings that options name; they go before those of the project."""
    from mlestruct.roommates.project import WAYS, Settings

    usual, said = Settings(), vars(given)
    told = {n: said[n] for n in vars(usual) if n != "fit" and said.get(n) is not None}
    told = {n: tuple(v) if isinstance(v, list) and n != "no_answer" else v for n, v in told.items()}
    way = next((name for name in WAYS if name in told), None)
    if way:
        told |= {name: getattr(usual, name) for name in WAYS if name != way}
    fit = {name: said[name] for name in FIT if said.get(name) is not None}
    return told | {"fit": {**(choices.settings.fit if choices.settings else {}), **fit}}


def office_of(given: argparse.Namespace, model: RoommateModel | None = None) -> Office:
    """The tables that a command or its project names, and in a line for each how it was read."""
    from mlestruct.roommates.office import Office

    project, choices = project_of(given)
    if "people" not in choices.files:
        raise ValueError(f"name a table of people, or write a project by mlestruct check ({FILE})")
    if model is not None and given.people:  # whom these are about is not the project's to say
        choices = replace(choices, planned=None)
    found = Office(project, choices, told_by(given, choices), model=model, only=given.only)
    for table in found.tables.values():
        say(given, *table.said)
    return found


def loaded(given: argparse.Namespace) -> Office:
    """A model, with what is told of unknown answers, and the tables under its columns."""
    from mlestruct.roommates.model import RoommateModel

    model = RoommateModel.load(given.model)
    found = office_of(given, model)
    model.set_params(max_seconds=given.max_seconds)
    if "unknown" in found.told or found.choices.settings:
        model.set_params(unknown=found.settings.unknown)
    return found


def run_fit(given: argparse.Namespace) -> int:
    """Learn from people and the pairs observed: print the summary, write the model."""
    from mlestruct.errors import DataWarning
    from mlestruct.roommates.report import untold

    path = new_file(given.model, given.force, [given.people, given.pairs])
    office = office_of(given)
    for name, roles in office.columns_gone:
        if {"same", "cohort"} & set(roles):
            raise ValueError(
                f"column {name!r} kept people apart and is in no table now: rename it in "
                f"{office.project.file}, or take it out there"
            )
    for name in office.columns_new:
        say(given, f"column {name!r} is new: {_used_as(office.settings, name)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the summary's notes say it
        model = office.fit(checkpoint=given.checkpoint)
    summary = model.summary()
    model.save(path)
    say(given, summary if given.technical else "\n".join(_learned(model)), f"wrote {path}")
    named, cohorts = f" --model {path}" if path != MODEL else "", model.cohorts_
    if set(office.cohorts) <= set(cohorts) and len(cohorts) > 1:
        fit = f"fit{named} --only {','.join(cohorts[:-1])} --force"
        judge = f"evaluate{named} --only {cohorts[-1]}"
        say(given, f"for a fair test: mlestruct roommates {fit}, then mlestruct roommates {judge}")
    else:
        say(given, f"to pair people up: mlestruct roommates assign{named}")
    tell(
        given,
        model=path,
        contrasts=list(map(vars, model.told_.rows)),
        unidentified=untold(model),
        notes=model.notes_,
        certificate=model.certificate_,
        alpha=model.alpha_,
    )
    return 0


def _learned(model: RoommateModel) -> list[str]:
    """What was learned, in words."""
    from mlestruct.roommates.report import effect, untold
    from mlestruct.roommates.words import number

    effects = model.effects()
    sure = [(column, c) for column, c in effects if c.low > 0 or c.high < 0]
    open_ = dict.fromkeys(column for column, c in effects if (column, c) not in sure)
    lines = [
        f"  {effect(model, column, c)} ({number(exp(c.low))} to {number(exp(c.high))})"
        for column, c in sure
    ]
    lost = ", ".join((*open_, *untold(model)))
    head = f"learned from {model.told_.units} pairs:" if sure else REPORT["nothing sure"]
    return [head, *lines, *([f"not told by these pairs: {lost}"] if lost else []), *model.notes_]


def _used_as(told: Settings, name: str) -> str:
    return ", ".join(WORDS[use] for use in told.uses().get(name, ["ignore"]))


def planned_by(given: argparse.Namespace) -> Office:
    """A plan, under what was decided; what does not fit is said."""
    from mlestruct.roommates.rooms import Placed

    office = loaded(given)
    if office.skipped:
        learned = ", ".join(office.own.cohorts_ if office.own else ())
        say(given, f"not planned, since learned from: {office.settings.cohort} {learned}")

    def placed(option: str) -> list[Placed]:
        return [
            Placed.of([office.id_of(who) or who for who in pair], f"--{option} {' '.join(pair)}")
            for pair in getattr(given, option)
        ]

    office.rules = {"forbid": placed("forbid"), "require": placed("require")}
    office.rules["mix"] = given.mix or ()
    gone = len(office.left & set(map(str, office.named("people").listed(office.settings.id))))
    say(given, *([f"{gone} people who left are not planned"] if gone else []))
    say(given, *(_unused(part) for part in office.decided if part.why))
    return office


def run_assign(given: argparse.Namespace) -> int:
    """Pair up people: print the plan; write pairs.csv, probabilities.csv and report.html."""
    office = planned_by(given)
    report = office.report(protected=given.show_protected)
    plan = report.plan
    wrote = finish(plan if given.technical else _planned(report), report, given)
    tell(
        given,
        **{name: getattr(plan, name) for name in ("pairs", "singles", "left_over", "gap")},
        total=plan.objective,
        notes=plan.people.notes,
        unused=[part for part in office.decided if part.why],
        files=wrote,
    )
    return 0


def _planned(report: Report) -> str:
    """A plan in words: who shares, and how probable that is."""
    from mlestruct.roommates.words import percent

    plan = report.plan
    rows = [
        (p.a, p.b, percent(p.probability), p.group, *([] if p.room is None else [p.room]))
        for p in plan.pairs[:PAIRS]
    ]
    more = len(plan.pairs) - len(rows)
    alone = [f"{s.person} ({WORDS['alone']}, {s.group})" for s in plan.singles]
    head = ("person", "with", "probable", "group", *(["room"] if rows and len(rows[0]) > 4 else []))
    table = [aligned(head, rows)] if rows else []
    table += [f"  … and {more} more pairs"] if more > 0 else []
    return "\n".join([*report.headline()[:1], *table, *alone, *plan.people.notes])


def finish(shown: object, report: Report, given: argparse.Namespace) -> list[str]:
    """Print what was asked for, write the files, say where."""
    from mlestruct.roommates.report import NO_PAGE

    folder = new_folder(given.out, given.force)
    read = [getattr(given, name, None) for name in (*TABLES, "model")]
    for name in report.files:
        spare(folder / name, read)
    paths = list(map(str, report.write(folder)))
    say(given, shown, "wrote " + ", ".join(paths), *[NO_PAGE] * (len(paths) < len(report.files)))
    return paths


def run_evaluate(given: argparse.Namespace) -> int:
    """Judge a model on pairs it has not seen; the report has the evaluation."""
    from mlestruct.roommates.report import Report

    office = loaded(given)
    people = office.of_cohorts(given.only) if given.only else office.named("people")
    pairs = office.pairs(people)
    shown = {"protected": given.show_protected, "names": given.names, "mix": given.mix or ()}
    report = Report.of(office.model, people, people if pairs is None else pairs, **shown)
    evaluation = report.evaluation
    assert evaluation is not None
    wrote = finish(evaluation if given.technical else _judged(evaluation), report, given)
    found = {n: value for n, value in vars(evaluation).items() if n != "calibration"}
    tell(given, **found, files=wrote)
    return 0


def _judged(found: Evaluation) -> str:
    """How good a model is, in words."""
    from mlestruct.roommates.report import picks

    rates = [
        f"partner among the {k} most probable: {100 * share:.0f} ± {100 * found.top_error[k]:.0f} "
        f"of 100 ({100 * found.top_random[k]:.0f} by guessing)"
        for k, share in found.top.items()
    ]
    few = ["These are too few pairs to compare anything by."] if found.few else []
    return "\n".join([found.count(), picks(found), *rates, *few, *found.notes])


def run_explain(given: argparse.Namespace) -> int:
    """Say why two people are a pair, and who else was near."""
    from mlestruct.roommates.words import percent

    office = planned_by(given)
    plan, texts = office.plan, (given.person, given.partner)
    person, partner = (who and (office.id_of(who) or who) for who in texts)
    found = office.model.explain(plan, person, partner, protected=given.show_protected)
    near = plan.alternatives(person)
    if given.technical:
        listed = aligned(type(near[0])._fields, near) if near else "  none"
        say(given, found, f"\nother partners of {person}:", listed)
    else:
        say(given, *_explained(found), f"others who would suit {person}:")
        say(given, *(f"  {one.partner}: {percent(one.probability)} probable" for one in near))
    tell(given, **vars(found), alternatives=near)
    return 0


def _explained(found: Explanation) -> list[str]:
    """Why two people are a pair, in words."""
    from mlestruct.roommates.report import reason
    from mlestruct.roommates.words import number, percent

    lines = [f"  {reason(part)}" for part in found.contributions if abs(part.contribution) > 0.05]
    if found.withheld:
        lines.append("  " + REPORT["protected sum"].format(factor=number(exp(found.withheld))))
    share = percent(found.probability)
    head = f"{found.a} and {found.b}: {share} probable; beside an average partner"
    return [head, *(lines or ["  nothing speaks much for or against it"])]


CHANGES = {
    "together": "put two people together",
    "swap": "each of two people with the other's partner",
    "apart": "two people who share in no plan",
    "lock": "a home stays as it is in all later plans",
    "unlock": "or no longer",
    "left": "somebody is not planned any more",
    "back": "let all go that was decided about somebody",
}


def add_change(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser(
        "change",
        help="what a change of the plan would cost; with --yes, it holds from now on",
        description="; ".join(f"{name}: {words}" for name, words in CHANGES.items()),
    )
    parser.add_argument("kind", choices=CHANGES)
    parser.add_argument("who", nargs="+", metavar="ID")
    add_options(parser, "project", "only", "mix", "json", "model", "max-seconds", "yes")
    add_options(parser, *RULES[:2])
    add_reading(parser)
    parser.set_defaults(run=run_change, people=None, rules=None)


def run_change(given: argparse.Namespace) -> int:
    """Print the cost and the homes that would be new; keep the decision where that was said."""
    from mlestruct.roommates.project import Project

    office = planned_by(given)
    after = office.changed(given.kind, given.who)
    lines, made = office.cost(after)["words"], after.choices.decided
    if given.yes:
        project = Project(office.project.folder, office.project.file.name)
        project.keep(replace(project.choices(), decided=made))
        lines.append(f"kept in {project.private}")
    else:
        lines.append("nothing is changed: the same command with --yes does it")
    say(given, *lines)
    tell(given, lines=lines, decided=made)
    return 0


def add_check(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "check",
        help="what is in tables, what is wrong with them, and how to learn from them",
        description=f"Writes a proposal ({FILE}) where there is none. Exit code 1 if there are "
        "faults, 3 if the tables are not understood; remarks alone leave it 0.",
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="people, pairs, others")
    add_options(parser, *COLUMNS, "mix", "trust", "project", "json")
    add_reading(parser)
    parser.set_defaults(run=run_check)


def run_check(given: argparse.Namespace) -> int:
    """A survey and the findings of every table; a proposal where there is none."""
    from mlestruct.roommates.frames import Surveyed, survey
    from mlestruct.roommates.office import opened
    from mlestruct.roommates.project import Dropped

    project, choices = project_of(given)
    old, named = choices.settings, set(map(str, choices.files.values()))
    if given.tables and named and not (given.project or named.issuperset(given.tables)):
        raise ValueError(f"{FILE} is about {', '.join(sorted(named))}: name another by --project")
    own = [choices.files[kind] for kind in TABLES[:2] if kind in choices.files]
    paths = given.tables or [str(file._replace(kept=str(project.path(file)))) for file in own]
    if not paths:
        raise ValueError("name the tables: people, and who shared in earlier years")
    tables = [opened("", path, None, old, **choices.reading) for path in paths]
    say(given, *(line for table in tables for line in table.said))
    told = told_by(given, choices)
    _refuse_unknown(told, tables)
    office, found, order = _examined(project, choices, told, tables)
    choices = office.choices
    findings = [(order[0], *one) for one in _changed(office)]
    findings += [(f.table, f.severity, for_shell(f.words)) for f in found.findings]
    surveys = [survey(table) for table in tables]
    for number, table in enumerate(tables):
        say(given, f"{paths[number]}: {len(table)} rows, {len(table.names)} columns")
        say(given, aligned(Surveyed._fields, surveys[number]))
        mine = sorted((f for f in findings if f[0] == number), key=lambda f: f[1] == "note")
        say(given, *(f"  {'-' if own == 'note' else '!'} {words}" for _, own, words in mine))
    if old is None:
        files = {kind: Dropped(paths[k]) for kind, k in zip(TABLES, order, strict=False)}
        notes = {row.column: row.values for row in surveys[order[0]]}
        try:
            project.keep(replace(choices, files=files, planned=office.unpaired), notes)
            say(given, f"wrote what is proposed for every column, to be corrected: {project.file}")
        except (OSError, ValueError) as error:
            say(given, f"no proposal is written: {error}")
    by = {s: [{"file": paths[k], "words": w} for k, own, w in findings if own == s]
          for s in ("stop", "puzzle", "note")}  # fmt: skip
    ready = not by["puzzle"] and not any(f.code == "nobody shares" for f in found.findings)
    words = ["mlestruct", *(["roommates", "fit"] if ready else ["check"])]
    command = shlex.join([*words, *(["--project", given.project] if given.project else [])])
    if by["puzzle"]:
        say(given, "these tables are not understood, because")
        say(given, *(f"  {one['words']}" for one in by["puzzle"]))
        say(given, f"say it in {project.file}, then:", f"  {command}")
    else:
        say(given, "to learn from these tables:" if ready else "next:", f"  {command}")
        say(given, f"faults found: {len(by['stop'])}" if by["stop"] else "no faults found")
    tell(
        given,
        tables=[
            {"file": path, "rows": len(table), "columns": rows}
            for path, table, rows in zip(paths, tables, surveys, strict=True)
        ],
        faults=by["stop"],
        puzzles=by["puzzle"],
        remarks=by["note"],
        settings=vars(found.settings),
        fit=command,
        project=str(project.file),
    )
    return 3 if by["puzzle"] else 1 if by["stop"] else 0


def _examined(
    project: Project, choices: Choices, told: dict[str, Any], tables: Sequence[Table]
) -> tuple[Office, Diagnosis, list[int]]:
    """The case, what the doctor says of its tables, and their numbers, that of people first."""
    from mlestruct.roommates.doctor import examine
    from mlestruct.roommates.office import Office
    from mlestruct.roommates.project import Settings

    found = examine(tables, Settings(**told)) if choices.settings is None else None
    if found is not None:
        choices, told = replace(choices, settings=replace(found.settings, fit={})), {}
    ids = choices.settings.id if choices.settings else ""
    order = sorted(range(len(tables)), key=lambda k: ids not in tables[k].names)[:2]
    held = {kind: tables[k] for kind, k in zip(TABLES, order, strict=False)}
    office = Office(project, choices, told, tables=held)
    return office, found or examine(tables, office.settings, True), order


def _changed(office: Office) -> Iterator[tuple[str, str]]:
    """What in a project does not fit the tables of now: how severe it is, and words."""
    for name, roles in office.columns_gone:
        severity = "stop" if {"same", "cohort"} & set(roles) else "note"
        words = WORDS["unfit column"].format(roles=", ".join(WORDS[role] for role in roles))
        yield severity, f"column {name!r}: {words}"
    for name in office.columns_new:
        yield "note", f"column {name!r} is new: {_used_as(office.settings, name)}"
    for part in office.decided if len(office.tables) > 1 else ():
        if part.why:
            yield "note", _unused(part)


def _unused(part: Decided) -> str:
    """A decision that does not fit, and why."""
    return f"{part}. {WORDS['not in use'].format(why=part.why)}"


def _refuse_unknown(told: Mapping[str, Any], tables: Sequence[Table]) -> None:
    """Columns that were named and are in no table."""
    known = dict.fromkeys(name for table in tables for name in table.names)
    for option in ("id", "cohort", "same", "room", "partner", "partners", "trust", "mix"):
        named = told.get(option) or ()
        usual = option == "partners" and named == ("id_a", "id_b")
        for name in () if usual else (named,) if isinstance(named, str) else named:
            if name not in known:
                raise ValueError(f"no table has a column {name!r}; there are {', '.join(known)}")


WIDTH = 78
STUDENTS = (
    "An example: {people} invented students of three years, their answers to {questions} "
    "questions (bedtime, tidiness, smoking, …), and who shared a room with whom."
)
LEARNING = "Learning from the {pairs} pairs of years 1 and 2 …"
PLANNING = "Pairing up year 3 from its answers alone, then looking who really shared:"
YOURS = "With tables of your own (CSV or Excel): mlestruct check PEOPLE PAIRS"


def run_example(given: argparse.Namespace) -> int:
    """Learn years 1 and 2, pair up year 3, judge it on the pairs that came about."""
    from mlestruct import data
    from mlestruct.roommates.frames import table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.report import NO_PAGE, Report

    people = table(data.shipped("roommates_people.csv"))
    pairs = table(data.shipped("roommates_pairs.csv"))
    before, after = people.rows(people["year"] < 3), people.rows(people["year"] == 3)
    learned, observed = pairs.rows(pairs["year"] < 3), pairs.rows(pairs["year"] == 3)
    questions = people.names[4:]  # after id, name, year, gender
    _say(given, STUDENTS.format(people=len(people), questions=len(questions)))
    _say(given, LEARNING.format(pairs=len(learned)))
    model = RoommateModel(cohort="year", same="gender", ordinal=questions, alpha=(1.0, 10.0, 100.0))
    model.fit(before, learned)
    _say(given, PLANNING, "")
    report = Report.of(model, after, observed, names="name")
    wrote = list(map(str, report.write(new_folder(given.out, given.force))))
    page = f"The plan with its reasons, to open in a browser: {wrote[-1]}"
    lines = [*report.headline(), page if wrote[-1].endswith("html") else f"{wrote[0]}; {NO_PAGE}"]
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
    add_options(parser, "json", "out", "force")
    parser.set_defaults(run=run_example)
    parts = parser.add_subparsers(metavar="COMMAND")
    columns = (*COLUMNS, "ordinal", "binary", "categorical", "ignore", "protected")
    more = ("alpha", "missing", "unknown", "checkpoint", "strict", "force")
    words = "learn from people and the pairs observed"
    add_part(parts, run_fit, words, "pairs", *columns, *more)
    add_part(parts, run_assign, "pair up people", *RULES, "unknown", "rooms", *SHOWN)
    add_change(parts)
    words = "judge a model on pairs it has not seen"
    add_part(parts, run_evaluate, words, "pairs", "unknown", *SHOWN)
    words = "why two people are a pair, and who else was near"
    parser = add_part(parts, run_explain, words, "person", *RULES, "unknown", "show-protected")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    parser = parts.add_parser("serve", help="a page on this machine, from files to a plan")
    words = f"keeps everything; default: {PAGE}"
    parser.add_argument("--project", metavar="FOLDER", default=PAGE, help=words)
    add_options(parser, "port", "no-browser", "json")
    parser.set_defaults(run=run_serve)
