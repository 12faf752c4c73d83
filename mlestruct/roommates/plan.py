"""A plan: who shares, how probable that is, what else was near; and why two people score so."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlestruct.errors import refuse_removed
from mlestruct.limits import late
from mlestruct.results import Shown
from mlestruct.roommates.frames import Table
from mlestruct.roommates.pairing import Pairing
from mlestruct.roommates.people import People
from mlestruct.roommates.rooms import Room, Rule, Rules, housed
from mlestruct.structures.base import Ints

if TYPE_CHECKING:
    from mlestruct.roommates.model import RoommateModel

SHOWN = 20


class Pair(NamedTuple):
    """Two people who share; lists of these make a table (``pandas.DataFrame(plan.pairs)``)."""

    a: Any
    b: Any
    probability: float
    score: float
    group: str
    room: Any = None


class Single(NamedTuple):
    """Somebody without a partner, how probable that is, and the room where there is one."""

    person: Any
    probability: float
    group: str
    room: Any = None


class Alternative(NamedTuple):
    """Another partner for one person: a plan that requires the pair has what that costs."""

    partner: Any
    probability: float
    score: float


class Housed(NamedTuple):
    """Who lives together, by their numbers in the group, and their room."""

    pairing: Pairing
    who: Ints
    room: Any


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """Pairs that together score best.

    ``probability`` is the pair's pseudo-probability, whatever the rules; ``score`` is the learned
    score, centred so that 0 is an average partner for both. ``objective`` is the total that the
    plan maximises, and ``upper`` a proven bound on it.
    """

    people: People = field(repr=False)
    pairings: tuple[Pairing, ...] = field(repr=False)
    rooms: tuple[tuple[Room, ...], ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        model: RoommateModel,
        people: People,
        forbid: Sequence[Rule],
        require: Sequence[Rule],
        rooms: Sequence[Sequence[Room]] | None,
    ) -> Plan:
        """Every group by itself; two people fixed to one room are a required pair."""
        given = [()] * len(people.groups) if rooms is None else [tuple(r) for r in rooms]
        fixed = [[people.ids[row] for row in room.fixed] for group in given for room in group]
        twos = (who[k : k + 2] for who in fixed if len(who) > 1 for k in range(0, len(who), 2))
        must = (*require, *((pair[0], pair[1]) for pair in twos))
        rules = Rules.read(people, forbid, must)
        pairings = tuple(
            model.pairing(people, group, rules=rules, rooms=rooms and own)
            for group, own in zip(people.groups, given, strict=True)
        )
        for number, pairing in enumerate(pairings):
            if number and late():
                raise TimeoutError(
                    f"max_seconds ran out when {number} of {len(pairings)} groups were paired up: "
                    "raise max_seconds, or pair up fewer groups at a time"
                )
            _ = pairing.solution
        plan = cls(people, pairings, tuple(given))
        _ = plan.objective, plan.homes  # rules and rooms that leave no plan are refused here
        return plan

    @property
    def objective(self) -> float:
        return sum(pairing.solution.objective for pairing in self.pairings)

    @property
    def upper(self) -> float:
        return sum(pairing.solution.upper for pairing in self.pairings)

    @property
    def gap(self) -> float:
        """How much more another plan could reach at most."""
        return self.upper - self.objective

    @cached_property
    def homes(self) -> list[Housed]:
        """Who lives together."""
        found = []
        for pairing, rooms in zip(self.pairings, self.rooms, strict=True):
            fours = sum(room.size == 4 and not room.fixed for room in rooms)
            members = pairing.group.members
            kept = [np.searchsorted(members, room.fixed) for room in rooms if room.fixed]
            homes = pairing.homes(fours, kept)
            places = housed(rooms, [members[home] for home in homes])
            found += [Housed(pairing, *home) for home in zip(homes, places, strict=True)]
        return found

    @cached_property
    def shared(self) -> list[list[Pair]]:
        """The pairs of each home: two in a room for four, else one by itself."""
        found = []
        for pairing, who, room in self.homes:
            twos = who[: len(who) // 2 * 2].reshape(-1, 2)
            scores, tau = pairing.at(*twos.T)
            rows = zip(twos.tolist(), tau.tolist(), scores.tolist(), strict=True)
            label, ids = pairing.group.label, pairing.ids
            found.append([Pair(ids[a], ids[b], p, s, label, room) for (a, b), p, s in rows])
        return [pairs for pairs in found if pairs]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Who shares with whom; in a room for four, two pairs with the same room."""
        return [pair for home in self.shared for pair in home]

    @property
    def twos(self) -> Ints:
        """(pairs × 2) rows of any two people who share a home, also in a room for four."""
        living = [home.pairing.group.members[home.who] for home in self.homes]
        found = [np.stack(np.triu_indices(len(rows), 1), axis=1) for rows in living]
        twos = [rows[two] for rows, two in zip(living, found, strict=True)]
        return np.concatenate([np.empty((0, 2), dtype=np.int64), *twos])

    @cached_property
    def singles(self) -> list[Single]:
        """Who shares with nobody: one in an odd group, and who gets a room for one."""
        return [
            Single(pairing.ids[who[0]], float(pairing.single(who[0])), pairing.group.label, room)
            for pairing, who, room in self.homes
            if len(who) == 1
        ]

    @property
    def left_over(self) -> list[Any]:
        """The ids of those for whom there is neither a partner nor a room of their own."""
        return [single.person for single in self.singles if single.room is None]

    def columns(self) -> dict[str, list[Any]]:
        """A row for each pair, then for each single person, whose partner is None."""
        alone = [(s.person, None, s.probability, None, s.group, s.room) for s in self.singles]
        rows = [*map(tuple, self.pairs), *alone]
        return {name: [row[k] for row in rows] for k, name in enumerate(Pair._fields)}

    def remarks(self) -> list[str]:
        alone = ", ".join(map(str, self.left_over)) or "nobody"
        housed = [f"{s.person} ({s.room})" for s in self.singles if s.room is not None]
        return [
            *([f"alone in a room: {', '.join(housed)}"] if housed else []),
            f"left over: {alone}",
            f"total {self.objective:.6g}, proven best up to {self.gap:.2g}",
            *self.people.notes,
        ]

    def __repr__(self) -> str:
        return f"<Plan of {len(self.pairs)} pairs, {len(self.singles)} people alone: print it>"

    def partner(self, person: Hashable) -> Any:
        """The id of somebody's partner; None for who is left over."""
        pairing, me = self.find(person)
        other = int(pairing.solution.partner[me])
        return None if other < 0 else pairing.ids[other]

    def chance(self, person: Hashable) -> float:
        """The probability of any one partner, if partners were drawn from the group."""
        pairing, _ = self.find(person)
        people = len(pairing.ids)
        return (people - pairing.singles) / max(people * (people - 1), 1)

    def find(self, person: Hashable, where: str = "the plan") -> tuple[Pairing, int]:
        """Somebody's group and number in it."""
        row = self.people.find(person, where)
        pairing = self.pairings[self.people.group_of[row]]
        return pairing, pairing.group.place(row)

    def alternatives(self, person: Hashable, count: int = 5) -> list[Alternative]:
        """The most probable other partners that are not forbidden, most probable first."""
        pairing, me = self.find(person, "alternatives")
        barred = pairing.forbid[(pairing.forbid == me).any(axis=1)].ravel()
        scores, tau = pairing.at(me, np.arange(len(pairing.ids)))
        gone = np.array([me, pairing.solution.partner[me], *barred])
        tau[gone[(gone >= 0) & (gone < len(tau))]] = -1.0
        last = min(count, len(tau)) - 1
        near = np.flatnonzero(tau >= max(0.0, -np.partition(-tau, last)[last]))
        near = near[np.argsort(-tau[near], kind="stable")][:count]
        return [Alternative(pairing.ids[k], float(tau[k]), float(scores[k])) for k in near]

    def what_if(self, **_: object) -> None:
        refuse_removed("Plan.what_if")


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
        parts = pairing.parts(*pair)
        a, b = pairing.group.members[list(pair)].tolist()
        found = [
            Contribution(name, _answer(table[name].item(a)), _answer(table[name].item(b)), part)
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
        head = f"{self.a} and {self.b}: probability {self.probability:.3g}, score {self.score:+.3f}"
        more = [f"protected columns together: {self.withheld:+.3f}"] if self.withheld else []
        return [f"{head} (0 is an average partner)", *more]


def _answer(cell: Any) -> Any:
    """5 for 5.0, which a column with gaps holds; None for a gap."""
    if not isinstance(cell, float):
        return cell
    return None if isnan(cell) else int(cell) if cell.is_integer() else cell
