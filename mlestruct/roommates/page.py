"""The page: its document, what it shows of the dropped files, and what it may send.

It asks nothing but its own server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

from mlestruct.roommates.doctor import who_is_who
from mlestruct.roommates.office import EXAMINED, Json, Office, opened
from mlestruct.roommates.project import ALLOWED, ENDINGS, Choices, Dropped, Project
from mlestruct.roommates.reading import sheets
from mlestruct.roommates.report import HERE, STYLE, rendered
from mlestruct.roommates.words import PAGE
from mlestruct.storage.files import parsed

OWN, SCRIPT = ((HERE / f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
TRIED = 8  # sheets of a workbook that are looked into
EXPECTED: Mapping[str, Mapping[str, Any]] = {
    "choose": {"roles": dict, "planned": str | None},
    "fit": {},
    "sheet": {"kind": str, "sheet": str},
    "change": {"kind": str, "who": list},
    "undo": {},
    "let_go": {"kind": str, "who": list},
}
"""By what is asked: every entry of the request, and its type; lists are of texts."""
WORDS = {dict: "an object", str: "a text", list: "a list of texts", str | None: "a text or null"}


def page(token: str, nonce: str) -> str:
    """The document for this token; the script runs by the nonce alone."""
    told = json.dumps({"token": token, "words": PAGE}).replace("<", "\\u003c")
    script = f"const GIVEN = {told};{SCRIPT}"
    accepted = ",".join(ENDINGS)
    return rendered("page.html", style=STYLE + OWN, script=script, nonce=nonce, accepted=accepted)


def overview(office: Office) -> Json:
    """Every dropped file, what the doctor says, what columns are for, and the cohorts."""
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
    found: Json = {"files": files, "columns": names, "settings": ALLOWED, "roles": None}
    found |= decisions(office) | {"fitted": office.project.model.exists()}
    if not office.ready or any(kind in office.faults for kind in EXAMINED):
        return found
    findings = sorted(office.examined.findings, key=lambda one: one.severity == "note")
    return found | {
        "roles": vars(office.settings) | {"way": office.settings.way},
        "offered": office.offered,
        "agreeing": office.agreeing,
        "findings": [
            {"kind": "remark" if one.severity == "note" else "fault", "words": one.on_page}
            for one in findings
        ],
        "cohorts": office.cohorts,
        "planned": office.planned,
    }


def decisions(office: Office) -> Json:
    """What was decided; each with the reason why it is out of use now, or null."""
    found: list[Json] = [part._asdict() for part in office.decided]
    for name, roles in office.columns_gone:
        why = PAGE["unfit column"].format(roles=", ".join(PAGE[role] for role in roles))
        found.append({"kind": "column", "who": [name], "room": None, "why": why})
    planned = office.choices.planned
    own = "people" in office.tables and "new" not in office.choices.files
    if own and planned is not None and planned not in office.cohorts:
        why = PAGE["unfit planned"]
        found.append({"kind": "planned", "who": [planned], "room": None, "why": why})
    return {"decisions": found}


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


def sent(asked: str, body: bytes) -> dict[str, Any]:
    """The entries of a request, or a ValueError with the entry, its value and what is expected."""
    expected = EXPECTED[asked]
    try:
        found = parsed(body.decode() or "{}")
    except ValueError as error:
        raise ValueError(f"{asked}: no JSON that is read here: {error}") from error
    if not isinstance(found, dict) or set(found) != set(expected):
        known = ", ".join(expected) or "no entries"
        raise ValueError(f"{asked}: expected an object with {known}, not {found!r:.60}")
    for name, kind in expected.items():
        value = found[name]
        if not isinstance(value, kind) or (kind is list and not all(type(v) is str for v in value)):
            raise ValueError(f"{asked}: {name} is {value!r:.60}; expected {WORDS[kind]}")
    return found
