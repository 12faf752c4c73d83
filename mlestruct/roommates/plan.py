"""A plan: pairs that score best under rules, with a proof; probabilities; and why two score so."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch
from mlestruct.errors import Infeasible, refuse_removed
from mlestruct.features import Pairs, Question
from mlestruct.inference import Marginals, best
from mlestruct.inference.choose import Inference
from mlestruct.limits import late
from mlestruct.results import Shown
from mlestruct.roommates.frames import Column, Columns, Table
from mlestruct.roommates.people import Group, People
from mlestruct.roommates.rooms import Room, Rule, Rules, conflict, housed
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints, as_count

if TYPE_CHECKING:
    from mlestruct.roommates.model import RoommateModel

BLOCK = 256  # people whose probabilities are held at once


def worths(questions: Sequence[Question], codes: Ints, theta: Array) -> tuple[Question, ...]:
    """What every two answers to a question are worth, by the weights of :class:`Pairs`.

    Every person's mean over the others is 0 in every part. A perfect matching's total changes by
    a constant only, so nothing else could have been learned from pairs.
    """
    ends = np.cumsum([len(q.weights) for q in questions], dtype=np.int64)
    found = []
    for question, own, weights in zip(questions, codes.T, np.split(theta, ends), strict=False):
        table = np.tensordot(weights, question.tables, 1)
        worth = centred(table, np.bincount(own, minlength=len(table)).astype(float))[None]
        found.append(Question(question.name, question.levels, (question.name,), worth))
    return tuple(found)


def centred(table: Array, counts: Array) -> Array:
    """table[a, b] − r_a − r_b, such that every person's mean over all others is 0.

    ``counts`` says how many people gave each answer.
    """
    n, alone = counts.sum(), np.diagonal(table)
    if n <= 2:
        return np.zeros_like(table)
    sums = table @ counts - alone
    shift = (sums - (counts @ sums) / (2.0 * (n - 1))) / (n - 2)
    return np.asarray(table - (shift[:, None] + shift))


class Solution(NamedTuple):
    """Everybody's partner (−1: stays single), the total reached, and a proven bound on it."""

    partner: Ints
    objective: float
    upper: float


@dataclass(frozen=True)
class Pairing:
    """The people of a group, numbered from 0, rules among them, and how many stay single.

    Who stays single shares with an empty bed, which is worth 0: as much as an average partner.
    Beds are numbered after the people, so that a rule may require one.
    """

    group: Group
    ids: list[Any] = field(repr=False)
    questions: tuple[Question, ...] = field(repr=False)
    codes: Ints = field(repr=False)
    singles: int
    forbid: Ints = field(repr=False)
    require: Ints = field(repr=False)
    inference: Inference

    @classmethod
    def of(
        cls,
        people: People,
        group: Group,
        questions: tuple[Question, ...],
        inference: Inference,
        rules: Rules | None = None,
        rooms: Sequence[Room] | None = None,
    ) -> Pairing:
        """One group under the rules; without rooms, one person of an odd group stays single."""
        ids = [people.ids[row] for row in group.members.tolist()]
        ones = [room for room in rooms or () if room.size == 1]
        singles = len(ids) % 2 if rooms is None else len(ones)
        none = np.zeros((0, 2), dtype=np.int64)
        forbid, require = (none, none) if rules is None else rules.within(group)
        alone = [[group.place(row), len(ids) + k] for k, r in enumerate(ones) for row in r.fixed]
        for person, _ in alone:
            if person in require:
                raise Infeasible(f"{ids[person]!r} has a room for 1 and is in a required pair")
        require = np.concatenate([require, np.array(alone, dtype=np.int64).reshape(-1, 2)])
        shared = [room.fixed[0] for room in rooms or () if room.size > 1 == len(room.fixed)]
        beds = [[group.place(row), len(ids) + k] for row in shared for k in range(singles)]
        forbid = np.concatenate([forbid, np.array(beds, dtype=np.int64).reshape(-1, 2)])
        codes = people.codes[group.members]
        return cls(group, ids, questions, codes, singles, forbid, require, inference)

    @cached_property
    def structure(self) -> Matching:
        """All pairings of the people, rules or not; beds are never paired with each other."""
        n = len(self.ids)
        return Matching(n + self.singles, forbidden=_all_pairs(n, self.singles))

    @cached_property
    def scores(self) -> Array:
        """Of all pairs u < v of people and empty beds, which are worth 0 to everybody."""
        codes = np.pad(self.codes, ((0, self.singles), (0, 0)), constant_values=-1)
        pairs = Pairs.of(Batch.of(Matching(len(codes)), count=1), [codes], self.questions)
        return pairs.potentials(np.ones(pairs.d))

    def parts(self, a: int, b: int) -> dict[str, float]:
        """What each question adds to the score of two people."""
        asked = zip(self.questions, *self.codes[[a, b]], strict=True)
        return {question.name: float(question.tables[0, i, j]) for question, i, j in asked}

    @cached_property
    def beliefs(self) -> Marginals:
        """Every pair's pseudo-probability among these people: rules bind plans, not beliefs."""
        return self.inference.marginals(Batch.of(self.structure, count=1), self.scores)

    @property
    def tau(self) -> Array:
        return self.beliefs.tau

    @cached_property
    def solution(self) -> Solution:
        """The best pairing that keeps the rules, proven by the duals of the matching."""
        shut = np.concatenate([self.forbid, _all_pairs(len(self.ids), self.singles)])
        ruled = Matching(self.structure.n_nodes, forbidden=shut, required=self.require)
        try:
            (mate,), objective, upper = best(Batch.of(ruled, count=1), self.scores)
        except Infeasible as error:
            if not len(error.groups):
                raise
            found = conflict(self.group.label, self.ids, self.forbid, error.groups)
            raise Infeasible(found) from error
        mate = mate[: len(self.ids)]
        partner = np.where(mate < len(self.ids), mate, -1)
        return Solution(partner, float(objective[0]), float(upper[0]))

    def at(self, first: Any, second: Any) -> tuple[Array, Array]:
        """(scores, probabilities) of people with people, pair by pair; 0 with oneself."""
        a, b = np.broadcast_arrays(first, second)
        if not len(self.scores):
            return np.zeros(a.shape), np.zeros(a.shape)
        place = self.structure.graph.place(np.minimum(a, b), np.maximum(a, b))
        place = np.minimum(place, len(self.scores) - 1)
        return self.scores[place] * (a != b), self.tau[place] * (a != b)

    def single(self, person: Any) -> Array:
        """The probability that somebody stays single."""
        beds = np.arange(self.singles) + len(self.ids)
        place = self.structure.graph.place(np.asarray(person)[..., None], beds)
        return np.asarray(self.tau[place].sum(axis=-1))

    def homes(self, fours: int, kept: Sequence[Ints]) -> list[Ints]:
        """Who lives together: singles, pairs, and ``fours`` times two pairs that go well together.

        Fours are chosen after the pairs, best in total cross scores, and never of people who must
        not share. Who is fixed to a room (``kept``, by rooms) lives with nobody else.
        """
        partner = self.solution.partner
        people = np.arange(len(partner))
        pairs = np.stack([people, partner], axis=1)[people < partner]
        ones = [np.array([v]) for v in np.flatnonzero(partner < 0)]
        whole = [room for room in kept if len(room) == 4]
        pairs = pairs[~np.isin(pairs, np.concatenate([[-1], *whole])).any(axis=1)]
        if not fours:
            return [*whole, *pairs, *ones]
        apart = np.isin(pairs, np.concatenate([[-1], *kept])).any(axis=1)
        joined = self._joined(pairs[~apart], fours)
        return [*whole, *pairs[apart], *joined, *ones]

    def _joined(self, pairs: Ints, fours: int) -> list[Ints]:
        """Pairs, of which ``fours`` twos are joined: the best by the matching of pairs."""
        low, high = np.triu_indices(len(pairs), 1)
        mine, others = pairs[low][:, :, None], pairs[high][:, None]
        table = np.zeros((2 * len(pairs) - 2 * fours,) * 2)
        table[low, high] = self.at(mine, others)[0].sum(axis=(1, 2))
        beds = _all_pairs(len(pairs), len(pairs) - 2 * fours)
        shut = np.zeros((len(self.ids) + self.singles,) * 2, dtype=bool)
        shut[tuple(self.forbid.T)] = True
        never = (shut | shut.T)[mine, others].any(axis=(1, 2))
        closed = np.stack([low[never], high[never]], axis=1)
        structure = Matching(len(table), forbidden=np.concatenate([beds, closed]))
        weights = table[structure.ends[:, 0], structure.ends[:, 1]]
        try:
            (mate,), _, _ = best(Batch.of(structure, count=1), weights)
        except Infeasible as error:
            raise Infeasible(
                f"{self.group.label}: rooms for 4 cannot be filled without people who must not "
                "share; list rooms for 2 before them, or let such a rule go"
            ) from error
        mate = mate[: len(pairs)]
        twos = [pairs[k] for k in np.flatnonzero(mate >= len(pairs))]
        both = [k for k in np.flatnonzero(mate < len(pairs)) if k < mate[k]]
        return [*twos, *(np.concatenate([pairs[k], pairs[mate[k]]]) for k in both)]


def _all_pairs(first: int, count: int) -> Ints:
    """All pairs of ``count`` nodes from ``first`` on."""
    return first + np.stack(np.triu_indices(count, 1), axis=1)


def likely(
    ids: Column, pairings: Sequence[Pairing], count: int | None = None, each: int | None = None
) -> Columns:
    """The ``count`` most probable pairs of all groups, or all pairs; empty beds are left out.

    With ``each``, only pairs that are among either person's so many most probable ones.
    """
    count = None if count is None else as_count(count, "count", least=1)
    each = None if each is None else as_count(each, "each", least=1)
    parts = []
    for pairing in pairings:
        pairs: NDArray[Any] = pairing.structure.ends
        scores, tau = pairing.scores, pairing.tau
        if each is not None:
            pairs = _near(pairing, min(each, len(pairing.ids) - 1))
            scores, tau = pairing.at(*pairs.T)
        elif pairing.singles:
            real = pairs[:, 1] < len(pairing.ids)
            pairs, scores, tau = pairs[real], scores[real], tau[real]
        parts.append((pairing.group.members.astype(np.int32)[pairs], scores, tau))
    ends, scores, tau = map(np.concatenate, zip(*parts, strict=True))
    group = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part[1]) for part in parts])
    order = np.argsort(-tau)[:count]  # stable sorting takes three times as long
    labels = np.array([pairing.group.label for pairing in pairings], dtype=object)
    return {
        "a": ids[ends[order, 0]],
        "b": ids[ends[order, 1]],
        "probability": tau[order],
        "score": scores[order],
        "group": labels[group[order]],
    }


def _near(pairing: Pairing, count: int) -> Ints:
    """(pairs × 2) everybody's ``count`` most probable pairs, each pair once."""
    n, found = len(pairing.ids), [np.empty((0, 2), dtype=np.int64)]
    for rows in np.array_split(np.arange(n), -(-n // BLOCK)) if count else []:
        tau = pairing.at(rows[:, None], np.arange(n))[1]
        least = np.partition(tau, n - count, axis=1)[:, [n - count]]
        found.append(np.argwhere((tau >= least) & (tau > 0)) + np.array([rows[0], 0]))
    pairs = np.unique(np.sort(np.concatenate(found), axis=1) @ np.array([n, 1]))
    return np.stack(np.divmod(pairs, n), axis=1)


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
