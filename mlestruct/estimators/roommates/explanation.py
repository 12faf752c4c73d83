"""Why two people score as they do: each answer's share of the centred score."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import exp, isnan
from typing import Any, NamedTuple

from mlestruct.estimators.roommates.pairing import Pairing
from mlestruct.results import Shown
from mlestruct.tables import Table


class Contribution(NamedTuple):
    """What two answers to one question add to a score: above 0 they help, below they hurt."""

    column: str
    answer_a: Any
    answer_b: Any
    contribution: float


@dataclass(frozen=True)
class Explanation(Shown):
    """A pair's score in parts: ``contributions``, largest first, and ``withheld`` add up to it.

    ``withheld`` is the sum over protected columns, which are itemised only when asked for.
    """

    a: Any
    b: Any
    score: float
    probability: float
    contributions: list[Contribution]
    withheld: float

    @classmethod
    def of(
        cls, table: Table, pairing: Pairing, pair: tuple[int, int], protected: Collection[str]
    ) -> Explanation:
        """Of two people, by their numbers in the group."""
        score, probability = pairing.at(*pair)
        parts = pairing.worth.parts(*pair)
        rows = pairing.group.members[list(pair)].tolist()
        found = [
            Contribution(name, *_answers(table, name, rows), part)
            for name, part in parts.items()
            if name not in protected
        ]
        return cls(
            pairing.ids[pair[0]],
            pairing.ids[pair[1]],
            float(score),
            float(probability),
            sorted(found, key=lambda row: -abs(row.contribution)),
            sum(part for name, part in parts.items() if name in protected),
        )

    def columns(self) -> dict[str, list[Any]]:
        """A row for each answer: what it adds to the score, and by what it multiplies the odds."""
        rows = [(*row, exp(row.contribution)) for row in self.contributions]
        names = (*Contribution._fields, "odds")
        return {name: [row[k] for row in rows] for k, name in enumerate(names)}

    def remarks(self) -> list[str]:
        return str(self).splitlines()[:1]

    def plot(self, ax: Any = None) -> Any:
        """Every answer's share of the score; right of 0 speaks for the pair."""
        from mlestruct.plot import dots

        names = [row.column for row in self.contributions]
        shares = [row.contribution for row in self.contributions]
        return dots(names, shares, mark=0.0, label="share of the score", ax=ax)

    def __str__(self) -> str:
        rows = [
            f"{part:+8.3f}  {column}: {_told(a)} and {_told(b)}"
            for column, a, b, part in self.contributions
        ]
        rows += [f"{self.withheld:+8.3f}  protected columns"] if self.withheld else []
        head = f"{self.a} and {self.b}: probability {self.probability:.3g}, score {self.score:+.3f}"
        return "\n".join([f"{head} (0 is an average partner)", *rows])


def _told(answer: Any) -> str:
    return "no answer" if answer is None else str(answer)


def _answers(table: Table, name: str, rows: Any) -> tuple[Any, Any]:
    """Both people's answers; None for one that is missing, and for a feature that is no column."""
    if name not in table.names:
        return None, None
    column, (first, second) = table[name], rows
    return _answer(column.item(first)), _answer(column.item(second))


def _answer(cell: Any) -> Any:
    """5 for 5.0, which a column with gaps holds; None for a gap."""
    if not isinstance(cell, float):
        return cell
    return None if isnan(cell) else int(cell) if cell.is_integer() else cell
