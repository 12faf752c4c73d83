"""What commands share: options, the files and models that they name, and how they speak."""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mlestruct.html import HIDDEN, visible

T = TypeVar("T")

if TYPE_CHECKING:
    from mlestruct.roommates.frames import Table
    from mlestruct.roommates.model import RoommateModel
    from mlestruct.roommates.report import Report

SETTINGS = (
    "alpha", "binary", "categorical", "cohort", "consent", "decimal", "encoding", "fixed",
    "forbid", "header", "id", "ignore", "larger", "missing", "mix", "no_answer", "ordinal",
    "outcomes", "partner", "partners", "protected", "require", "rho", "room", "rooms", "same",
    "separator", "sheet", "trust", "unknown", "unpaired", "weight",
)  # fmt: skip
LISTS = ("ignore", "mix", "same", "trust")  # columns; one that holds a comma needs marks around it
PYTHON = re.compile(rf"\b({'|'.join(SETTINGS)})=(?:'([^']*)'|(?=([\w(])))?")


def for_shell(message: str) -> str:
    """In the words of the command line: ``missing='neutral'`` is ``--missing neutral``."""

    def option(found: re.Match[str]) -> str:
        name, quoted, more = found.groups()
        if quoted and "," in quoted and name in LISTS:
            quoted = f'"{quoted}"'
        value = f" {shlex.quote(quoted)}" if quoted else " " if more else ""
        return f"--{name.replace('_', '-')}{value}"

    return PYTHON.sub(option, limit_for_shell(message).replace("ρ = ", "--rho "))


def limit_for_shell(message: str) -> str:
    """``max_seconds=5`` is ``--max-seconds 5``."""
    return message.replace("max_seconds=", "--max-seconds ").replace("max_seconds", "--max-seconds")


def names(text: str) -> list[str]:
    """``a,b`` as a list; a name that holds a comma stands between double quotation marks."""
    rows = csv.reader([text], skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def reader(
    convert: Callable[[str], T], words: str, holds: Callable[[T], bool] = lambda _: True
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


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` to ``most``."""
    limit = f"{least} or more" if most is None else f"from {least} to {most}"

    def convert(text: str) -> int:
        return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text.strip()) else least - 1

    return reader(
        convert,
        f"needs a whole number, {limit}",
        lambda number: least <= number and (most is None or number <= most),
    )


seconds = reader(float, "needs a number of seconds, 0 or more", lambda number: number >= 0)
partners = reader(
    lambda text: tuple(names(text)),
    "needs two columns such as id_a,id_b",
    lambda listed: len(listed) > 1,
)


def by_column(text: str) -> Any:
    """``neutral``, ``99,-1``, or by column ``q1=99,q1=98,q2=9``."""
    listed = names(text)
    told: dict[str, list[str]] = {}
    for part in listed:
        column, mark, value = part.partition("=")
        if mark:
            told.setdefault(column.strip(), []).append(value.strip())
    if told and sum(map(len, told.values())) < len(listed):
        raise argparse.ArgumentTypeError(f"name a column for all or for none, not {text!r}")
    return told or listed


def unknown_rule(text: str) -> Any:
    """``neutral``, or by column ``q1=neutral,q2=nearest``."""
    told = by_column(text)
    one = {n: v[0] for n, v in told.items()} if isinstance(told, dict) else told[0]
    for rule in one.values() if isinstance(one, dict) else [one]:
        if rule not in ("refuse", "neutral", "nearest"):
            raise argparse.ArgumentTypeError(f"is refuse, neutral or nearest, not {text!r}")
    return one


MODEL, OUT = "roommates.npz", "roommates-out"
OPTIONS: dict[str, dict[str, Any]] = {  # of several commands
    "force": {"action": "store_true", "help": "overwrite files that are there"},
    "json": {"action": "store_true", "help": "print one JSON object"},
    "mix": {
        "type": names,
        "default": [],
        "metavar": "COLUMNS",
        "help": "partners may differ in these, though (nearly) all observed pairs agree",
    },
    "out": {"default": OUT, "metavar": "FOLDER", "help": f"default: {OUT}, or {OUT}-2 and so on"},
    "show-protected": {"action": "store_true", "help": "itemise protected columns"},
    "unknown": {
        "type": unknown_rule,
        "metavar": "RULE",
        "help": "answers new since the fit: refuse (default), neutral or nearest; or q1=neutral,…",
    },
}


def add_options(parser: argparse.ArgumentParser, *listed: str) -> None:
    """Options that several commands have, by their names."""
    for name in listed:
        parser.add_argument(f"--{name}", **OPTIONS[name])


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Options that say who is who, who may share with whom, and who does."""
    some: dict[str, Any] = {"type": names, "default": [], "metavar": "COLUMNS"}
    parser.add_argument("--id", default="id", metavar="COLUMN", help="people's ids (default: id)")
    parser.add_argument("--cohort", metavar="COLUMN", help="pairs stay within a cohort")
    parser.add_argument("--same", **some, help="partners agree in these, such as gender")
    parser.add_argument(
        "--partners",
        type=partners,
        default=("id_a", "id_b"),
        metavar="A,B",
        help="the columns of ids in a table of pairs (default: id_a,id_b)",
    )
    parser.add_argument("--room", **some, help="who shares has the same room in these columns")
    parser.add_argument("--partner", **some, help="who shares is named in these columns")
    parser.add_argument(
        "--larger",
        choices=("refuse", "leave_out"),
        default="refuse",
        help="what becomes of rooms of three and more",
    )
    parser.add_argument(
        "--no-answer",
        type=by_column,
        default=[],
        metavar="VALUES",
        help="codes for no answer, such as 99,-1 or q1=99,q2=9",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Options that say how files are to be read, where what was found is wrong."""
    told = parser.add_argument_group("files (found by themselves unless told; FILE.xlsx#SHEET)")
    told.add_argument("--separator", metavar="SIGN", help="between cells: ',' ';' '|' or tab")
    told.add_argument("--decimal", choices=(".", ","), help="the decimal mark of numbers")
    told.add_argument("--encoding", metavar="NAME", help="such as utf-8, cp1252 or mac_roman")
    told.add_argument("--header", type=whole(1), metavar="LINE", help="the line of column names")


def opened(given: argparse.Namespace, path: str, wanted: Sequence[str] = ()) -> Table:
    """A file as a table, and in one line how it was read."""
    from mlestruct.roommates.reading import read

    separator = {"tab": "\t", "\\t": "\t"}.get(given.separator, given.separator)
    if separator is not None and len(separator) != 1:
        raise ValueError(f"--separator is one sign or tab, not {given.separator!r}")
    told = {"decimal": given.decimal, "encoding": given.encoding, "header": given.header}
    found = read(path, wanted, separator=separator, **told)
    for line in found.said:
        say(given, line)
    return found


def say(given: argparse.Namespace, *lines: object) -> None:
    """To a person: on the output, or beside it where the output is JSON."""
    for line in lines:
        print(visible(str(line)), file=sys.stderr if given.json else sys.stdout, flush=True)


def tell(given: argparse.Namespace, **found: Any) -> None:
    """To a program: one JSON object, where it was asked for."""
    if given.json:
        text = json.dumps(found, default=plain, ensure_ascii=False, allow_nan=False)
        print(HIDDEN.sub(lambda sign: json.dumps(sign[0])[1:-1], text))


def plain(value: Any) -> Any:
    """What JSON has no word for, in words it has."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return str(value)


def finite(value: float) -> float | None:
    """A number for JSON, which has no infinity."""
    return float(value) if abs(value) < float("inf") else None


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Options that forbid and require pairs."""
    pair: dict[str, Any] = {"nargs": 2, "action": "append", "default": [], "metavar": "ID"}
    parser.add_argument("--forbid", **pair, help="two people who may not share; repeatable")
    parser.add_argument("--require", **pair, help="two people who must share; repeatable")
    parser.add_argument(
        "--rules", metavar="RULES", help="columns rule (forbid, require or allow), id_a, id_b"
    )
    parser.add_argument(
        "--consent", metavar="FILE", help="column id, and who that person may share with"
    )


def rules(given: argparse.Namespace, ids: Iterable[Any]) -> dict[str, Any]:
    """``forbid``, ``require`` and ``consent``: pairs of the table's own ids, with their places."""
    from mlestruct.roommates.rooms import COLUMNS, Placed, listed_rules

    own = {str(person): person for person in ids}

    def placed(pair: Sequence[Any], where: str) -> Placed:
        return Placed.of([own.get(str(who), who) for who in pair], where)

    made: dict[str, Any] = {
        "forbid": [placed(pair, f"--forbid {' '.join(pair)}") for pair in given.forbid],
        "require": [placed(pair, f"--require {' '.join(pair)}") for pair in given.require],
        "consent": [placed(pair, where) for pair, where in _consent(given, own)],
    }
    if given.rules:
        read = opened(given, given.rules, COLUMNS)
        for kind, found in listed_rules(read, own).items():
            made[kind] += found
    return made


def _consent(
    given: argparse.Namespace, own: Mapping[str, Any]
) -> Iterable[tuple[tuple[Any, Any], str]]:
    """((person, other), place) of a table with a list of others in one cell or in several."""
    from mlestruct.roommates.rooms import ids_in

    if not given.consent:
        return
    read = opened(given, given.consent, ("id",))
    others = [name for name in read.names if name != "id"]
    for row, person in enumerate(read.as_names("id").tolist()):
        cells = [(name, read.as_names(name)[row]) for name in others]
        found = [
            ((person, other), read.at(row, name))
            for name, cell in cells
            for other in ([] if cell is None else ids_in(str(cell), own.__contains__))
        ]
        if not found:
            raise ValueError(
                f"{read.at(row)}: {person} names nobody; take the line out, or plan without them"
            )
        yield from found


def aligned(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in plain text, two spaces between its columns."""
    lines = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in (head, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  " + "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def fields(row: Any) -> Mapping[str, Any]:
    """A named tuple for JSON."""
    return {name: finite(v) if isinstance(v, float) else v for name, v in row._asdict().items()}


TABLES = ("people", "pairs", "rules", "consent", "rooms", "model")  # what commands read


def add_people(parser: argparse.ArgumentParser, *more: str) -> None:
    """The table of people, ``more`` positional arguments, and the options of :func:`load`."""
    for name in ("people", *more):
        word = "ID" if name == "person" else name.upper()
        optional: dict[str, Any] = {"nargs": "?"} if name == "pairs" else {}
        parser.add_argument(name, metavar=word, **optional)
    parser.add_argument("--only", type=names, metavar="COHORTS", help="people of these cohorts")
    add_options(parser, "mix", "json")
    parser.add_argument("--model", default=MODEL, metavar="FILE", help=f"default: {MODEL}")
    parser.add_argument(
        "--max-seconds", type=seconds, metavar="SECONDS", help="end after these with what is found"
    )
    add_reading(parser)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Options of a report; it shows no more of people than ids unless asked."""
    parser.add_argument("--names", metavar="COLUMN", help="show this column beside ids")
    parser.add_argument(
        "--per-person",
        type=whole(1),
        default=10,
        metavar="COUNT",
        help="most probable partners of everybody in probabilities.csv (default: 10)",
    )
    parser.add_argument("--all", action="store_true", help="every pair in probabilities.csv")
    add_options(parser, "show-protected", "out", "force")


def load(given: argparse.Namespace) -> tuple[RoommateModel, Table, Table]:
    """The model, with what is told of unknown answers; everybody, and those that --only names."""
    from mlestruct.roommates.model import RoommateModel

    model = RoommateModel.load(given.model)
    if getattr(given, "unknown", None) is not None:
        model.set_params(unknown=given.unknown)
    model.set_params(max_seconds=given.max_seconds)
    wanted = [name for name, role in model.roles_.items() if role in ("id", "cohort", "same")]
    everybody = opened(given, given.people, wanted)
    return model, everybody, chosen(everybody, model.cohort, given.only)


def chosen(people: Table, cohort: str | None, only: Sequence[str] | None) -> Table:
    """The people of some cohorts, or all."""
    if only is None:
        return people
    if cohort is None:
        raise ValueError("--only needs a cohort, and the model has none: fit it with --cohort")
    values = [str(value) for value in people.as_names(cohort).tolist()]
    unknown = [value for value in only if value not in values]
    if unknown:
        known = ", ".join(sorted(set(values)))
        raise ValueError(f"nobody has {cohort} {unknown[0]}; there are {known}")
    return people.rows([value in only for value in values])


def among(
    pairs: Table | None, everybody: Table, people: Table, model: RoommateModel
) -> Table | None:
    """The rows of a table of pairs that are not about people whom ``--only`` left out."""
    if pairs is None or len(people) == len(everybody):
        return pairs
    left, kept = (set(t.as_names(model.id).tolist()) for t in (everybody, people))
    listed = [model.id] if model.room or model.partner else list(model.partners)
    return pairs.without_rows_of(listed, left - kept)


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


def finish(shown: object, report: Report, given: argparse.Namespace) -> list[str]:
    """Print what was asked for, write the files, say where."""
    every = None if given.all else given.per_person
    folder = new_folder(given.out, given.force)
    inputs = [getattr(given, name, None) for name in TABLES]
    for name in report.files:
        spare(folder / name, inputs)
    paths = list(map(str, report.write(folder, every)))
    say(given, shown, "wrote " + ", ".join(paths))
    return paths
