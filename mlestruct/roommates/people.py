"""A table of people: what columns are for, answers as levels, ids and groups; checked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from mlestruct.features import Question
from mlestruct.roommates import frames
from mlestruct.roommates.frames import Column, Table, folded, missing, number, written
from mlestruct.structures.base import Array, Ints

LARGEST = 1e12  # an answer; beyond, differences of answers lose digits
SHOWN = 20  # faults in one message
MISSING = "no answer"
IGNORE = "ignore"
Missing = Literal["refuse", "neutral"]
Unknown = Literal["refuse", "neutral"]
Names = str | Sequence[str]


@dataclass(frozen=True)
class Answers:
    """A column's possible answers, in order, and how many people gave each."""

    column: str
    role: str
    levels: tuple[Any, ...]
    counts: tuple[int, ...]

    @classmethod
    def seen(cls, table: Table, column: str, role: str, ids: Sequence[Any]) -> Self:
        """The levels that these answers show; ordinal whole numbers without gaps."""
        given, rows = _given(table, column, role)
        levels, counts = np.unique(given, return_counts=True)
        if role == "ordinal" and levels.dtype.kind == "U":
            odd = next((k for k, v in zip(rows, given, strict=True) if number(v) is None), rows[0])
            raise ValueError(
                f"ordinal column {column!r} holds text such as {table[column][odd]!r}"
                f"{table.beside(int(odd), column)}; recode it as numbers, name codes for no answer "
                "in no_answer=, or the column in categorical="
            )
        if role == "ordinal" and np.abs(levels).max(initial=0) > LARGEST:
            worst = int(np.abs(given).argmax())
            who = person(table, ids, int(rows[worst]), column)
            words = f"{who} answers {given[worst]:g}, which is no level; divide it"
            raise ValueError(f"column {column!r}: {words}")
        if role == "ordinal" and len(levels) and np.equal(np.mod(levels, 1), 0).all():
            gaps = levels.astype(np.int64) - int(levels[0])
            if gaps[-1] < frames.MOST_LEVELS:
                counts, levels = np.bincount(gaps, counts), int(levels[0]) + np.arange(gaps[-1] + 1)
        if role == "binary" and len(levels) > 2:
            raise ValueError(
                f"binary column {column!r} has {len(levels)} different answers: "
                f"{_some(levels.tolist())}"
            )
        if len(levels) > frames.MOST_LEVELS:
            raise ValueError(
                f"column {column!r} has {len(levels)} different answers; at most "
                f"{frames.MOST_LEVELS} are levels of a question: round or group them"
            )
        return cls(column, role, tuple(levels.tolist()), tuple(counts.astype(int).tolist()))

    def codes(
        self, table: Table, ids: Sequence[Any], unknown: Unknown = "refuse"
    ) -> tuple[Ints, list[str]]:
        """The level's number of every answer, −1 where there is none; and what was done.

        An answer that is no level is refused; or it counts as an average one (``neutral``): it has
        the number after the last.
        """
        text = isinstance(self.levels[0], str)
        given, told = _given(table, self.column, "written" if text else self.role)
        place, average = {level: k for k, level in enumerate(self.levels)}, len(self.levels)
        codes, notes, faults = np.full(len(table), -1), [], []
        for answer in np.unique(given).tolist():
            rows, level = told[given == answer], answer if text else number(answer)
            codes[rows] = place.get(level, average)
            if level in place:
                continue
            who = person(table, ids, int(rows[0]), self.column)
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            faults.append(
                f"column {self.column!r}: {who} answers {answer!r}, which nobody did when the "
                f"model was fitted; known are {_some(self.levels)}; unknown=neutral counts it as "
                "an average answer"
            )
            notes.append(
                f"column {self.column!r}: {answer!r}, new since the fit, counts as an average "
                f"answer ({who}{more})"
            )
        refuse(faults if unknown == "refuse" else [])
        return codes, notes

    def question(self, indicators: bool, neutral: bool) -> Question:
        """What two answers are worth together; with ``neutral``, a level for a missing one.

        A missing answer is worth what a random person's would be on average: then it favours
        nobody.
        """
        rich = indicators and self.role != "binary"
        if self.role == "ordinal":
            made = Question.ordinal(self.column, self.levels, self.levels, indicators=rich)
        else:
            made = Question.categorical(self.column, self.levels, indicators=rich)
        if not neutral:
            return made
        spread = np.vstack([np.eye(len(self.levels)), self.share])
        tables = spread @ made.tables @ spread.T
        tables = 0.5 * (tables + tables.transpose(0, 2, 1))  # but for its rounding it is that
        return Question(made.name, (*made.levels, MISSING), made.weights, tables)

    @property
    def share(self) -> Array:
        counts = np.asarray(self.counts, dtype=float)
        return np.asarray(counts / counts.sum())


def _given(table: Table, column: str, role: str) -> tuple[Column, Ints]:
    """The answers there are, and their rows.

    Numbers of an ordinal question; of others what tells answers apart, as text if they were.
    """
    values = table[column] if role == "ordinal" else table.as_levels(column)
    if role == "written":
        values = frames.objects([*map(written, table.listed(column))])
    rows = np.flatnonzero(~missing(values))
    given = values[rows]
    return given.astype(str) if given.dtype.kind == "O" else given, rows


def _some(levels: Sequence[Any]) -> str:
    shown = ", ".join(repr(level) for level in levels[:8])
    return f"{shown}, …" if len(levels) > 8 else shown


def survey(
    table: Table, taken: Sequence[str], roles: Mapping[str, str], ids: Sequence[Any]
) -> tuple[tuple[Answers, ...], list[str], list[str], list[str]]:
    """Every question's answers; in words which columns say nothing, all faults, and all doubts.

    ``taken`` are the columns of ids, cohorts and groups.
    """
    used, faults, constant, odd = list[Answers](), list[str](), list[str](), list[str]()
    for name in [name for name, role in roles.items() if role != IGNORE]:
        try:
            asked = Answers.seen(table, name, roles[name], ids)
        except ValueError as error:
            faults.append(str(error))
            continue
        gone = missing(table[name])
        if len(asked.levels) > 1:
            used.append(asked)
            odd += [
                f"{name}: {value!r}, given by {given}, looks like a code for no answer and counts "
                f"as an answer; if it is one, say no_answer={value}"
                for value, given in frames.suspects(table[name]).items()
            ]
            odd += spelled_twice(table, [] if asked.role == "ordinal" else [name])
            continue
        constant.append(name)
        if gone.any() and not gone.all():  # ticks, perhaps
            answer = written(table.cells[name][~gone][0])
            first = table.beside(int(gone.argmax()), name).replace("(", "(the first ", 1)
            faults.append(
                f"column {name!r}: {(~gone).sum()} people have {answer!r}, {gone.sum()} nothing"
                f"{first}; if a blank means no, write that there, else leave the column out"
            )
    idle = [n for n in table.names if n not in taken and roles.get(n, IGNORE) == IGNORE]
    notes = [f"ignored: {', '.join(idle)}"] if idle else []
    notes += [f"all answers alike, so not used: {', '.join(constant)}"] if constant else []
    return tuple(used), notes, faults, odd


def spelled_twice(table: Table, names: Iterable[str]) -> list[str]:
    """Columns of groups or kinds in several spellings: people of F and of f never share."""
    return [
        f"{name}: {', '.join(map(repr, alike))} count as different"
        for name in names
        for alike in frames.variants(table.cells[name])
        if any(letter.isalpha() for letter in alike[0])  # houses 1.1 and 11 are two
    ]


def idle_codes(table: Table, codes: Mapping[str, Sequence[Any]]) -> list[str]:
    """Codes for no answer that nobody gave: they are misspelled, or a range written as one."""
    given = {code for name in codes for code in map(written, table.cells[name].tolist())}
    asked = dict.fromkeys(written(code) for values in codes.values() for code in values)
    return [f"no_answer: nobody gave {code!r}" for code in asked if code not in given]


def refuse(faults: Iterable[str]) -> None:
    """Raise one ValueError that lists all faults, if there are any."""
    every = list(faults)
    if len(every) == 1:
        raise ValueError(every[0])
    if every:
        more = [f"and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
        raise ValueError("\n  ".join([f"{len(every)} faults:", *every[:SHOWN], *more]))


def some(faults: Iterable[str]) -> list[str]:
    """The first few of one kind, and how many more."""
    every = list(faults)
    more = [f"… and {len(every) - frames.EACH} more such rows"] if len(every) > frames.EACH else []
    return [*every[: frames.EACH], *more]


def person(table: Table, ids: Sequence[Any], row: int, column: str) -> str:
    """``person 7``, with the cell where the table comes from a file."""
    return f"person {ids[row]!r}{table.beside(row, column)}"


def listed(given: Any) -> list[Any]:
    """One value or several, as a list."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    return list(given) if several else [given]


def fitting(names: Sequence[str], patterns: Names) -> list[str]:
    """The names that are listed or fit a pattern."""
    for pattern in listed(patterns):
        if not isinstance(pattern, str):
            raise ValueError(f"a column is named by text, not {pattern!r}")
    return [name for name in names if any(fnmatchcase(name, p) for p in listed(patterns))]


def roles_of(
    names: Sequence[str], roles: Mapping[str, Names], taken: Sequence[str]
) -> dict[str, str]:
    """Each column's role, in the table's order; a column's own name beats patterns.

    Patterns pass over the ``taken`` columns (ids, cohorts, groups). Errors: naming one of those,
    two roles for a column, and a name or pattern that fits none.
    """
    exact: dict[str, str] = {}
    fitted: dict[str, str] = {}
    for role, given in roles.items():
        for pattern in listed(given):
            found = exact if pattern in names else fitted
            free = [name for name in fitting(names, pattern) if name not in taken]
            for name in [pattern] if pattern in names else free:
                if name in taken or found.setdefault(name, role) != role:
                    other = "id, cohort or same" if name in taken else found[name]
                    raise ValueError(f"column {name!r} is named in {role}, and in {other} too")
            if pattern not in names and not free:
                raise ValueError(
                    f"{role}: no column is named or fits {pattern!r}; there are {', '.join(names)}"
                )
    chosen = {**fitted, **exact}
    return {name: chosen[name] for name in names if name in chosen}


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
        for k, group in enumerate(self.groups):
            out[group.members] = k
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
    found = []
    for name in columns:
        gone = [row for row, cell in enumerate(table.listed(name)) if cell is None]
        found += some(f"{table.at(row, name)} has no {name!r}" for row in gone)
    return found


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
