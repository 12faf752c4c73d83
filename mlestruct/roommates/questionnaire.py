"""What columns are for, and answers as numbers of levels: fixed where a model is fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

import numpy as np

from mlestruct.features import Question
from mlestruct.roommates.cells import number, written
from mlestruct.roommates.columns import EACH, MOST_LEVELS, suspects, variants
from mlestruct.roommates.frames import Column, Table, missing
from mlestruct.structures.base import Array, Ints

LARGEST = 1e12  # an answer; beyond, differences of answers lose digits
SHOWN = 20  # faults in one message
MISSING = "no answer"
IGNORE = "ignore"
Unknown = Literal["refuse", "neutral", "nearest"]
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
        given = _present(table, column, _answers(table, column, role), ids)
        levels, counts = np.unique(given, return_counts=True)
        if role == "ordinal" and levels.dtype.kind == "U":
            raise ValueError(
                f"ordinal column {column!r} holds text such as {_words(table, column)}; recode "
                "it as numbers, name codes for no answer in no_answer=, or the column in "
                "categorical="
            )
        largest = np.abs(levels).max(initial=0) if role == "ordinal" else 0
        if largest > LARGEST:
            raise ValueError(f"column {column!r}: an answer of {largest:g} is no level; divide it")
        if role == "ordinal" and len(levels) and np.equal(np.mod(levels, 1), 0).all():
            first, gaps = int(levels[0]), levels.astype(np.int64) - int(levels[0])
            counts = np.bincount(gaps, counts) if gaps[-1] < MOST_LEVELS else counts
            levels = first + np.arange(len(counts)) if gaps[-1] < MOST_LEVELS else levels
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

        An answer that is no level is refused; or it counts as an average one (``neutral``, the
        number after the last), or as the ``nearest`` number.
        """
        values = _answers(table, self.column, self.role, text=isinstance(self.levels[0], str))
        given = _present(table, self.column, values, ids)
        text, was_text = given.dtype.kind == "U", isinstance(self.levels[0], str)
        if len(given) and text != was_text and unknown == "refuse":
            kinds = ("numbers", "text")
            first = f"; the first is {_words(table, self.column)}" if text and table.places else ""
            raise ValueError(
                f"column {self.column!r} holds {kinds[text]}; it held {kinds[was_text]} when the "
                f"model was fitted{first}"
            )
        codes = np.full(len(values), -1)
        kinds_of, which = np.unique(given, return_inverse=True)
        place = {level: k for k, level in enumerate(self.levels)}
        found = [place.get(_alike(answer, was_text), -1) for answer in kinds_of.tolist()]
        strange = [k for k, code in enumerate(found) if code < 0]
        given_by = np.flatnonzero(~missing(values))
        where = {k: given_by[which == k] for k in strange}
        numbers = self.role == "ordinal"
        if strange and unknown == "nearest" and (not numbers or text):
            raise ValueError(
                f"column {self.column!r}: {kinds_of[strange[0]].item()!r} has no nearest answer, "
                "since the answers are no numbers; say unknown=neutral for it"
            )
        nearest = " and unknown=nearest as the nearest one" if numbers else ""
        refuse(
            f"column {self.column!r}: {person(table, ids, int(rows[0]), self.column)} answers "
            f"{kinds_of[k].item()!r}, which nobody did when the model was fitted; known are "
            f"{_some(self.levels)}; unknown=neutral counts it as an average answer{nearest}"
            for k, rows in where.items()
            if unknown == "refuse"
        )
        for k in strange:
            found[k] = len(self.levels)
            if unknown == "nearest":
                found[k] = int(np.abs(np.array(self.levels) - float(kinds_of[k])).argmin())
        codes[given_by] = np.array(found, dtype=np.int64)[which]
        return codes, [self._told(table, ids, kinds_of[k], where[k], found[k]) for k in strange]

    def _told(self, table: Table, ids: Sequence[Any], answer: Any, rows: Ints, code: int) -> str:
        known = code < len(self.levels)
        counts = f"as {self.levels[code]!r}" if known else "as an average answer"
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        return (
            f"column {self.column!r}: {answer.item()!r}, new since the fit, counts {counts} "
            f"({person(table, ids, int(rows[0]), self.column)}{more})"
        )

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


def _answers(table: Table, column: str, role: str, text: bool = False) -> Column:
    """Numbers of an ordinal question; of others what tells answers apart, as text if they were."""
    if role == "ordinal":
        return table[column]
    return table.as_written(column) if text else table.as_levels(column)


def _present(table: Table, column: str, values: Column, ids: Sequence[Any]) -> Column:
    """The answers there are, as numbers or text; infinite ones are refused."""
    given = values[~missing(values)]
    if given.dtype.kind == "f" and np.isinf(given).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(
            f"column {column!r}: {person(table, ids, row, column)} answers {values[row]}"
        )
    return given.astype(str) if given.dtype.kind == "O" else given


def _words(table: Table, column: str) -> str:
    """The first answer that is no number, with its place, and how many more there are."""
    odd = [
        k for k, v in enumerate(table[column].tolist()) if isinstance(v, str) and number(v) is None
    ]
    odd = odd or np.flatnonzero(~missing(table[column])).tolist()
    more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
    place = "" if table.places is None else f" ({table.at(odd[0], column)}{more})"
    return f"{table[column][odd[0]]!r}{place}"


def _alike(answer: Any, text: bool) -> Any:
    """An answer in the kind of the levels, so that 3 and "3" are one."""
    if text:
        return written(answer)
    return number(answer) if isinstance(answer, str) else answer


def _some(levels: Sequence[Any]) -> str:
    shown = ", ".join(repr(level) for level in levels[:8])
    return f"{shown}, …" if len(levels) > 8 else shown


def survey(
    table: Table, taken: Sequence[str], roles: Mapping[str, str], ids: Sequence[Any]
) -> tuple[tuple[Answers, ...], list[str], list[str]]:
    """Every question's answers; in words which columns say nothing or look odd; and all faults.

    ``taken`` are the columns of ids, cohorts and groups.
    """
    asked, faults = [], []
    for name, role in roles.items():
        try:
            asked += [Answers.seen(table, name, role, ids)] if role != IGNORE else []
        except ValueError as error:
            faults.append(str(error))
    constant = [answers.column for answers in asked if len(answers.levels) < 2]
    faults += [fault for name in constant for fault in _marks(table, name)]
    idle = [n for n in table.names if n not in taken and roles.get(n, IGNORE) == IGNORE]
    notes = [f"ignored: {', '.join(idle)}"] if idle else []
    notes += [f"all answers alike, so not used: {', '.join(constant)}"] if constant else []
    used = tuple(answers for answers in asked if len(answers.levels) > 1)
    return used, notes, faults


def _marks(table: Table, column: str) -> list[str]:
    """A column of one answer and of blanks, which may be ticks, may mean anything."""
    gone = missing(table[column])
    if not gone.any() or gone.all():
        return []
    blank, ticked = np.flatnonzero(gone), np.flatnonzero(~gone)
    answer = written(table.as_written(column)[ticked[0]])
    place = "" if table.places is None else f" (the first {table.at(int(blank[0]), column)})"
    return [
        f"column {column!r}: {len(ticked)} people have {answer!r}, {len(blank)} nothing{place}; if "
        "a blank means no, write that there, else leave the column out"
    ]


def spelled_twice(table: Table, groups: Sequence[str]) -> list[str]:
    """Groups in several spellings: people of F and of f never share."""
    return [
        f"{name}: {', '.join(map(repr, alike))} count as different groups"
        for name in groups
        for alike in variants(table.as_names(name))
        if any(letter.isalpha() for letter in alike[0])  # houses 1.1 and 11 are two
    ]


def idle_codes(table: Table, codes: Mapping[str, Sequence[Any]]) -> list[str]:
    """Codes for no answer that nobody gave: they are misspelled, or a range written as one."""
    given: dict[str | None, bool] = {}
    for name, values in codes.items():
        cells = (table.written or table.columns).get(name, table.columns[name])
        there = {written(cell) for cell in cells.tolist()}
        for code in map(written, values):
            given[code] = given.get(code, False) or code in there
    return [f"no_answer: nobody gave {code!r}" for code, found in given.items() if not found]


def doubts(table: Table, answers: Sequence[Answers]) -> list[str]:
    """Answers that are probably none, or one answer in several spellings."""
    found = []
    for asked in answers:
        for value, given in suspects(table[asked.column]).items():
            found.append(
                f"{asked.column}: {value!r}, given by {given}, looks like a code for no answer and "
                f"counts as an answer; if it is one, say no_answer={value}"
            )
        for spellings in [] if asked.role == "ordinal" else variants(table.as_levels(asked.column)):
            all_of_them = ", ".join(map(repr, spellings))
            found.append(f"{asked.column}: {all_of_them} count as different answers")
    return found


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
    where = "" if table.places is None else f" ({table.at(row, column)})"
    return f"person {ids[row]!r}{where}"


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
