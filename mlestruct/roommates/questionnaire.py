"""What columns are for, and answers as numbers of levels: fixed where a model is fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

import numpy as np

from mlestruct.features import Question
from mlestruct.roommates import frames
from mlestruct.roommates.frames import EACH, MOST_LEVELS, Column, Table, missing, number, written
from mlestruct.structures.base import Array, Ints

LARGEST = 1e12  # an answer; beyond, differences of answers lose digits
SHOWN = 20  # faults in one message
MISSING = "no answer"
IGNORE = "ignore"
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
            raise ValueError(
                f"ordinal column {column!r} holds text such as {_words(table, column)}; recode "
                "it as numbers, name codes for no answer in no_answer=, or the column in "
                "categorical="
            )
        if role == "ordinal" and np.abs(levels).max(initial=0) > LARGEST:
            worst = int(np.abs(given).argmax())
            who = person(table, ids, int(rows[worst]), column)
            words = f"{who} answers {given[worst]:g}, which is no level; divide it"
            raise ValueError(f"column {column!r}: {words}")
        if role == "ordinal" and len(levels) and np.equal(np.mod(levels, 1), 0).all():
            gaps = levels.astype(np.int64) - int(levels[0])
            if gaps[-1] < MOST_LEVELS:
                counts, levels = np.bincount(gaps, counts), int(levels[0]) + np.arange(gaps[-1] + 1)
        if role == "binary" and len(levels) > 2:
            raise ValueError(
                f"binary column {column!r} has {len(levels)} different answers: "
                f"{_some(levels.tolist())}"
            )
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"column {column!r} has {len(levels)} different answers; at most {MOST_LEVELS} "
                "are levels of a question: round or group them"
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


def _words(table: Table, column: str) -> str:
    """The first answer that is no number, with its place, and how many more there are."""
    cells = table[column].tolist()
    odd = [k for k, v in enumerate(cells) if isinstance(v, str) and number(v) is None]
    odd = odd or np.flatnonzero(~missing(table[column])).tolist()
    more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
    return f"{cells[odd[0]]!r}{table.beside(odd[0], column, more)}"


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
    more = [f"… and {len(every) - EACH} more such rows"] if len(every) > EACH else []
    return [*every[:EACH], *more]


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
