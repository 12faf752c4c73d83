"""What was learned, how sure it is, what cannot be known, what proves it and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import block_diag

from mlestruct import Certificate
from mlestruct.estimators.stored import StoredFit
from mlestruct.features import Question
from mlestruct.inference.sandwich import PAIRS
from mlestruct.results import Shown
from mlestruct.roommates.questionnaire import Answers
from mlestruct.structures.base import Array

SHOWN = 20


@dataclass(frozen=True)
class Contrasts:
    """Combinations of weights, the rows of ``matrix``, each with its column and a name.

    A question with one weight has that one. A question with a weight per pair of answers has the
    worth of each pair, less both answers' means over the people learned from, plus the mean of
    all: whatever is added to all pairs of one answer changes no matching's probability.
    """

    columns: list[str]
    names: list[str]
    matrix: Array = field(repr=False)

    @classmethod
    def of(cls, answers: Sequence[Answers], questions: Sequence[Question]) -> Self:
        """In the order of the questions' weights."""
        columns, names, blocks = [], [], [np.empty((0, 0))]
        for asked, question in zip(answers, questions, strict=True):
            one = len(question.weights) == 1
            named, block = (list(question.weights), np.eye(1)) if one else _centred(asked, question)
            columns += [asked.column] * len(named)
            names += named
            blocks.append(block)
        return cls(columns, names, np.asarray(block_diag(*blocks)))


def _centred(asked: Answers, question: Question) -> tuple[list[str], Array]:
    """Names, and rows (P T_w Pᵀ)_ab over the weights w, with P = I − 1 shareᵀ."""
    count = len(asked.levels)
    project = np.eye(count) - asked.share
    tables = project @ question.tables[:, :count, :count] @ project.T
    low, high = np.array(list(combinations_with_replacement(range(count), 2))).T
    names = [
        f"{asked.column} {asked.levels[a]} with {asked.levels[b]}"
        for a, b in zip(low, high, strict=True)
    ]
    return names, tables[:, low, high].T


class PairContrast(NamedTuple):
    """A combination of weights that pairs identify, debiased, with its 95 % interval.

    The interval is for the surrogate's limit: what this method would learn from unlimited data.
    Where pairs are too few for any, error and both ends are NaN.
    """

    column: str
    name: str
    estimate: float
    error: float
    low: float
    high: float


class ContrastTable(NamedTuple):
    """Estimate, error and both ends of every contrast; from how many pairs, for how many weights.

    An infinite error: not identified. NaN: the pairs are too few for an interval.
    """

    rows: Array
    pairs: int
    rank: int


@dataclass(frozen=True)
class RoommateSummary(Shown):
    """Contrasts, what these ``pairs`` leave ``unidentified``, notes, certificate and cost."""

    contrasts: list[PairContrast]
    unidentified: list[str]
    pairs: int
    rank: int
    notes: list[str]
    certificate: Certificate
    bound: str
    alpha: float
    alpha_scores: list[tuple[float, float]]
    evaluations: int
    seconds: float

    @classmethod
    def of(
        cls, contrasts: Contrasts, told: ContrastTable, fitted: StoredFit, notes: list[str]
    ) -> Self:
        """Contrasts whose error is infinite are those that the pairs do not identify."""
        known, lost = [], []
        rows = zip(contrasts.columns, contrasts.names, told.rows.tolist(), strict=True)
        for column, name, numbers in rows:
            if np.isinf(numbers[1]):
                lost.append(name)
            else:
                known.append(PairContrast(column, name, *numbers))
        calls, seconds, *_ = fitted.model.history[-1]
        proof, tried = fitted.model.certificate, fitted.alpha_scores
        return cls(
            known,
            lost,
            told.pairs,
            told.rank,
            notes,
            proof,
            proof.bound,
            fitted.alpha,
            tried if len(tried) > 1 else [],
            calls,
            seconds,
        )

    @property
    def sure(self) -> bool:
        """Whether there are pairs enough for intervals."""
        return not any(np.isnan(c.error) for c in self.contrasts)

    @property
    def surest(self) -> list[PairContrast]:
        """By distance from 0 in errors; where there are none, by size."""
        sure = self.sure
        return sorted(
            self.contrasts, key=lambda c: -abs(c.estimate) / (max(c.error, 1e-12) if sure else 1.0)
        )

    def columns(self) -> dict[str, list[Any]]:
        """A row for each contrast."""
        rows = self.contrasts
        return {name: [row[k] for row in rows] for k, name in enumerate(PairContrast._fields)}

    def remarks(self) -> list[str]:
        return [self._head(), *self.notes, self._alpha()]

    def plot(self, ax: Any = None) -> Any:
        """The surest contrasts with their 95 % intervals."""
        from mlestruct.plot import dots

        first = self.surest[:SHOWN]
        spans = [(c.low, c.high) for c in first]
        names, values = [c.name for c in first], [c.estimate for c in first]
        return dots(names, values, spans, mark=0.0, label="contrast", ax=ax)

    def __str__(self) -> str:
        surest = self.surest
        rows = [_line(c) for c in surest[:SHOWN]]
        if len(surest) > SHOWN:
            rows.append(f"… and {len(surest) - SHOWN} less sure")
        lost = ", ".join(self.unidentified[:SHOWN]) + ", …" * (len(self.unidentified) > SHOWN)
        return "\n".join(
            [
                self._head(),
                *rows,
                *([f"these pairs do not tell: {lost}"] if lost else []),
                *self.notes,
                self._alpha(),
                f"{self.evaluations} evaluations, {self.seconds:.2g} s",
            ]
        )

    def _head(self) -> str:
        count = f"from {self.pairs} pairs, for {self.rank} identified weights"
        if not self.sure:
            least = int(np.ceil(PAIRS * self.rank))
            return (
                f"estimates {count}: too few for intervals, which need {least} pairs at least "
                "that the model is not sure of"
            )
        return (
            f"estimates (not shrunken), surest first, {count}; 95 % intervals are for the "
            "surrogate's limit, and take pairs of one group to be nearly independent"
        )

    def _alpha(self) -> str:
        path = ", ".join(f"{alpha:g}: {score:.4g}" for alpha, score in self.alpha_scores)
        chosen = f", chosen by the log-likelihood of held-out cohorts ({path})" if path else ""
        return f"alpha {self.alpha:g}{chosen}; {self.certificate}"


def _line(c: PairContrast) -> str:
    if np.isnan(c.error):
        return f"{c.estimate:+8.3f}  {c.name}"
    return f"{c.estimate:+8.3f}  [{c.low:+.3f}, {c.high:+.3f}]  {c.name}"
