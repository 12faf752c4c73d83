"""What was learned, how sure it is, what cannot be known, what proves it and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from mlestruct import Certificate
from mlestruct.inference.sandwich import PAIRS
from mlestruct.results import Shown
from mlestruct.structures.base import Array

if TYPE_CHECKING:
    from mlestruct.roommates.model import RoommateModel

SHOWN = 20


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
    def of(cls, model: RoommateModel) -> Self:
        """Contrasts whose error is infinite are those that the pairs do not identify."""
        known, lost, contrasts = [], [], model.asked_.contrasts
        rows = zip(contrasts.columns, contrasts.names, model.told_.rows.tolist(), strict=True)
        for column, name, numbers in rows:
            if np.isinf(numbers[1]):
                lost.append(name)
            else:
                known.append(PairContrast(column, name, *numbers))
        calls, seconds, *_ = model.history_[-1]
        proof, told, scores = model.certificate_, model.told_, model.alpha_scores_
        counts = told.pairs, told.rank, model.notes_
        return cls(known, lost, *counts, proof, proof.bound, model.alpha_, scores, calls, seconds)

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
        told = f" (held-out log-likelihoods: {path})" if path else ""
        return f"alpha {self.alpha:g}{told}; {self.certificate}"


def _line(c: PairContrast) -> str:
    if np.isnan(c.error):
        return f"{c.estimate:+8.3f}  {c.name}"
    return f"{c.estimate:+8.3f}  [{c.low:+.3f}, {c.high:+.3f}]  {c.name}"
