"""What is wrong with rows of tables and rules: every fault at once, before anything is learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mlestruct.estimators.roommates import Plan
from mlestruct.estimators.roommates.pairing import Worth
from mlestruct.estimators.roommates.people import People, faults_of_people, groups_of
from mlestruct.estimators.roommates.questionnaire import some
from mlestruct.estimators.roommates.rules import Rule
from mlestruct.tables import Table


def faults(table: Table) -> Iterator[str]:
    """What is wrong with any table."""
    if len(table) == 0:
        yield "the table is empty"
    yield from table.mixed.values()
    whole = [name for name in table.names if name not in table.mixed]
    rows = list(zip(*map(table.listed, whole), strict=True))
    yield from some(f"{table.at(k)} repeats an earlier one" for k in repeats(rows))
    for name, column in table.columns.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            yield f"column {name!r} holds infinite numbers" + (
                f", the first in {table.at(row, name)}" if table.places else ""
            )


def remarks_on_groups(table: Table, groups: Sequence[str]) -> Iterator[str]:
    """Groups of one, who have nobody to share with, and odd ones, which leave one person over."""
    for group in groups_of(table, groups):
        if len(group.members) == 1:
            yield f"{group.label}: one person, who has nobody to share with"
        elif len(group.members) % 2:
            count = f"{len(group.members)} people, an odd number"
            yield f"{group.label}: {count}, so one of them stays alone"


def faults_of_rules(
    people: Table,
    id_column: str,
    groups: Sequence[str],
    forbid: Sequence[Rule],
    require: Sequence[Rule],
) -> Iterator[str]:
    """Why nobody could keep these rules: the first contradiction, in few people where it can be.

    Rules among people who are faulty themselves are not tried.
    """
    if faults_of_people(people, id_column, groups):
        return
    try:
        read = People.read(people, id_column, groups, [], "refuse")
        alike = [Worth((), read.codes[group.members], {}) for group in read.groups]
        len(Plan.of(read, alike, forbid, require, None, "map", 0.5).pairs)  # solves every group
    except ValueError as error:
        yield str(error)


def repeats(values: Iterable[Any]) -> Iterator[int]:
    """The places of values that came before."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen and value is not None:
            yield place
        seen.add(value)
