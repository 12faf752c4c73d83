"""Answers as numbers of levels: what a column may hold is fixed where a model is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlestruct.estimators.roommates.roles import Names, roles_of
from mlestruct.features import Question
from mlestruct.structures.base import Array, Ints
from mlestruct.tables import Column, Table, missing

MOST_LEVELS = 40  # of one question; its weights grow with their square
MISSING = "no answer"
IGNORE = "ignore"


@dataclass(frozen=True)
class Answers:
    """A column's possible answers, in order, and how many people gave each."""

    column: str
    role: str
    levels: tuple[Any, ...]
    counts: tuple[int, ...]

    @classmethod
    def seen(cls, column: str, role: str, values: Column, who: Sequence[Any]) -> Self:
        """The levels that these answers show; ordinal whole numbers without gaps."""
        given = _present(column, values, who)
        levels, counts = np.unique(given, return_counts=True)
        if role == "ordinal" and levels.dtype.kind == "U":
            raise ValueError(
                f"ordinal column {column!r} holds text such as {str(levels[0])!r}; recode it as "
                "numbers, or name it in categorical"
            )
        if role == "ordinal" and len(levels) and np.equal(np.mod(levels, 1), 0).all():
            first, gaps = int(levels[0]), levels.astype(np.int64) - int(levels[0])
            counts = np.bincount(gaps, counts) if gaps[-1] < MOST_LEVELS else counts
            levels = first + np.arange(len(counts)) if gaps[-1] < MOST_LEVELS else levels
        if role == "binary" and len(levels) > 2:
            raise ValueError(f"binary column {column!r} has {len(levels)} different answers")
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"column {column!r} has {len(levels)} different answers; at most {MOST_LEVELS} "
                "are levels of a question: round or group them"
            )
        return cls(column, role, tuple(levels.tolist()), tuple(counts.astype(int).tolist()))

    def codes(self, values: Column, who: Sequence[Any]) -> Ints:
        """The level's number of every answer, −1 where there is none."""
        given = _present(self.column, values, who)
        text, was_text = given.dtype.kind == "U", isinstance(self.levels[0], str)
        if len(given) and text != was_text:
            kinds = ("numbers", "text")
            raise ValueError(
                f"column {self.column!r} holds {kinds[text]}; it held {kinds[was_text]} when the "
                "model was fitted"
            )
        place: dict[Any, int] = {level: k for k, level in enumerate(self.levels)}
        codes = np.full(len(values), -1)
        for row in np.flatnonzero(~missing(values)).tolist():
            answer = values[row].item() if hasattr(values[row], "item") else values[row]
            if answer not in place:
                raise ValueError(
                    f"column {self.column!r}: person {who[row]!r} answers {answer!r}, which "
                    f"nobody did when the model was fitted; known are {_some(self.levels)}"
                )
            codes[row] = place[answer]
        return codes

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
        return Question(made.name, (*made.levels, MISSING), made.weights, tables)

    @property
    def share(self) -> Array:
        counts = np.asarray(self.counts, dtype=float)
        return np.asarray(counts / counts.sum())


def _present(column: str, values: Column, who: Sequence[Any]) -> Column:
    """The answers there are, as numbers or text; infinite ones are refused."""
    given = values[~missing(values)]
    if given.dtype.kind == "f" and np.isinf(given).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(f"column {column!r}: person {who[row]!r} answers {values[row]}")
    return given.astype(str) if given.dtype.kind == "O" else given


def _some(levels: Sequence[Any]) -> str:
    shown = ", ".join(repr(level) for level in levels[:8])
    return f"{shown}, …" if len(levels) > 8 else shown


def survey(
    table: Table, taken: Sequence[str], roles: Mapping[str, Names], who: Sequence[Any]
) -> tuple[tuple[Answers, ...], list[str]]:
    """Every question's answers, and in words which columns say nothing.

    ``taken`` are the columns of ids, cohorts and groups.
    """
    chosen = roles_of(table.names, roles, taken)
    asked = [
        Answers.seen(name, role, table[name], who)
        for name, role in chosen.items()
        if role != IGNORE
    ]
    constant = [answers.column for answers in asked if len(answers.levels) < 2]
    idle = [n for n in table.names if n not in taken and chosen.get(n, IGNORE) == IGNORE]
    notes = [f"ignored: {', '.join(idle)}"] if idle else []
    notes += [f"all answers alike, so not used: {', '.join(constant)}"] if constant else []
    return tuple(answers for answers in asked if len(answers.levels) > 1), notes
