"""A plan: who shares with whom, how probable that is, who is left over, and what else was near."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Id = Hashable


class Pair(NamedTuple):
    """Two people who share; lists of these make a table (``pandas.DataFrame(plan.pairs)``)."""

    a: Any
    b: Any
    probability: float
    score: float
    group: str
    room: Any = None


class Alternative(NamedTuple):
    """Another partner for one person, and what the plan's total would lose by that pair."""

    partner: Any
    probability: float
    score: float
    loss: float


@dataclass(frozen=True)
class WhatIf:
    """The best plan under further rules, what the total loses, and the pairs that are new."""

    plan: Plan
    loss: float
    new: list[Pair]


@dataclass(frozen=True)
class Plan:
    """Pairs that together score best (``map``) or are most often right (``expected``).

    ``probability`` is the pseudo-probability of the pair given the rules; ``score`` is the
    learned score centred by person, so that 0 is an average partner for both. ``left_over``
    names who has no partner (odd groups, rooms for one). ``objective`` is the total the plan
    maximises, ``upper`` a proven bound on it: the plan is best up to ``gap``.
    """

    pairs: list[Pair]
    left_over: list[Any]
    objective: float
    upper: float

    @property
    def gap(self) -> float:
        """How much a better plan could gain at most."""
        return self.upper - self.objective

    def partner(self, person: Id) -> Any:
        """The person's partner, or None for who is left over."""
        raise NotImplementedError

    def alternatives(self, person: Id, count: int = 5) -> list[Alternative]:
        """The most probable other partners, each with what choosing it would cost the plan."""
        raise NotImplementedError

    def what_if(
        self, forbid: Sequence[tuple[Id, Id]] = (), require: Sequence[tuple[Id, Id]] = ()
    ) -> WhatIf:
        """The best plan when these rules are added to the plan's own."""
        raise NotImplementedError
