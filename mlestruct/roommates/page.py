"""What the page shows of a case, and which of its tables a dropped file is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from mlestruct.roommates.doctor import who_is_who
from mlestruct.roommates.observed import Crossed
from mlestruct.roommates.office import EXAMINED, Json, Office, opened
from mlestruct.roommates.project import Choices, Decided, Dropped, Project
from mlestruct.roommates.reading import sheets
from mlestruct.roommates.words import PAGE

TRIED = 8  # sheets of a workbook that are looked into


def overview(office: Office, learning: bool) -> Json:
    """Every dropped file, what the doctor says, what columns are for, decisions, and the plan."""
    files: dict[str, Json] = {}
    for kind, file in office.choices.files.items():
        listed = office.sheets.get(kind, [])
        files[kind] = {"name": file.name, "sheets": listed, "sheet": file.sheet}
        if kind in office.faults:
            files[kind]["fault"] = office.faults[kind]
        else:
            said = "; ".join(office.tables[kind].said) or file.name
            files[kind] |= {"rows": len(office.tables[kind]), "said": said}
    names = {kind: office.tables[kind].names if kind in office.tables else [] for kind in EXAMINED}
    fitted = office.project.model.exists()
    found: Json = {"files": files, "columns": names, "roles": None, "fitted": fitted}
    found |= {"decisions": decisions(office), "plan": None, "fault": ""}
    if not office.ready or any(kind in office.faults for kind in EXAMINED):
        return found
    if fitted and not learning:
        try:
            found["plan"] = office.shown
        except (ValueError, LookupError, OSError) as error:
            found["fault"] = words(error)
    return found | {
        "roles": vars(office.settings) | {"way": office.settings.way},
        "offered": office.offered,
        "agreeing": office.agreeing,
        "findings": [
            {"kind": "remark" if one.severity == "note" else "fault", "words": one.on_page}
            for one in sorted(office.examined.findings, key=lambda one: one.severity == "note")
        ],
        "cohorts": office.cohorts,
        "planned": office.planned,
    }


def words(error: Exception) -> str:
    """Why something is refused, in the page's words."""
    found = error.words("page") if isinstance(error, Crossed) else str(error)
    return found or type(error).__name__


def decisions(office: Office) -> list[Decided]:
    """What was decided, with the reason why it is out of use; what does not fit comes first."""
    found = [*office.decided]
    for name, roles in office.columns_gone:
        why = PAGE["unfit column"].format(roles=", ".join(PAGE[role] for role in roles))
        found.append(Decided("column", (name,), why=why))
    planned = office.choices.planned
    own = "people" in office.tables and "new" not in office.choices.files
    if own and planned is not None and planned not in office.cohorts:
        found.append(Decided("planned", (planned,), why=PAGE["unfit planned"]))
    return sorted(found, key=lambda part: part.why is None)


def readable(kind: str, path: Path) -> None:
    """ValueError where no sheet of a file is a table of its kind."""
    faults: list[ValueError] = []
    listed: list[str | None] = [*sheets(path)[:TRIED]]
    for sheet in listed or [None]:
        try:
            opened(kind, path, sheet, None)
            return
        except ValueError as error:
            faults.append(error)
    raise faults[0]


def dropped(project: Project, kind: str, file: Dropped) -> Choices:
    """The choices with a new file; a workbook with people and pairs is taken as both."""
    old = project.choices()
    files, tables = {**old.files, kind: file}, {}
    if kind == "people" and "pairs" not in old.files:
        with suppress(ValueError):
            for sheet in sheets(project.path(file))[:TRIED]:
                with suppress(ValueError):
                    tables[sheet] = opened("", project.path(file), sheet, None)
    fits = []
    for one, other in permutations(tables, 2):
        who = who_is_who([tables[one], tables[other]])
        if who and who.id in tables[one].names and (who.partners or who.room):
            ends = set(who.partners or (who.id, *who.room))
            if ends <= set(tables[other].names) and not set(who.partners) & set(tables[one].names):
                fits.append((one, other))
    if len(fits) == 1:
        files["people"], files["pairs"] = (file._replace(sheet=sheet) for sheet in fits[0])
    return replace(old, files=files)
