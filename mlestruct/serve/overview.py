"""What is in the dropped files, for the page; and what a file that is dropped changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

from mlestruct.doctor.roles import who_is_who
from mlestruct.serve.inputs import EXAMINED, SETTINGS, WANTED, Inputs, Json
from mlestruct.serve.project import Choices, Dropped, Project
from mlestruct.serve.words import TEXTS
from mlestruct.tables import Table, read, sheets

TRIED = 8  # sheets of a workbook that are looked into
LEARNED_FROM = ("people", "pairs")  # a new file of these needs a new fit


def overview(given: Inputs) -> Json:
    """Every dropped file, what the doctor says, what columns are for, and the cohorts."""
    known = {kind: _file(given, kind) for kind in given.choices.files}
    listed = {kind: given.tables[kind].names if kind in given.tables else [] for kind in EXAMINED}
    found: Json = {"files": known, "columns": listed, "settings": SETTINGS}
    found |= {"roles": None, "findings": [], "cohorts": [], "planned": None, "command": ""}
    found |= {"agreeing": [], **decisions(given)}
    found["fitted"] = given.project.model.exists()
    if not given.ready or any(kind in given.faults for kind in EXAMINED):
        return found
    findings = [
        {"kind": f.kind, "words": f.words}
        for f in sorted(given.examined.findings, key=lambda f: f.kind != "fault")
    ]
    return found | {
        "roles": given.roles,
        "offered": given.offered,
        "agreeing": given.agreeing,
        "findings": findings,
        "cohorts": given.cohorts,
        "planned": given.planned,
        "command": given.examined.command,
    }


def decisions(given: Inputs) -> Json:
    """What was decided; each with the reason why it is out of use now, or null."""
    found: list[Json] = [
        {
            "kind": part.kind,
            "who": list(part.who),
            "room": part.room,
            "why": part.why and TEXTS[part.why[0]].format(**part.why[1]),
        }
        for part in given.decided
    ]
    for name, roles in given.columns_gone:
        was = ", ".join(TEXTS[role] for role in roles)
        why = TEXTS["unfit column"].format(roles=was)
        found.append({"kind": "column", "who": [name], "room": None, "why": why})
    planned = given.choices.planned
    own = "people" in given.tables and "new" not in given.choices.files
    if own and planned is not None and planned not in given.cohorts:
        why = TEXTS["unfit planned"]
        found.append({"kind": "planned", "who": [planned], "room": None, "why": why})
    return {"decisions": found, "undo": bool(given.choices.before)}


def _file(given: Inputs, kind: str) -> Json:
    file = given.choices.files[kind]
    found: Json = {"name": file.name, "sheets": given.sheets.get(kind, []), "sheet": file.sheet}
    if kind in given.faults:
        return found | {"fault": given.faults[kind]}
    read_in = given.tables[kind]
    said = "; ".join(read_in.said) or file.name
    return found | {"rows": len(read_in), "said": said}


def readable(kind: str, path: Path) -> None:
    """ValueError where no sheet of a file is a table of its kind."""
    faults: list[ValueError] = []
    listed: list[str | None] = [*sheets(path)[:TRIED]]
    for sheet in listed or [None]:
        try:
            found = read(path, WANTED.get(kind, ()), sheet=sheet)
            for name in WANTED.get(kind, ()):
                _ = found[name]
            return
        except ValueError as error:
            faults.append(error)
    raise faults[0]


def dropped(project: Project, kind: str, file: Dropped) -> Choices:
    """The choices with a new file; a workbook with people and pairs is taken as both."""
    old = project.choices()
    files = {**old.files, kind: file}
    if kind == "people" and "pairs" not in old.files:
        both = _two_sheets(project, file)
        if both is not None:
            files["people"], files["pairs"] = (file._replace(sheet=sheet) for sheet in both)
    elif kind in EXAMINED:
        files[kind] = _with_sheet(project, files, kind)
    return replace(old, files=files)


def _two_sheets(project: Project, file: Dropped) -> tuple[str, str] | None:
    """The sheets of people and of who shared, where exactly two go together so."""
    names = _sheets(project, file)
    read_in = {name: _sheet(project, file, name) for name in names if len(names) <= TRIED}
    tables = {name: found for name, found in read_in.items() if found is not None}
    fits = []
    for one, other in permutations(tables, 2):
        who = who_is_who([tables[one], tables[other]])
        if who and who.id in tables[one].names and (who.partners or who.room):
            ends = set(who.partners or (who.id, *who.room))
            if ends <= set(tables[other].names) and not set(who.partners) & set(tables[one].names):
                fits.append((one, other))
    return fits[0] if len(fits) == 1 else None


def _with_sheet(project: Project, files: dict[str, Dropped], kind: str) -> Dropped:
    """The only sheet, or one that is not taken by the other table of the same workbook."""
    file = files[kind]
    names = _sheets(project, file)
    other = next((files[k] for k in EXAMINED if k != kind and k in files), None)
    if len(names) < 2 or other is None or other.name != file.name or other.sheet is None:
        return file
    left = [name for name in names if name != other.sheet]
    return file._replace(sheet=left[0]) if len(left) == 1 else file


def _sheets(project: Project, file: Dropped) -> list[str]:
    try:
        return sheets(project.path(file))
    except ValueError:
        return []


def _sheet(project: Project, file: Dropped, sheet: str) -> Table | None:
    """A sheet as a table; None where it is none."""
    try:
        return read(project.path(file), sheet=sheet)
    except ValueError:
        return None
