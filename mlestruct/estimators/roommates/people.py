"""A table of people: checked once, then ids, groups and the levels of all answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mlestruct.estimators.roommates.questionnaire import Answers
from mlestruct.structures.base import Ints
from mlestruct.tables import Table, missing

Missing = Literal["refuse", "neutral"]


@dataclass(frozen=True)
class Group:
    """People of one cohort who agree in every ``same`` column: only they may share a room."""

    label: str
    key: tuple[Any, ...]
    members: Ints = field(repr=False)


@dataclass(frozen=True)
class People:
    """Ids, answers' levels (people × questions; the last level is a missing one's), and groups."""

    table: Table
    ids: list[Any]
    codes: Ints
    groups: tuple[Group, ...]

    @classmethod
    def read(
        cls,
        table: Table,
        id_column: str,
        group_columns: Sequence[str],
        answers: Sequence[Answers],
        missing_rule: Missing,
    ) -> People:
        """Checked: ids present and different, groups known, answers as when fitted."""
        ids = ids_of(table, id_column)
        columns = [_codes(table, known, ids, missing_rule) for known in answers]
        codes = np.stack(columns, axis=1) if columns else np.empty((len(ids), 0), dtype=np.int64)
        return cls(table, ids, codes, _groups(table, group_columns, ids))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row(self) -> dict[Any, int]:
        return {person: row for row, person in enumerate(self.ids)}

    @cached_property
    def group_of(self) -> Ints:
        """The number of each person's group."""
        out = np.empty(len(self), dtype=np.int64)
        for number, group in enumerate(self.groups):
            out[group.members] = number
        return out

    def find(self, person: Any, where: str) -> int:
        """The row of an id; unknown ones are refused by name and place."""
        try:
            return self.row[person]
        except (KeyError, TypeError):
            pass
        like = next((i for i in self.ids if str(i) == str(person)), None)
        hint = "" if like is None else f"; there is {like!r}, of another type"
        raise ValueError(f"{where}: nobody has id {person!r}{hint}")


def are_ids(given: Any, count: int | None = None) -> bool:
    """Whether this is a list of ids, of so many, and no id by itself."""
    return isinstance(given, (tuple, list, np.ndarray)) and count in (None, len(given))


def ids_of(table: Table, column: str) -> list[Any]:
    """Everybody's id; none missing, none twice."""
    if len(table) == 0:
        raise ValueError("the table of people is empty")
    values = table[column]
    if missing(values).any():
        raise ValueError(f"row {int(missing(values).argmax())} has no {column!r}")
    ids = values.tolist()
    first: dict[Any, int] = {}
    for row, person in enumerate(ids):
        if first.setdefault(person, row) != row:
            raise ValueError(f"id {person!r} is in rows {first[person]} and {row}")
    return ids


def _codes(table: Table, known: Answers, ids: list[Any], rule: Missing) -> Ints:
    codes = known.codes(table[known.column], ids)
    gone = np.flatnonzero(codes < 0)
    if len(gone) and rule == "refuse":
        raise ValueError(
            f"column {known.column!r}: person {ids[gone[0]]!r} and {len(gone) - 1} more gave no "
            "answer; leave them out, or count such answers as average ones by missing='neutral'"
        )
    codes[gone] = len(known.levels)
    return codes


def _groups(table: Table, columns: Sequence[str], ids: list[Any]) -> tuple[Group, ...]:
    for name in columns:
        gone = np.flatnonzero(missing(table[name]))
        if len(gone):
            raise ValueError(f"column {name!r}: person {ids[gone[0]]!r} has no value")
    listed = [table[name].tolist() for name in columns]
    keys = list(zip(*listed, strict=True)) if columns else [()] * len(ids)
    members: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(keys):
        members.setdefault(key, []).append(row)
    return tuple(Group(label(columns, key), key, np.array(rows)) for key, rows in members.items())


def label(columns: Sequence[str], key: Sequence[Any]) -> str:
    """A group in words: ``year 3, gender F``."""
    return ", ".join(f"{c} {k}" for c, k in zip(columns, key, strict=True)) or "everyone"
