"""The page: its document, what it shows of the dropped files, and what it may send.

It asks nothing but its own server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

from mlestruct.roommates.doctor import who_is_who
from mlestruct.roommates.frames import Table
from mlestruct.roommates.office import EXAMINED, Inputs, Json, opened
from mlestruct.roommates.project import ALLOWED, ENDINGS, Choices, Dropped, Project
from mlestruct.roommates.reading import read, sheets
from mlestruct.roommates.report import HERE, STYLE, rendered
from mlestruct.roommates.words import PAGE
from mlestruct.storage.files import parsed

OWN, SCRIPT = ((HERE / f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))


def page(token: str, nonce: str) -> str:
    """The document for this token; the script runs by the nonce alone."""
    told = json.dumps({"token": token, "words": PAGE}).replace("<", "\\u003c")
    script = f"const GIVEN = {told};{SCRIPT}"
    accepted = ",".join(ENDINGS)
    return rendered("page.html", style=STYLE + OWN, script=script, nonce=nonce, accepted=accepted)


TRIED = 8  # sheets of a workbook that are looked into
LEARNED_FROM = ("people", "pairs")  # a new file of these needs a new fit


def overview(given: Inputs) -> Json:
    """Every dropped file, what the doctor says, what columns are for, and the cohorts."""
    known = {kind: _file(given, kind) for kind in given.choices.files}
    listed = {kind: given.tables[kind].names if kind in given.tables else [] for kind in EXAMINED}
    found: Json = {"files": known, "columns": listed, "settings": ALLOWED, **decisions(given)}
    found |= {"roles": None, "findings": [], "cohorts": [], "planned": None}
    found |= {"agreeing": [], "fitted": given.project.model.exists()}
    if not given.ready or any(kind in given.faults for kind in EXAMINED):
        return found
    findings = [
        {"kind": "remark" if f.severity == "note" else "fault", "words": f.on_page}
        for f in sorted(given.examined.findings, key=lambda f: f.severity == "note")
    ]
    return found | {
        "roles": vars(given.settings) | {"way": given.settings.way},
        "offered": given.offered,
        "agreeing": given.agreeing,
        "findings": findings,
        "cohorts": given.cohorts,
        "planned": given.planned,
    }


def decisions(given: Inputs) -> Json:
    """What was decided; each with the reason why it is out of use now, or null."""
    found: list[Json] = [part._asdict() for part in given.decided]
    for name, roles in given.columns_gone:
        why = PAGE["unfit column"].format(roles=", ".join(PAGE[role] for role in roles))
        found.append({"kind": "column", "who": [name], "room": None, "why": why})
    planned = given.choices.planned
    own = "people" in given.tables and "new" not in given.choices.files
    if own and planned is not None and planned not in given.cohorts:
        why = PAGE["unfit planned"]
        found.append({"kind": "planned", "who": [planned], "room": None, "why": why})
    return {"decisions": found}


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
            opened(kind, path, sheet, None)
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
    return replace(old, files=files)


def _two_sheets(project: Project, file: Dropped) -> tuple[str, str] | None:
    """The sheets of people and of who shared, where exactly two go together so."""
    try:
        names = sheets(project.path(file))
    except ValueError:
        return None
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


def _sheet(project: Project, file: Dropped, sheet: str) -> Table | None:
    """A sheet as a table; None where it is none."""
    try:
        return read(project.path(file), sheet=sheet)
    except ValueError:
        return None


MOST = 1_000_000  # signs of a request's text and entries of its lists; a page never comes near


def _row(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) < MOST


def _list(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and len(value) < MOST and all(map(fits, value))


TEXT, ROW = ("a text", _text), ("a row's number", _row)
NAME = ("a text or null", lambda value: value is None or _text(value))
SWITCH = ("true or false", lambda value: isinstance(value, bool))
EXPECTED: Mapping[str, Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "choose": {
        "roles": ("an object", lambda value: isinstance(value, dict)),
        "planned": NAME,
    },
    "fit": {},
    "sheet": {"kind": TEXT, "sheet": TEXT},
    "change": {"kind": TEXT, "a": ROW, "b": ROW},
    "undo": {},
    "let_go": {"kind": TEXT, "who": ("a list of ids", _list(_text))},
    "lock": {"rows": ("a list of rows", _list(_row)), "room": NAME, "keep": SWITCH},
}
"""By what is asked: every entry, in words, and whether a value is one."""


def sent(asked: str, body: bytes) -> dict[str, Any]:
    """The entries of a request, or a ValueError with the entry, its value and what is expected."""
    try:
        text = body.decode() or "{}"
        found = parsed(text, parse_constant=_no_number, object_pairs_hook=_once)
    except ValueError as error:
        raise ValueError(f"{asked}: no JSON that is read here: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{asked}: expected an object, not {_short(found)}")
    expected = EXPECTED[asked]
    for name in found:
        if name not in expected:
            known = ", ".join(expected) or "no entries"
            raise ValueError(f"{asked}: unknown entry {_short(name)}; expected {known}")
    for name, (words, fits) in expected.items():
        if name not in found:
            raise ValueError(f"{asked}: {name!r} is missing; expected {words}")
        if not fits(found[name]):
            raise ValueError(f"{asked}: {name} is {_short(found[name])}; expected {words}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"entry {max(names, key=names.count)!r} comes twice")
    return found


def _no_number(value: str) -> Any:
    raise ValueError(f"{value} is no number in JSON")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
