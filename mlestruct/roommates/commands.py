"""``mlestruct check``, and ``mlestruct roommates`` with its parts."""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mlestruct.errors import HIDDEN, visible
from mlestruct.results import SHOWN, aligned
from mlestruct.roommates.words import FILE
from mlestruct.roommates.words import PAGE as WORDS

if TYPE_CHECKING:
    from mlestruct.roommates.doctor import Diagnosis
    from mlestruct.roommates.evaluation import Evaluation
    from mlestruct.roommates.frames import Table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.office import Office
    from mlestruct.roommates.plan import Explanation
    from mlestruct.roommates.project import Choices, Decided, Project
    from mlestruct.roommates.report import Report

T = TypeVar("T")

FIT = ("alpha", "max_seconds")  # settings of a fit beside columns
READING = ("decimal", "encoding", "header", "separator")
TABLES = ("people", "pairs", "rooms", "rules")
OUT, MODEL, PAGE = "roommates-out", "roommates.npz", "roommates-project"
CHANGES = {
    "together": "put two people together",
    "swap": "each of two people with the other's partner",
    "apart": "two people who share in no plan",
    "lock": "a home stays as it is in all later plans",
    "unlock": "or no longer",
    "left": "somebody is not planned any more",
    "back": "let all go that was decided about somebody",
}


def names(text: str) -> tuple[str, ...]:
    """``a,b`` as a list; a name that holds a comma stands between double quotation marks."""
    rows = csv.reader([text], skipinitialspace=True)
    return tuple(name.strip() for row in rows for name in row if name.strip())


def reader(convert: Callable[[str], T], words: str, holds: Any = bool) -> Callable[[str], T]:
    """What reads an option's text, or says in words what it needs."""

    def read(text: str) -> T:
        with suppress(ValueError):
            if holds(found := convert(text)):
                return found
        raise argparse.ArgumentTypeError(f"needs {words}, not {text!r}")

    return read


def _columns(words: str) -> dict[str, Any]:
    """An option of names of columns."""
    return {"type": names, "metavar": "COLUMNS", "help": words}


def _two(words: str) -> dict[str, Any]:
    """An option of two people."""
    return {"nargs": 2, "action": "append", "default": [], "metavar": "ID", "help": words}


def _value(metavar: str, words: str, read: Any = str, default: Any = None) -> dict[str, Any]:
    """An option of one value."""
    return {"type": read, "default": default, "metavar": metavar, "help": words}


def _choice(words: str, *allowed: str) -> dict[str, Any]:
    """One of a few words; without it, the project's or the model's own."""
    return {"choices": allowed, "help": words}


def _switch(words: str) -> dict[str, Any]:
    return {"action": "store_true", "help": words}


ALPHA = "ridge (λ/2)‖θ‖² on the weights; of several, held-out cohorts choose (default: 1)"
alphas = reader(lambda text: [float(number) for number in names(text)], "numbers above 0")
seconds = reader(float, "a number of seconds, 0 or more", lambda number: number >= 0)
line = reader(int, "a whole number, 1 or more", lambda number: number > 0)
port = reader(int, "a whole number from 0 to 65535", lambda number: 0 <= number < 65536)
OPTIONS: dict[str, dict[str, Any]] = {
    "alpha": _value("NUMBERS", ALPHA, alphas),
    "binary": _columns("answers that agree or differ"),
    "categorical": _columns("answers without an order"),
    "checkpoint": _value("FILE", "keep the fit there; go on from it where it was ended"),
    "cohort": _value("COLUMN", "pairs stay within a cohort"),
    "decimal": _choice("the decimal mark of numbers in files", ".", ","),
    "encoding": _value("NAME", "of files, such as utf-8, cp1252 or mac_roman"),
    "forbid": _two("two people who may not share; repeatable"),
    "force": _switch("overwrite files that are there"),
    "header": _value("LINE", "the line of column names in files", line),
    "id": _value("COLUMN", "people's ids (default: id)"),
    "ignore": _columns("columns to leave out of patterns"),
    "json": _switch("print one JSON object"),
    "larger": _choice("what becomes of rooms of three and more", "refuse", "leave_out"),
    "max-seconds": _value("SECONDS", "end after these with what is found", seconds),
    "missing": _choice("missing answers: refused, or as average ones", "refuse", "neutral"),
    "mix": _columns("partners may differ in these, though (nearly) all observed pairs agree"),
    "model": _value("FILE", f"default: {MODEL}", default=MODEL),
    "names": _value("COLUMN", "show this column beside ids"),
    "no-answer": _value("VALUES", "codes for no answer in all columns: 99,-1", names),
    "no-browser": _switch("only print the address"),
    "only": _value("COHORTS", "people of these cohorts", names),
    "ordinal": _columns("answers that are numbers, compared by difference"),
    "out": _value("FOLDER", f"default: {OUT}, or {OUT}-2 and so on", default=OUT),
    "partner": _columns("who shares is named in these columns"),
    "partners": _columns("of ids in a table of pairs (default: id_a,id_b)"),
    "port": _value("N", "default: any that is free", port, 0),
    "project": _value("FILE", f"what was decided; default: {FILE}, where it is there"),
    "protected": _columns("answers that explanations do not itemise"),
    "require": _two("two people who must share; repeatable"),
    "room": _columns("who shares has the same room in these columns"),
    "rooms": _value("ROOMS", "columns room, size, and perhaps fixed"),
    "rules": _value("RULES", "columns rule (forbid, require or allow), id_a, id_b"),
    "same": _columns("partners agree in these, such as gender"),
    "separator": _choice("the sign between cells of files", ",", ";", "|", "tab"),
    "show-protected": _switch("itemise protected columns"),
    "strict": _switch("exit with 1 if the fit has not converged"),
    "technical": _switch("theorems, certificates and scores instead of plain words"),
    "trust": _columns("answers there are as meant"),
    "unknown": _choice("answers new since the fit", "refuse", "neutral"),
    "yes": _switch("do it"),
    "explain partner": _value("ID", "default: the plan's"),
    "serve project": _value("FOLDER", f"keeps everything; default: {PAGE}", default=PAGE),
}
NAMED = "|".join([*(name for name in OPTIONS if " " not in name), "sheet"]).replace("-", "_")
PYTHON = re.compile(rf"\b({NAMED})=(?:'([^']*)'|(?=([\w(])))?")


def for_shell(message: str) -> str:
    """In the words of the command line: ``missing='neutral'`` is ``--missing neutral``."""

    def option(found: re.Match[str]) -> str:
        name, quoted, more = found.groups()
        if quoted and "," in quoted:
            quoted = f'"{quoted}"'
        value = f" {shlex.quote(quoted)}" if quoted else " " if more else ""
        return f"--{name.replace('_', '-')}{value}"

    return re.sub(r"(?<!--)\bmax_seconds\b", "--max-seconds", PYTHON.sub(option, message))


def say(given: argparse.Namespace, *lines: object) -> None:
    """To a person: on the output, or beside it where the output is JSON."""
    for text in lines:
        print(visible(str(text)), file=sys.stderr if given.json else sys.stdout, flush=True)


def wrapped(text: str, indent: str = "") -> str:
    """A text on a screen of eighty columns; paths stay whole."""
    wrapper = textwrap.TextWrapper(78, indent, indent, break_long_words=False)
    wrapper.break_on_hyphens = False
    return wrapper.fill(text)


def tell(given: argparse.Namespace, **found: Any) -> int:
    """To a program, one JSON object where it was asked for; all went well."""
    if given.json:
        text = json.dumps(plain(found), ensure_ascii=False)
        print(HIDDEN.sub(lambda sign: json.dumps(sign[0])[1:-1], text))
    return 0


def plain(value: Any) -> Any:
    """What JSON has words for: named tuples by their fields, and nothing for infinity."""
    value = value.tolist() if hasattr(value, "tolist") else value
    value = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    if isinstance(value, float):
        return value if abs(value) < inf else None
    return value if value is None or isinstance(value, (int, str)) else str(value)


def spare(place: Path, given: argparse.Namespace) -> None:
    """A table that was read is never written over, whatever ``--force`` says."""
    for name in (*TABLES, "model"):
        own = Path((getattr(given, name) or "").partition("#")[0])
        both = (name != "model" or given.out) and place.is_file() and own.is_file()
        if both and place.samefile(own):
            raise ValueError(f"{place} is a table that this command reads; name another")


def new_folder(path: str, force: bool) -> Path:
    """A folder for results: the one named, or the first of path-2, path-3, … that is empty."""
    whole = Path(path).absolute() if Path(path).name in ("", "..") else path
    for number in count(1):
        place = Path(path if number == 1 else f"{whole}-{number}")
        if force or not place.exists() or (place.is_dir() and not any(place.iterdir())):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)  # results are about people
            return place
    raise AssertionError("numbers do not end")


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
        if own := getattr(given, kind):
            files[kind] = Dropped(own if path.parent == Path() else str(Path(own).absolute()))
    reading = {n: getattr(given, n) for n in READING if getattr(given, n) is not None}
    if given.separator == "tab":
        reading["separator"] = "\t"
    return project, replace(choices, files=files, reading={**choices.reading, **reading})


def told_by(given: argparse.Namespace, choices: Choices) -> dict[str, Any]:
    """The settings that options name; they go before those of the project."""
    from mlestruct.roommates.project import WAYS, Settings

    usual, said = vars(Settings()), vars(given)
    told = {n: said[n] for n in usual if n != "fit" and said.get(n) is not None}
    if any(way in told for way in WAYS):
        told = {way: usual[way] for way in WAYS} | told
    fit = {name: said[name] for name in FIT if said[name] is not None}
    return told | {"fit": {**(choices.settings.fit if choices.settings else {}), **fit}}


def office_of(given: argparse.Namespace, *, fitted: bool = True) -> Office:
    """The case that a command is about, with its model; how each table was read is said."""
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.office import Office

    project, choices = project_of(given)
    if "people" not in choices.files:
        raise ValueError(f"name a table of people, or write a project by mlestruct check ({FILE})")
    model = RoommateModel.load(given.model) if fitted else None
    if fitted and given.people:  # whom these are about is not the project's to say
        choices = replace(choices, planned=None)
    found = Office(project, choices, told_by(given, choices), model=model, only=given.only)
    say(given, *(line for table in found.tables.values() for line in table.said))
    if model is not None:
        model.set_params(max_seconds=given.max_seconds)
        if given.unknown or choices.settings:
            model.set_params(unknown=found.settings.unknown)
    return found


def run_fit(given: argparse.Namespace) -> int:
    """Learn from people and the pairs observed: what was learned, and a model file."""
    from mlestruct.errors import DataWarning
    from mlestruct.roommates.report import untold

    if Path(given.model).exists() and not given.force:
        raise ValueError(f"{given.model} is there already; name another, or overwrite by --force")
    spare(Path(given.model), given)
    office = office_of(given, fitted=False)
    for severity, words in _changed(office):
        if severity == "stop":
            raise ValueError(words)
        say(given, words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the notes say it
        model = office.fit(checkpoint=given.checkpoint)
    summary = model.summary()
    model.save(given.model)
    said = {line for table in office.tables.values() for line in table.said}
    notes = [note for note in model.notes_ if note not in said and not note.startswith("alpha")]
    say(
        given,
        *([summary] if given.technical else [*_learned(model, office.settings.words), *notes]),
    )
    say(given, f"wrote {given.model}", *_next(given, office, model.cohorts_))
    return tell(
        given,
        model=given.model,
        contrasts=list(map(vars, model.known_.told.rows)),
        unidentified=untold(model),
        notes=model.notes_,
        certificate=model.certificate_,
        alpha=model.alpha_,
    )


def _learned(model: RoommateModel, questions: Mapping[str, str]) -> list[str]:
    """What was learned, in words."""
    from mlestruct.roommates.report import effect, untold
    from mlestruct.roommates.words import REPORT

    effects = model.effects()
    sure = [(column, c) for column, c in effects if c.low > 0 or c.high < 0]
    open_ = dict.fromkeys(column for column, c in effects if (column, c) not in sure)
    said = (effect(model, column, c, questions) for column, c in sure)
    lines = [f"  {who} share {n} times as often ({low} to {high})" for who, n, low, high in said]
    lost = ", ".join((*open_, *untold(model)))
    head = f"learned from {model.known_.told.units} pairs; ranges in brackets hold 19 times in 20:"
    head = head if sure else REPORT["nothing sure"]
    return [head, *lines, *([f"no clear effect in these pairs: {lost}"] if lost else [])]


def again(given: argparse.Namespace, command: str, *words: Any) -> str:
    """Another command about the same tables, project and model, as it can be typed."""
    typed = ["mlestruct", "roommates", command, *filter(None, [given.people]), *map(str, words)]
    typed += ["--project", given.project] if given.project else []
    typed += ["--model", given.model] if given.model != MODEL else []
    return f"  {shlex.join(typed)}"


def _next(given: argparse.Namespace, office: Office, learned: Sequence[str]) -> Iterator[str]:
    """How to test what was learned, and how to use it: commands that run as they are printed."""
    others = [cohort for cohort in office.cohorts if cohort not in learned]
    shared = [cohort for cohort in others if cohort != office.unpaired]
    if shared or len(learned) > 1:
        yield "how good it is, on pairs it has not seen:"
        if not shared:
            yield "  " + shlex.join([*given.typed, "--only", ",".join(learned[:-1]), "--force"])
        pairs = filter(None, [given.pairs])
        yield again(given, "evaluate", *pairs, "--only", ",".join(shared or learned[-1:]))
    if others or not office.cohorts:
        yield from ("to pair people up:", again(given, "assign"))


def planned_by(given: argparse.Namespace) -> Office:
    """A plan, under what was decided; what does not fit is said."""
    from mlestruct.roommates.rooms import Placed

    office = office_of(given)
    if office.skipped:
        learned = ", ".join(office.own.cohorts_ if office.own else ())
        say(given, f"not planned, since learned from: {office.settings.cohort} {learned}")
    office.rules = {"mix": given.mix or ()}
    for option in ("forbid", "require"):
        office.rules[option] = [
            Placed(office.id_of(a) or a, office.id_of(b) or b, f"--{option} {a} {b}")
            for a, b in getattr(given, option) or ()
        ]
    gone = len(office.left & set(map(str, office.named("people").listed(office.settings.id))))
    say(given, *([f"{gone} people who left are not planned"] if gone else []))
    say(given, *(_unused(part) for part in office.decided if part.why))
    return office


def run_assign(given: argparse.Namespace) -> int:
    """Pair up people: the plan, with pairs.csv, probabilities.csv and report.html."""
    office = planned_by(given)
    report = office.report(protected=given.show_protected)
    plan = report.plan
    say(given, plan if given.technical else _planned(report))
    wrote = finish(given, report)
    if plan.pairs:
        only = ["--only", ",".join(given.only)] if given.only else []
        say(given, "why two people share, and who else would suit:")
        say(given, again(given, "explain", plan.pairs[0].a, *only))
    return tell(
        given,
        **{name: getattr(plan, name) for name in ("pairs", "singles", "left_over", "gap")},
        total=plan.objective,
        notes=plan.people.notes,
        unused=[part for part in office.decided if part.why],
        files=wrote,
    )


def _planned(report: Report) -> str:
    """A plan in words: who shares, and how probable that is beside chance."""
    from mlestruct.roommates.words import percent

    plan = report.plan
    head = ["person", "with", "probable", "by chance", "group", "room"]
    rows = [
        (p.a, p.b, percent(p.probability), percent(plan.chance(p.a)), p.group, p.room)
        for p in plan.pairs
    ]
    roomy = 6 if any(p.room is not None for p in plan.pairs) else 5
    table = aligned(head[:roomy], [row[:roomy] for row in rows[:SHOWN]])
    more = [f"  … and {len(rows) - SHOWN} more pairs"] if len(rows) > SHOWN else []
    alone = [f"{s.person} ({WORDS['alone']}, {s.group})" for s in plan.singles]
    return "\n".join([*report.headline()[:1], table, *more, *alone, *plan.people.notes])


def finish(given: argparse.Namespace, report: Report) -> list[str]:
    """Write the files of a report, and say where."""
    from mlestruct.roommates.report import NO_PAGE

    folder = new_folder(given.out, given.force)
    for name in report.files:
        spare(folder / name, given)
    paths = list(map(str, report.write(folder)))
    say(given, "wrote " + ", ".join(paths), *[NO_PAGE] * (len(paths) < len(report.files)))
    return paths


def run_evaluate(given: argparse.Namespace) -> int:
    """Judge a model on pairs it has not seen; the report has the evaluation."""
    from mlestruct.roommates.report import Report

    office = office_of(given)
    people = office.of_cohorts(given.only) if given.only else office.named("people")
    pairs = office.pairs(people)
    shown = {"protected": given.show_protected, "names": given.names, "mix": given.mix or ()}
    report = Report.of(office.model, people, people if pairs is None else pairs, **shown)
    evaluation = report.evaluation
    assert evaluation is not None
    say(given, evaluation if given.technical else _judged(evaluation))
    wrote = finish(given, report)
    if not given.people:
        say(given, "the test is done; to learn from all pairs:", again(given, "fit", "--force"))
    found = {n: value for n, value in vars(evaluation).items() if n != "calibration"}
    return tell(given, **found, files=wrote)


def _judged(found: Evaluation) -> str:
    """How good a model is, in words."""
    from mlestruct.roommates.report import picks

    rates = [
        f"{'the most probable one' if k == 1 else f'one of the {k} most probable ones'}: "
        f"{100 * share:.0f} times in 100 (± {100 * found.top_error[k]:.0f}); "
        f"by guessing {100 * found.top_random[k]:.0f}"
        for k, share in found.top.items()
    ]
    head = "Somebody's partner is, among all who were possible,"
    few = ["These are too few pairs to compare anything by."] if found.few else []
    rows = [head, *(f"  {rate}" for rate in rates), *few, *found.notes]
    return "\n".join([found.count(), wrapped(picks(found)), *rows])


def run_explain(given: argparse.Namespace) -> int:
    """Why two people are a pair, and who else was near."""
    from mlestruct.roommates.words import percent

    office = planned_by(given)
    plan, texts = office.plan, (given.person, given.partner)
    person, partner = (who and (office.id_of(who) or who) for who in texts)
    found = office.model.explain(plan, person, partner, protected=given.show_protected)
    near = plan.alternatives(person)
    if given.technical:
        rows = aligned(type(near[0])._fields, near) if near else "  none"
        say(given, found, f"\nother partners of {person}:", rows)
    else:
        chance = percent(plan.chance(person))
        say(
            given,
            *_explained(found, chance, office.settings.words),
            f"others who would suit {person} (what suits one pair may cost others more):",
        )
        say(given, *(f"  {one.partner}: {percent(one.probability)} probable" for one in near))
        if near and not given.people:
            say(given, "what two others together would cost (asking changes nothing):")
            say(given, again(given, "change", "together", person, near[0].partner))
    return tell(given, **vars(found), alternatives=near)


def _explained(found: Explanation, chance: str, questions: Mapping[str, str]) -> list[str]:
    """Why two people are a pair, in words."""
    from mlestruct.roommates.report import reason
    from mlestruct.roommates.words import REPORT, number, percent

    parts = [part for part in found.contributions if abs(part.contribution) > 0.05]
    lines = [f"  {reason(part, questions)}" for part in parts]
    if found.withheld:
        lines.append("  " + REPORT["protected sum"].format(factor=number(exp(found.withheld))))
    share = percent(found.probability)
    head = f"{found.a} and {found.b}: {share} probable, {chance} by chance; beside other pairs:"
    return [head, *(lines or ["  nothing speaks much for or against it"])]


def run_change(given: argparse.Namespace) -> int:
    """What a change of the plan would cost; with --yes, it holds from now on."""
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
    return tell(given, lines=lines, decided=made)


def run_check(given: argparse.Namespace) -> int:
    """What is in tables, what is wrong, how to learn; exit 1: faults, 3: not understood."""
    from mlestruct.roommates.frames import survey
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
    office, found, order = _examined(project, choices, told_by(given, choices), tables)
    findings = [(order[0], *one) for one in _changed(office)]
    if len(tables) > 1:
        findings += [(order[0], "note", _unused(part)) for part in office.decided if part.why]
    findings += [(f.table, f.severity, for_shell(f.words)) for f in found.findings]
    surveys = [survey(table) for table in tables]
    for number, (table, rows) in enumerate(zip(tables, surveys, strict=True)):
        say(given, f"{paths[number]}: {len(table)} rows, {len(table.names)} columns")
        say(given, aligned(type(rows[0])._fields, rows))
        mine = sorted((f for f in findings if f[0] == number), key=lambda f: f[1] == "note")
        say(given, *(f"  {'-' if own == 'note' else '!'} {words}" for _, own, words in mine))
    if old is None:
        here = project.folder == Path()
        kept = [own if here else str(Path(own).absolute()) for own in paths]
        files = {kind: Dropped(kept[k]) for kind, k in zip(TABLES, order, strict=False)}
        notes = {row.column: row.values for row in surveys[order[0]]}
        try:
            project.keep(replace(office.choices, files=files, planned=office.unpaired), notes)
            say(given, f"wrote what is proposed for every column, to be corrected: {project.file}")
        except (OSError, ValueError) as error:
            say(given, f"no proposal is written: {error}")
    by = {
        kind: [{"file": paths[k], "words": w} for k, own, w in findings if own == kind]
        for kind in ("stop", "puzzle", "note")
    }
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
    from mlestruct.roommates.project import WAYS, Settings

    known = dict.fromkeys(name for table in tables for name in table.names)
    for option in ("id", "cohort", "same", *WAYS, "trust", "mix"):
        named = told.get(option) or ()
        for name in [named] if isinstance(named, str) else named:
            if name not in known and named != Settings.partners:
                raise ValueError(f"no table has a column {name!r}; there are {', '.join(known)}")
    found = examine(tables, Settings(**told)) if choices.settings is None else None
    if found is not None:
        choices, told = replace(choices, settings=replace(found.settings, fit={})), {}
    ids = choices.settings.id if choices.settings else ""
    order = sorted(range(len(tables)), key=lambda k: ids not in tables[k].names)[:2]
    held = {kind: tables[k] for kind, k in zip(TABLES, order, strict=False)}
    office = Office(project, choices, told, tables=held)
    return office, found or examine(tables, office.settings, True), order


def _changed(office: Office) -> Iterator[tuple[str, str]]:
    """Columns of a project that are gone, or new: how severe that is, and words."""
    for name, roles in office.columns_gone:
        words = WORDS["unfit column"].format(roles=", ".join(WORDS[role] for role in roles))
        if {"same", "cohort"} & set(roles):
            words = "it kept people apart and is in no table now: rename it in "
            words += f"{office.project.file}, or take it out there"
        yield "stop" if {"same", "cohort"} & set(roles) else "note", f"column {name!r}: {words}"
    for name in office.columns_new:
        used = ", ".join(WORDS[use] for use in office.settings.uses().get(name, ["ignore"]))
        yield "note", f"column {name!r} is new: {used}"


def _unused(part: Decided) -> str:
    """A decision that does not fit, and why."""
    return f"{part}. {WORDS['not in use'].format(why=part.why)}"


EXAMPLE = (
    "An example: {people} invented students of three years, their answers to {questions} "
    "questions (bedtime, tidiness, smoking, …), and who shared a room with whom.",
    "Learning from the {pairs} pairs of years 1 and 2 …",
    "Pairing up year 3 from its answers alone, then looking who really shared:",
    "With tables of your own (CSV or Excel): mlestruct check PEOPLE PAIRS",
)


def run_roommates(given: argparse.Namespace) -> int:
    """Learn who shares with whom, pair up the next cohort; alone: a shipped example."""
    from mlestruct import data
    from mlestruct.roommates.frames import table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.report import NO_PAGE, Report

    people = table(data.shipped("roommates_people.csv"))
    pairs = table(data.shipped("roommates_pairs.csv"))
    before, after = people.rows(people["year"] < 3), people.rows(people["year"] == 3)
    learned, observed = pairs.rows(pairs["year"] < 3), pairs.rows(pairs["year"] == 3)
    asked = people.names[4:]  # after id, name, year, gender
    counts = {"people": len(people), "questions": len(asked), "pairs": len(learned)}
    first, learning, planning, yours = (wrapped(text.format(**counts)) for text in EXAMPLE)
    say(given, first, learning)
    model = RoommateModel(cohort="year", same="gender", ordinal=asked, alpha=(1.0, 10.0, 100.0))
    model.fit(before, learned)
    say(given, planning, "")
    report = Report.of(model, after, observed, names="name")
    wrote = list(map(str, report.write(new_folder(given.out, given.force))))
    page = f"The plan with its reasons, to open in a browser: {wrote[-1]}"
    lines = [*report.headline(), page if wrote[-1].endswith("html") else f"{wrote[0]}; {NO_PAGE}"]
    say(given, *(wrapped(text, "  ") for text in lines), "", yours)
    return tell(given, lines=lines, files=wrote)


def run_serve(given: argparse.Namespace) -> int:
    """A page on this machine, from files to a plan; Ctrl-C ends it."""
    from mlestruct.roommates.server import serve

    def ready(address: str) -> None:
        say(given, f"open {address}", f"Ctrl-C ends it; {given.project} keeps everything")
        tell(given, address=address, project=given.project)
        if not given.no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(given.project, given.port, ready)
    return 0


USUAL = ("project", "only", "json", "model", "max-seconds", *READING)
COLUMNS = ("id", "cohort", "same", "mix", "partners", "room", "partner", "larger", "no-answer")
ROLES = ("ordinal", "binary", "categorical", "ignore", "protected")
LEARN = ("alpha", "missing", "unknown", "checkpoint", "strict", "force", "technical")
PLAN = ("mix", "forbid", "require", "rules")
WRITE = ("technical", "unknown", "names", "show-protected", "out", "force")
WHY = ("explain partner", "unknown", "show-protected", "technical")
COMMANDS: dict[Callable[..., int], tuple[tuple[str, ...], tuple[str, ...]]] = {
    # the tables and people that each names, and its options
    run_check: (("tables",), (*COLUMNS, "trust", "project", "json", *READING)),
    run_roommates: ((), ("json", "out", "force")),
    run_fit: (("people", "pairs"), (*USUAL, *COLUMNS, *ROLES, *LEARN)),
    run_assign: (("people",), (*USUAL, *PLAN, "rooms", *WRITE)),
    run_change: (("kind", "who"), (*USUAL, *PLAN[:3], "yes")),
    run_evaluate: (("people", "pairs"), (*USUAL, "mix", *WRITE)),
    run_explain: (("people", "person"), (*USUAL, *PLAN, *WHY)),
    run_serve: ((), ("serve project", "port", "no-browser", "json")),
}
NAMES: dict[str, dict[str, Any]] = {
    "tables": {"nargs": "*", "metavar": "TABLE", "help": "people, pairs, others"},
    "people": {"nargs": "?", "metavar": "PEOPLE"},
    "pairs": {"nargs": "?", "metavar": "PAIRS"},
    "person": {"metavar": "ID"},
    "kind": {"choices": CHANGES, "help": "; ".join(f"{n}: {told}" for n, told in CHANGES.items())},
    "who": {"nargs": "+", "metavar": "ID"},
}


def add(commands: Any) -> None:
    """``mlestruct check``, and ``mlestruct roommates`` with its parts."""
    nothing = dict.fromkeys(name.replace("-", "_") for name in (*OPTIONS, *NAMES))
    for run, (named, options) in COMMANDS.items():
        command, words = run.__name__.removeprefix("run_"), run.__doc__
        parser = commands.add_parser(command, help=words, description=words)
        parser.set_defaults(**nothing | {"run": run})
        for name in named:
            parser.add_argument(name, **NAMES[name])
        for name in options:
            parser.add_argument(f"--{name.rpartition(' ')[2]}", **OPTIONS[name])
        if command == "roommates":
            commands = parser.add_subparsers(metavar="COMMAND")
