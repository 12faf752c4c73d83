"""A table of people: checked once, then ids, groups and the levels of all answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mlestruct.roommates.frames import Table, folded, written
from mlestruct.roommates.questionnaire import Answers, Unknown, person, refuse, some, spelled_twice
from mlestruct.structures.base import Ints

Missing = Literal["refuse", "neutral"]


@dataclass(frozen=True)
class Group:
    """People of one cohort who agree in every ``same`` column: only they may share a room."""

    label: str
    key: tuple[Any, ...]
    members: Ints = field(repr=False)

    def place(self, row: int) -> int:
        """The number of a member, who stands in this row of the table of people."""
        return int(np.searchsorted(self.members, row))


@dataclass(frozen=True)
class People:
    """Ids, answers' levels (people × questions), groups, and what was done to answers.

    The last level of a question is that of an answer that is missing or unknown.
    """

    table: Table
    ids: list[Any]
    codes: Ints
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        table: Table,
        id_column: str,
        group_columns: Sequence[str],
        answers: Sequence[Answers],
        missing_rule: Missing,
        unknown: Unknown = "refuse",
        faults: Sequence[str] = (),
    ) -> People:
        """Checked: ids present and different, groups known, answers as when fitted.

        Everything that is wrong is in one message, after ``faults`` already known.
        """
        ids, wrong = ids_of(table, id_column), list(faults)
        columns, notes = [], []
        for known in answers:
            try:
                codes, told = known.codes(table, ids, unknown)
                gone = np.flatnonzero(codes < 0)
                if len(gone) and missing_rule == "refuse":
                    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
                    who = person(table, ids, int(gone[0]), known.column)
                    raise ValueError(
                        f"column {known.column!r}: {who}{more} gave no answer; leave them out, or "
                        "count such answers as average ones: fit with missing='neutral'"
                    )
                codes[gone] = len(known.levels)
                columns.append(codes)
                notes += told
            except ValueError as error:
                wrong.append(str(error))
        refuse([*wrong, *without(table, group_columns)])
        codes = np.stack(columns, axis=1) if columns else np.empty((len(ids), 0), dtype=np.int64)
        nothing = np.array([len(known.levels) for known in answers])
        silent = np.flatnonzero((codes == nothing).all(axis=1))
        if len(answers) > 1 and len(silent):  # such as a line of totals or a remark below a list
            first = person(table, ids, int(silent[0]), answers[0].column)
            notes.append(
                f"answered no question: {len(silent)}, the first {first}; are these people?"
            )
        notes += spelled_twice(table, group_columns)
        return cls(table, ids, codes, groups_of(table, group_columns), tuple(notes))

    @cached_property
    def group_of(self) -> Ints:
        """The number of each person's group."""
        out = np.empty(len(self.ids), dtype=np.int64)
        for number, group in enumerate(self.groups):
            out[group.members] = number
        return out

    @cached_property
    def spelled(self) -> dict[str, int]:
        """The row of an id by its text: 7 and "7" are one person."""
        return {str(written(person)): row for row, person in enumerate(self.ids)}

    def find(self, person: Any, where: str) -> int:
        """The row of an id; unknown ones are refused by name and place."""
        row = self.known(person)
        if row is None:
            raise ValueError(f"{where}: nobody has id {person!r}{self.like(person)}")
        return row

    def known(self, person: Any) -> int | None:
        """The row of an id, however it is typed; None for an unknown one."""
        return self.spelled.get(str(written(person)))

    def cohort_of(self, row: int) -> Any:
        """The first of the columns that keep people apart."""
        return self.groups[self.group_of[row]].key[0]

    def like(self, person: Any) -> str:
        """An id that was perhaps meant: 7 for 007, a1 for A1."""
        bare = folded(str(person)).lstrip("0")
        like = next((i for i in self.ids if bare and folded(str(i)).lstrip("0") == bare), None)
        return "" if like is None else f"; there is {like!r}, which is written differently"


def are_ids(given: Any, count: int | None = None) -> bool:
    """Whether this is a list of ids, of so many, and no id by itself."""
    return isinstance(given, (tuple, list, np.ndarray)) and count in (None, len(given))


def ids_of(table: Table, column: str) -> list[Any]:
    """Everybody's id, as it is written; none missing, none twice."""
    if len(table) == 0:
        raise ValueError("the table of people is empty")
    refuse(faults_of_people(table, column))
    return table.listed(column)


def faults_of_people(table: Table, id_column: str, groups: Sequence[str] = ()) -> list[str]:
    """Whose id is missing, which are given twice, and who is in no group; or of rooms."""
    first: dict[str | None, int] = {}
    twice = []
    for row, own in enumerate(table.listed(id_column)):
        if own is not None and (before := first.setdefault(written(own), row)) != row:
            twice.append(f"{id_column} {own!r} is in {table.at(before)} and {table.at(row)}")
    return [*without(table, [id_column]), *some(twice), *without(table, groups)]


def without(table: Table, columns: Sequence[str]) -> list[str]:
    """Rows with blank cells in these columns."""
    gone = {name: [row for row, cell in enumerate(table.listed(name)) if cell is None]
            for name in columns}  # fmt: skip
    return [
        fault
        for name, rows in gone.items()
        for fault in some(f"{table.at(row, name)} has no {name!r}" for row in rows)
    ]


def groups_of(table: Table, columns: Sequence[str]) -> tuple[Group, ...]:
    """The groups, each with its name in words: ``year 3, gender F``."""
    keys = zip(*map(table.listed, columns), strict=True) if columns else [()] * len(table)
    members: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(keys):
        members.setdefault(key, []).append(row)
    found = []
    for key, rows in members.items():
        words = ", ".join(f"{c} {k}" for c, k in zip(columns, key, strict=True))
        found.append(Group(words or "everyone", key, np.array(rows)))
    return tuple(found)
