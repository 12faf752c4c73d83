"""What the parts of ``mlestruct roommates`` share: a model, some people of a table, a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlestruct.cli.options import (
    add_json,
    add_mix,
    add_reading,
    names,
    opened,
    say,
    seconds,
    unknown_rule,
    whole,
)

if TYPE_CHECKING:
    from mlestruct.estimators import RoommateModel
    from mlestruct.report import Report
    from mlestruct.tables import Table

MODEL, OUT = "roommates.npz", "roommates-out"
TABLES = ("people", "pairs", "rules", "consent", "rooms", "model")  # what commands read


def add_people(parser: argparse.ArgumentParser, *more: str) -> None:
    """The table of people, ``more`` positional arguments, and the options of :func:`load`."""
    for name in ("people", *more):
        word = "ID" if name == "person" else name.upper()
        optional: dict[str, Any] = {"nargs": "?"} if name == "pairs" else {}
        parser.add_argument(name, metavar=word, **optional)
    parser.add_argument("--only", type=names, metavar="COHORTS", help="people of these cohorts")
    add_mix(parser)
    parser.add_argument("--model", default=MODEL, metavar="FILE", help=f"default: {MODEL}")
    parser.add_argument(
        "--max-seconds", type=seconds, metavar="SECONDS", help="end after these with what is found"
    )
    add_reading(parser)
    add_json(parser)


def add_unknown(parser: argparse.ArgumentParser) -> None:
    """The option for answers that nobody gave before."""
    parser.add_argument(
        "--unknown",
        type=unknown_rule,
        metavar="RULE",
        help="answers new since the fit: refuse (default), neutral or nearest; or q1=neutral,…",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """The option that lets files be overwritten."""
    parser.add_argument("--force", action="store_true", help="overwrite files that are there")


def add_out(parser: argparse.ArgumentParser) -> None:
    """The options that say where results go."""
    parser.add_argument(
        "--out", default=OUT, metavar="FOLDER", help=f"default: {OUT}, or {OUT}-2 and so on"
    )
    add_force(parser)


def add_protected(parser: argparse.ArgumentParser) -> None:
    """The option that shows what explanations withhold."""
    parser.add_argument("--show-protected", action="store_true", help="itemise protected columns")


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
    add_protected(parser)
    add_out(parser)


def load(given: argparse.Namespace) -> tuple[RoommateModel, Table]:
    """The model, with what is told of unknown answers, and the people of the cohorts asked for."""
    model, _, people = load_all(given)
    return model, people


def load_all(given: argparse.Namespace) -> tuple[RoommateModel, Table, Table]:
    """As :func:`load`, and everybody in the table, whatever ``--only`` says."""
    from mlestruct.estimators import RoommateModel

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
