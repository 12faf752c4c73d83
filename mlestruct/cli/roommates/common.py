"""What the parts of ``mlestruct roommates`` share: a model, some people of a table, a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlestruct.cli.options import names

if TYPE_CHECKING:
    from mlestruct.estimators import RoommateModel
    from mlestruct.report import Report
    from mlestruct.tables import Table

MODEL, OUT = "roommates.npz", "roommates-out"


def add_people(parser: argparse.ArgumentParser, *more: str) -> None:
    """The table of people, ``more`` positional arguments, and the options of :func:`load`."""
    for name in ("people", *more):
        word = "ID" if name == "person" else f"{name.upper()}.csv"
        parser.add_argument(name, metavar=word)
    parser.add_argument("--only", type=names, metavar="COHORTS", help="people of these cohorts")
    parser.add_argument("--model", default=MODEL, metavar="FILE", help=f"default: {MODEL}")


def add_out(parser: argparse.ArgumentParser) -> None:
    """The option that says where results go."""
    parser.add_argument("--out", default=OUT, metavar="FOLDER", help=f"default: {OUT}")


def add_protected(parser: argparse.ArgumentParser) -> None:
    """The option that shows what explanations withhold."""
    parser.add_argument("--show-protected", action="store_true", help="itemise protected columns")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Options of a report; it shows no more of people than ids unless asked."""
    parser.add_argument("--names", metavar="COLUMN", help="show this column beside ids")
    add_protected(parser)
    add_out(parser)


def load(given: argparse.Namespace) -> tuple[RoommateModel, Table]:
    """The model, and the people of the cohorts asked for."""
    from mlestruct.estimators import RoommateModel
    from mlestruct.tables import table

    model = RoommateModel.load(given.model)
    return model, chosen(table(given.people), model.cohort, given.only)


def chosen(people: Table, cohort: str | None, only: Sequence[str] | None) -> Table:
    """The people of some cohorts, or all."""
    if only is None:
        return people
    if cohort is None:
        raise ValueError("--only needs a cohort, and the model has none: fit it with --cohort")
    values = [str(value) for value in people[cohort].tolist()]
    unknown = [value for value in only if value not in values]
    if unknown:
        known = ", ".join(sorted(set(values)))
        raise ValueError(f"nobody has {cohort} {unknown[0]}; there are {known}")
    return people.rows([value in only for value in values])


def finish(shown: object, report: Report, given: argparse.Namespace) -> int:
    """Print what was asked for, write the files, say where."""
    print(shown)
    print("wrote " + ", ".join(map(str, report.write(given.out))))
    return 0
