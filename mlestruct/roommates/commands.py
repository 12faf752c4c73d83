"""``mlestruct check``, and ``mlestruct roommates`` with its parts."""

from __future__ import annotations

import argparse
import shlex
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlestruct.roommates.options import (
    COLUMNS,
    MODEL,
    PAGE,
    READING,
    RULES,
    SHOWN,
    add_options,
    add_reading,
    aligned,
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
    from mlestruct.roommates.evaluation import Evaluation
    from mlestruct.roommates.frames import Table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.office import Inputs, Planned
    from mlestruct.roommates.plan import Explanation
    from mlestruct.roommates.project import Choices, Decided, Project, Settings
    from mlestruct.roommates.report import Report
    from mlestruct.roommates.summary import RoommateSummary

PAIRS = 20  # of a plan that are printed
FIT = ("weight", "alpha")  # settings of a fit beside columns
TABLES = ("people", "pairs", "rooms", "rules")


def add_people(parser: argparse.ArgumentParser, *more: str) -> None:
    """Tables, and ``more`` positional arguments; what a project names may be left out."""
    for name in ("people", *more):
        word = "ID" if name == "person" else name.upper()
        optional: dict[str, Any] = {} if name == "person" else {"nargs": "?"}
        parser.add_argument(name, metavar=word, **optional)
    add_options(parser, "project", "only", "mix", "json", "model", "max-seconds", "technical")
    add_reading(parser)


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
        if own := getattr(given, kind, None):
            inside = own if path.parent == Path() else str(Path(own).absolute())
            files[kind] = Dropped(inside, "")
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
    fit = {name: said[name] for name in FIT if said.get(name)}
    if said.get("max_seconds") is not None:
        fit["max_seconds"] = given.max_seconds
    old = choices.settings.fit if choices.settings else {}
    return told | {"fit": {**old, **fit}}


def inputs(given: argparse.Namespace, told: Mapping[str, Any] | None = None) -> Inputs:
    """The tables of a command, and in a line for each how it was read."""
    from mlestruct.roommates.office import Inputs

    project, choices = project_of(given)
    if "people" not in choices.files:
        raise ValueError(f"name a table of people, or write a project by mlestruct check ({FILE})")
    found = Inputs(project, choices, told_by(given, choices) | dict(told or {}))
    for table in found.tables.values():
        say(given, *table.said)
    return found


def add_fit(parts: Any) -> None:
    """The command's options; COLUMNS are names or patterns like 'q*', separated by commas."""
    parser = parts.add_parser("fit", help="learn from people and the pairs observed")
    add_people(parser, "pairs")
    add_options(parser, *COLUMNS, "ordinal", "binary", "categorical", "ignore", "protected")
    add_options(parser, *FIT, "missing", "unknown", "checkpoint", "strict", "force")
    parser.set_defaults(run=run_fit)


def run_fit(given: argparse.Namespace) -> int:
    """Print the summary, write the model."""
    from mlestruct.errors import DataWarning

    path = new_file(given.model, given.force, [given.people, given.pairs])
    found = inputs(given)
    _refuse_lost(found)
    for name in found.columns_new:
        say(given, f"column {name!r} is new: {_used_as(found.settings, name)}")
    learned = found.named("people")
    if given.only is not None:
        learned = found.of_cohorts(given.only)
    elif found.choices.planned is not None and "new" not in found.choices.files:
        learned = found.parts[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the summary's notes say it
        model = found.model(learned)
        model.fit(learned, found.pairs(learned), checkpoint=given.checkpoint)
    summary = model.summary()
    model.save(path)
    say(given, summary if given.technical else "\n".join(_learned(summary, model)), f"wrote {path}")
    next_one = "mlestruct roommates assign" + (f" --model {path}" if path != MODEL else "")
    say(given, f"to pair people up: {next_one}")
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


def _learned(summary: RoommateSummary, model: RoommateModel) -> list[str]:
    """What was learned, in words."""
    from mlestruct.roommates.report import effect
    from mlestruct.roommates.words import number

    sure = [c for c in summary.surest if c.low > 0 or c.high < 0] if summary.sure else []
    open_ = list(dict.fromkeys(c.column for c in summary.surest if c not in sure))
    lines = [
        f"  {effect(c, model.questions_)} ({number(exp(c.low))} to {number(exp(c.high))})"
        for c in sure
    ]
    return [
        f"learned from {summary.pairs} pairs:" if sure else REPORT["nothing sure"],
        *lines,
        *([f"not told by these pairs: {', '.join((*open_, *summary.unidentified))}"]
          if open_ or summary.unidentified else []),
        *summary.notes,
    ]  # fmt: skip


def _used_as(told: Settings, name: str) -> str:
    return ", ".join(WORDS[use] for use in told.uses().get(name, ["ignore"]))


def _refuse_lost(found: Inputs) -> None:
    """A column that kept people apart does not go away in silence."""
    for name, roles in found.columns_gone:
        if {"same", "cohort"} & set(roles):
            raise ValueError(
                f"column {name!r} kept people apart and is in no table now: rename it in "
                f"{found.project.file}, or take it out there"
            )


def add_assign(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("assign", help="pair up people")
    add_people(parser)
    add_options(parser, *RULES, "unknown", "rooms", *SHOWN)
    parser.set_defaults(run=run_assign)


def run_assign(given: argparse.Namespace) -> int:
    """Print the plan; write pairs.csv, probabilities.csv and report.html."""
    from mlestruct.roommates.report import Report

    planned = planned_by(given)
    report = Report(
        planned.model,
        planned.people,
        planned.plan,
        names=given.names or planned.names,
        protected=given.show_protected,
    )
    plan = report.plan
    wrote = finish(plan if given.technical else _planned(report), report, given)
    tell(
        given,
        pairs=plan.pairs,
        singles=plan.singles,
        left_over=plan.left_over,
        total=plan.objective,
        gap=plan.gap,
        notes=plan.people.notes,
        unused=[part for part in planned.given.decided if part.why],
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
    return "\n".join(
        [
            *report.headline()[:1],
            *([aligned(head, rows)] if rows else []),
            *([f"  … and {more} more pairs"] if more > 0 else []),
            *alone,
            *plan.people.notes,
        ]
    )


def loaded(given: argparse.Namespace) -> tuple[RoommateModel, Inputs]:
    """The model, with what is told of unknown answers, and the tables under its columns."""
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.questionnaire import listed

    model = RoommateModel.load(given.model)
    own: dict[str, Any] = {
        name: tuple(listed(getattr(model, name))) for name in ("same", "room", "partner")
    }
    own |= {"partners": tuple(model.partners), "id": model.id, "cohort": model.cohort}
    found = inputs(given, own)
    unknown = getattr(given, "unknown", None)
    if unknown is None and found.choices.settings:
        unknown = found.choices.settings.unknown
    model.set_params(max_seconds=given.max_seconds)
    if unknown is not None:
        model.set_params(unknown=unknown)
    return model, found


def planned_by(given: argparse.Namespace) -> Planned:
    """The plan of a command, under what was decided; what does not fit is said."""
    from mlestruct.roommates.office import Planned
    from mlestruct.roommates.rooms import Placed

    model, found = loaded(given)
    people = found.here(_to_plan(given, model, found))
    found.__dict__["parts"] = found.named("people"), people
    ids = {str(who): who for who in people.as_names(model.id).tolist()}

    def placed(pair: Sequence[str], option: str) -> Placed:
        return Placed.of([ids.get(who, who) for who in pair], f"--{option} {' '.join(pair)}")

    asked: dict[str, Any] = {
        name: [placed(pair, name) for pair in getattr(given, name)] for name in RULES[:2]
    }
    asked["mix"] = given.mix
    planned = Planned(found, model, people, asked)
    gone = len(found.left & {str(who) for who in found.named("people").as_names(model.id)})
    say(given, *([f"{gone} people who left are not planned"] if gone else []))
    for part in found.decided:
        if part.why:
            say(given, _unused(part))
    return planned


def _to_plan(given: argparse.Namespace, model: RoommateModel, found: Inputs) -> Table:
    """Whom to pair up: those named, else the project's, else those not learned from."""
    people = found.named("people")
    if given.only is not None:
        return found.of_cohorts(given.only)
    if "new" in found.choices.files or (found.choices.planned and given.people is None):
        return found.parts[1]
    known = model.cohorts_
    left = [cohort for cohort in found.cohorts if cohort not in known]
    if not known or len(left) == len(found.cohorts):
        return people
    if not left:
        raise ValueError(
            f"all people are of {model.cohort} {', '.join(found.cohorts)}, which was learned "
            "from: name whom to pair up by only="
        )
    say(given, f"not planned, since learned from: {model.cohort} {', '.join(known)}")
    return found.of_cohorts(left)


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


def add_evaluate(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("evaluate", help="judge a model on pairs it has not seen")
    add_people(parser, "pairs")
    add_options(parser, "unknown", *SHOWN)
    parser.set_defaults(run=run_evaluate)


def run_evaluate(given: argparse.Namespace) -> int:
    """Print the evaluation; write what assign writes, with the evaluation in the report."""
    from mlestruct.roommates.report import Report

    model, found = loaded(given)
    people = found.named("people") if given.only is None else found.of_cohorts(given.only)
    pairs = found.pairs(people)
    shown = {"names": given.names, "protected": given.show_protected, "mix": given.mix or ()}
    report = Report.of(model, people, people if pairs is None else pairs, **shown)
    evaluation = report.evaluation
    assert evaluation is not None
    wrote = finish(evaluation if given.technical else _judged(evaluation), report, given)
    tell(given, **vars(evaluation), files=wrote)
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


def add_explain(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("explain", help="why two people are a pair, and who else was near")
    add_people(parser, "person")
    parser.add_argument("--partner", metavar="ID", help="default: the plan's")
    add_options(parser, *RULES, "unknown", "show-protected")
    parser.set_defaults(run=run_explain)


def run_explain(given: argparse.Namespace) -> int:
    """Print the contributions of all answers, then the alternatives."""
    from mlestruct.roommates.words import percent

    planned = planned_by(given)
    own = dict(zip(planned.texts, planned.ids, strict=True))
    person, partner = (own.get(who, who) for who in (given.person, given.partner))
    plan = planned.plan
    found = planned.model.explain(plan, person, partner, protected=given.show_protected)
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
    from mlestruct.roommates.project import Decided, locked

    planned = planned_by(given)
    choices, who = planned.given.choices, tuple(given.who)
    row = {text: k for k, text in enumerate(planned.texts)}
    strange = next((one for one in who if one not in row and given.kind != "back"), None)
    if strange is not None or len(who) != (2 if given.kind in ("together", "swap", "apart") else 1):
        raise ValueError(
            f"nobody who is planned has id {strange!r}"
            if strange
            else f"{given.kind}: name "
            "two people for together, swap and apart, and one for the others"
        )
    lines = []
    if len(who) == 2:
        a, b = (row[one] for one in who)
        made, _ = planned.changed(given.kind, a, b)
        lines = planned.cost(given.kind, a, b)["words"]
    elif given.kind == "back":
        made = tuple(part for part in choices.decided if who[0] not in part.who)
    elif given.kind == "left":
        made = (*choices.decided, Decided("left", who))
    else:
        home, room = planned.home(row[who[0]])
        made = locked(choices.decided, home, room, given.kind == "lock")
    if given.yes:
        project, _ = project_of(given)
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
    from mlestruct.roommates.doctor import examine
    from mlestruct.roommates.office import opened
    from mlestruct.roommates.project import Settings
    from mlestruct.roommates.survey import Surveyed, survey

    given.project = given.project or _free(given.tables)
    project, choices = project_of(given)
    own = [file for kind, file in choices.files.items() if kind in TABLES[:2]]
    paths = given.tables or [str(project.path(f)) + (f"#{f.sheet}" if f.sheet else "") for f in own]
    if not paths:
        raise ValueError("name the tables: people, and who shared in earlier years")
    spelled = choices.settings.spelled if choices.settings else {}
    read = (opened("", path, None, None, **choices.reading) for path in paths)
    tables = [table.respelled(spelled) for table in read]
    say(given, *(line for table in tables for line in table.said))
    told = told_by(given, choices)
    _refuse_unknown(told, tables)
    findings: list[tuple[int, str, str]] = []
    settings = Settings(**told)
    if choices.settings is not None:
        settings, findings = _under(project, choices, told, tables)
    found = examine(tables, settings, choices.settings is not None)
    findings += [(f.table, f.severity, for_shell(f.words)) for f in found.findings]
    surveys = [survey(table) for table in tables]
    for number, table in enumerate(tables):
        say(given, f"{paths[number]}: {len(table)} rows, {len(table.names)} columns")
        say(given, aligned(Surveyed._fields, surveys[number]))
        mine = sorted((f for f in findings if f[0] == number), key=lambda f: f[1] == "note")
        for _, severity, words in mine:
            say(given, f"  {'-' if severity == 'note' else '!'} {words}")
    if choices.settings is None:
        _propose(given, project, choices, tables, paths, found.settings, surveys)
    by = {s: [{"file": paths[k], "words": w} for k, own, w in findings if own == s]
          for s in ("stop", "puzzle", "note")}  # fmt: skip
    ready = not by["puzzle"] and not any(f.code == "nobody shares" for f in found.findings)
    command = ["mlestruct", "roommates", "fit"] if ready else ["mlestruct", "check"]
    command += ["--project", given.project] if given.project != FILE else []
    if by["puzzle"]:
        say(given, "these tables are not understood, because")
        say(given, *(f"  {one['words']}" for one in by["puzzle"]))
        say(given, f"say it in {given.project}, then:", f"  {shlex.join(command)}")
    else:
        say(given, "to learn from these tables:" if ready else "next:", f"  {shlex.join(command)}")
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
        fit=shlex.join(command),
        project=given.project,
    )
    return 3 if by["puzzle"] else 1 if by["stop"] else 0


def _under(
    project: Project, choices: Choices, told: Mapping[str, Any], tables: Sequence[Table]
) -> tuple[Settings, list[tuple[int, str, str]]]:
    """The settings of a project for these tables, and what in it does not fit them."""
    from mlestruct.roommates.office import Inputs

    order = _people_first(tables, choices.settings.id if choices.settings else "")
    people = order[0]
    held = Inputs(project, replace(choices, files={}), told)
    held.tables.update({kind: tables[k] for kind, k in zip(TABLES[:2], order, strict=False)})
    findings = []
    for name, roles in held.columns_gone:
        severity = "stop" if {"same", "cohort"} & set(roles) else "note"
        words = WORDS["unfit column"].format(roles=", ".join(WORDS[role] for role in roles))
        findings.append((people, severity, f"column {name!r}: {words}"))
    for name in held.columns_new:
        used = _used_as(held.settings, name)
        findings.append((people, "note", f"column {name!r} is new: {used}"))
    for part in held.decided if len(tables) > 1 else ():
        if part.why:
            findings.append((people, "note", _unused(part)))
    return held.settings, findings


def _people_first(tables: Sequence[Table], ids: str) -> list[int]:
    """The tables' numbers, that of people first."""
    return sorted(range(len(tables)), key=lambda k: ids not in tables[k].names)


def _unused(part: Decided) -> str:
    """A decision that does not fit, and why."""
    words = WORDS[f"decided {part.kind}"].format(who=" + ".join(part.who), room=part.room)
    return f"{words}. {WORDS['not in use'].format(why=part.why)}"


def _free(tables: Sequence[str]) -> str:
    """The usual project, or the next that is not of other tables."""
    from mlestruct.roommates.project import Project

    number, path = 2, Path(FILE)
    while tables and path.exists():
        files = Project(path.parent, path.name).choices().files
        named = {file.kept + (f"#{file.sheet}" if file.sheet else "") for file in files.values()}
        if set(tables) <= named:
            break
        path, number = Path(FILE).with_stem(f"roommates-{number}"), number + 1
    return str(path)


def _propose(
    given: argparse.Namespace,
    project: Project,
    choices: Choices,
    tables: Sequence[Table],
    paths: Sequence[str],
    settings: Settings,
    surveys: Sequence[Any],
) -> None:
    """Write the proposal, with what is in every column as a comment."""
    from mlestruct.roommates.office import Inputs
    from mlestruct.roommates.project import Dropped

    order = _people_first(tables, settings.id)
    files = {kind: Dropped(paths[k], "") for kind, k in zip(TABLES, order[:2], strict=False)}
    notes = {row.column: row.values for row in surveys[order[0]]}
    made = replace(choices, settings=replace(settings, fit={}))
    held = Inputs(project, made)
    held.tables.update({kind: tables[k] for kind, k in zip(TABLES[:2], order, strict=False)})
    made = replace(made, files=files, planned=held.unpaired)
    try:
        project.keep(made, notes)
    except (OSError, ValueError) as error:
        say(given, f"no proposal is written: {error}")
    else:
        say(given, f"wrote what is proposed for every column, to be corrected: {project.file}")


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


def add_example(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_options(parser, "json", "out", "force")
    parser.set_defaults(run=run_example)


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


def add_serve(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("serve", help="a page on this machine, from files to a plan")
    words = f"keeps everything; default: {PAGE}"
    parser.add_argument("--project", metavar="FOLDER", default=PAGE, help=words)
    add_options(parser, "port", "no-browser", "json")
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
    for add_part in (add_fit, add_assign, add_change, add_evaluate, add_explain, add_serve):
        add_part(parts)
