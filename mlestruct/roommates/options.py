"""What commands share: options, the files and models that they name, and how they speak."""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from mlestruct.errors import HIDDEN, visible
from mlestruct.roommates.words import FILE

T = TypeVar("T")

LISTS = ("ignore", "mix", "same", "trust")  # columns; one that holds a comma needs marks around it


def for_shell(message: str) -> str:
    """In the words of the command line: ``missing='neutral'`` is ``--missing neutral``."""

    def option(found: re.Match[str]) -> str:
        name, quoted, more = found.groups()
        if quoted and "," in quoted and name in LISTS:
            quoted = f'"{quoted}"'
        value = f" {shlex.quote(quoted)}" if quoted else " " if more else ""
        return f"--{name.replace('_', '-')}{value}"

    return PYTHON.sub(option, limit_for_shell(message))


def limit_for_shell(message: str) -> str:
    """``max_seconds=5`` is ``--max-seconds 5``."""
    return message.replace("max_seconds=", "--max-seconds ").replace("max_seconds", "--max-seconds")


def names(text: str) -> list[str]:
    """``a,b`` as a list; a name that holds a comma stands between double quotation marks."""
    rows = csv.reader([text], skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def reader(
    convert: Callable[[str], T], words: str, holds: Callable[[T], bool] = bool
) -> Callable[[str], T]:
    """What reads an option's text, or says in words what it needs."""

    def read(text: str) -> T:
        try:
            found = convert(text)
            if holds(found):
                return found
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{words}, not {text!r}")

    return read


def whole(least: int, most: int = 10**18) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` to ``most``."""
    limit = f"{least} or more" if most == 10**18 else f"from {least} to {most}"
    return reader(int, f"needs a whole number, {limit}", lambda n: least <= n <= most)


seconds = reader(float, "needs a number of seconds, 0 or more", lambda number: number >= 0)
partners = reader(
    lambda text: tuple(names(text)),
    "needs two columns such as id_a,id_b",
    lambda listed: len(listed) > 1,
)
numbers = reader(
    lambda text: [float(number) for number in names(text)],
    "needs numbers above 0",
    lambda found: bool(found) and all(0 < number < float("inf") for number in found),
)


def by_column(text: str) -> Any:
    """``neutral``, ``99,-1``, or by column ``q1=99,q1=98,q2=9``."""
    listed = names(text)
    told: dict[str, list[str]] = {}
    for column, mark, value in (part.partition("=") for part in listed):
        if mark:
            told.setdefault(column.strip(), []).append(value.strip())
    if told and sum(map(len, told.values())) < len(listed):
        raise argparse.ArgumentTypeError(f"name a column for all or for none, not {text!r}")
    return told or listed


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
    """One of a few words; without it, the model's own."""
    return {"choices": allowed, "help": words}


def _switch(words: str) -> dict[str, Any]:
    return {"action": "store_true", "help": words}


OUT, MODEL, PAGE = "roommates-out", "roommates.npz", "roommates-project"
ALPHA = "ridge (λ/2)‖θ‖² on the weights; of several, held-out cohorts choose (default: 1)"
ENDS = "the columns of ids in a table of pairs (default: id_a,id_b)"
OPTIONS: dict[str, dict[str, Any]] = {
    "alpha": _value("NUMBERS", ALPHA, numbers),
    "binary": _columns("answers that agree or differ"),
    "categorical": _columns("answers without an order"),
    "checkpoint": _value("FILE", "keep the fit there; go on from it where it was ended"),
    "cohort": _value("COLUMN", "pairs stay within a cohort"),
    "forbid": _two("two people who may not share; repeatable"),
    "force": _switch("overwrite files that are there"),
    "id": _value("COLUMN", "people's ids (default: id)"),
    "ignore": _columns("columns to leave out of patterns"),
    "json": _switch("print one JSON object"),
    "larger": _choice("what becomes of rooms of three and more", "refuse", "leave_out"),
    "max-seconds": _value("SECONDS", "end after these with what is found", seconds),
    "missing": _choice("missing answers: refused, or as average ones", "refuse", "neutral"),
    "mix": _columns("partners may differ in these, though (nearly) all observed pairs agree"),
    "model": _value("FILE", f"default: {MODEL}", default=MODEL),
    "names": _value("COLUMN", "show this column beside ids"),
    "no-answer": _value("VALUES", "codes for no answer: 99,-1 or q1=99,q2=9", by_column),
    "no-browser": _switch("only print the address"),
    "only": _value("COHORTS", "people of these cohorts", names),
    "ordinal": _columns("answers that are numbers, compared by difference"),
    "out": _value("FOLDER", f"default: {OUT}, or {OUT}-2 and so on", default=OUT),
    "partner": _columns("who shares is named in these columns"),
    "partners": _value("A,B", ENDS, partners),
    "port": _value("N", "default: any that is free", whole(0, 65535), 0),
    "project": _value("FILE", f"what was decided; default: {FILE}, where it is there"),
    "protected": _columns("answers that explanations do not itemise"),
    "require": _two("two people who must share; repeatable"),
    "room": _columns("who shares has the same room in these columns"),
    "rooms": _value("ROOMS", "columns room, size, and perhaps fixed"),
    "rules": _value("RULES", "columns rule (forbid, require or allow), id_a, id_b"),
    "same": _columns("partners agree in these, such as gender"),
    "show-protected": _switch("itemise protected columns"),
    "strict": _switch("exit with 1 if the fit has not converged"),
    "trust": _columns("answers there are as meant"),
    "technical": _switch("theorems, certificates and scores instead of plain words"),
    "unknown": _choice("answers new since the fit", "refuse", "neutral", "nearest"),
    "yes": _switch("do it"),
}
READING = ("decimal", "encoding", "header", "separator")
SETTINGS = "|".join([*OPTIONS, *READING, "sheet"]).replace("-", "_")
PYTHON = re.compile(rf"\b({SETTINGS})=(?:'([^']*)'|(?=([\w(])))?")
COLUMNS = ("id", "cohort", "same", "partners", "room", "partner", "larger", "no-answer")
RULES = ("forbid", "require", "rules")
SHOWN = ("names", "show-protected", "out", "force")


def add_options(parser: argparse.ArgumentParser, *listed: str) -> None:
    """Options by their names."""
    for name in listed:
        parser.add_argument(f"--{name}", **OPTIONS[name])


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Options that say how files are to be read, where what was found is wrong."""
    told = parser.add_argument_group("files (found by themselves unless told; FILE.xlsx#SHEET)")
    told.add_argument("--separator", metavar="SIGN", help="between cells: ',' ';' '|' or tab")
    told.add_argument("--decimal", choices=(".", ","), help="the decimal mark of numbers")
    told.add_argument("--encoding", metavar="NAME", help="such as utf-8, cp1252 or mac_roman")
    told.add_argument("--header", type=whole(1), metavar="LINE", help="the line of column names")


def say(given: argparse.Namespace, *lines: object) -> None:
    """To a person: on the output, or beside it where the output is JSON."""
    for line in lines:
        print(visible(str(line)), file=sys.stderr if given.json else sys.stdout, flush=True)


def tell(given: argparse.Namespace, **found: Any) -> None:
    """To a program: one JSON object, where it was asked for."""
    if given.json:
        text = json.dumps(plain(found), ensure_ascii=False)
        print(HIDDEN.sub(lambda sign: json.dumps(sign[0])[1:-1], text))


def plain(value: Any) -> Any:
    """What JSON has words for: named tuples by their fields, and nothing for infinity."""
    value = value.tolist() if hasattr(value, "tolist") else value
    value = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, (int, str)) else str(value)


def new_file(path: str, force: bool, inputs: Sequence[str | None] = ()) -> str:
    """A file that may be written; asked for before the work is done."""
    if Path(path).exists() and not force:
        raise ValueError(f"{path} is there already; name another file, or overwrite it by --force")
    spare(Path(path), inputs)
    return path


def spare(place: Path, inputs: Sequence[str | None]) -> None:
    """A table that was read is never written over, whatever ``--force`` says."""
    for given in inputs:
        own = Path((given or "").partition("#")[0])
        if given and place.exists() and own.exists() and place.samefile(own):
            raise ValueError(f"{place} is a table that this command reads; name another file")


def new_folder(path: str, force: bool) -> Path:
    """A folder for results: the one named, or the first of path-2, path-3, … that is empty."""
    if Path(path).is_file() and force:
        raise ValueError(f"--out names a folder, and {path} is a file")
    whole = str(Path(path).absolute()) if Path(path).name in ("", "..") else path
    for number in count(1):
        place = Path(path if number == 1 else f"{whole}-{number}")
        if force or not place.exists() or (place.is_dir() and not any(place.iterdir())):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)  # results are about people
            return place
    raise AssertionError("numbers do not end")
