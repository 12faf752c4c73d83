"""Observed pairs: checked against the people, cut into examples to learn from, and what they keep.

A room's number is known only after the pairs, or decides them; learned from, it takes the place of
all that people could be matched by. A rule that all observed pairs keep, such as gender or a
building, says who may share, and a plan that breaks it is refused until somebody decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, log
from typing import Any, Literal, NamedTuple

import numpy as np

from mlestruct.estimators.examples import Given
from mlestruct.roommates.frames import Column, Table, folded, missing, number, table, written
from mlestruct.roommates.people import Group, People, are_ids, refuse, some
from mlestruct.roommates.words import CROSSED
from mlestruct.structures.base import Ints

Larger = Literal["refuse", "leave_out"]
ANY = object()  # the cohort of a row that names none
MOST = 0.8  # share of pairs that agree
BY_CHANCE, CROWD = 0.25, 4  # of two people in a group; people who have an answer that few have
KEPT = 0.95  # the share of pairs that keep a rule
RULE = 12  # pairs that tell of a rule, or of a room
WOMEN = "f w k female weiblich woman girl frau dame femme mujer femenino donna kobieta vrouw"
MEN = "m h male mannlich man boy mann herr homme hombre masculino uomo mezczyzna"
UNLIKELY = log(4000.0)  # chance agrees less often than once in so many columns
RATHER = 0.25  # pairs that break a rule, of those that would by chance


class WhoShares(NamedTuple):
    """How tables say who shares.

    By rows with two ids (``partners``; a row with one is a single), or by rows of one person each,
    with a ``room``, which may take several columns, or with a ``partner``. Rooms of three and more
    are refused, or the people in them are left out (``larger``).
    """

    way: str
    columns: tuple[str, ...]
    id: str = "id"
    cohort: str | None = None
    larger: Larger = "refuse"

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns without which a table says nothing of it."""
        return self.columns if self.way == "partners" else (self.id, *self.columns)


class Observed(NamedTuple):
    """(pairs × 2) rows of people; in words who is left out, what looks wrong, and what is."""

    rows: Ints
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    faults: tuple[str, ...]


class Hall(NamedTuple):
    """The people of one group as an example; to learn from, those who are in pairs.

    Given that these people were paired among themselves, their matching has the model's own
    distribution: so nobody is compared with people who were not paired.
    """

    people: People
    group: Group


def read_pairs(given: Any, people: People, sharing: WhoShares) -> Observed:
    """All pairs once, with what is wrong; those of cohorts without people are skipped.

    Without a table of pairs the table of people says who shares.
    """
    pairs = as_table(people.table if given is None else given, sharing)
    if given is None and sharing.way == "partners":
        raise ValueError("who shares is not said: give a table of pairs, or room= or partner=")
    where = "" if pairs.places else "pairs, "
    cohort, named = sharing.cohort, [ANY] * len(pairs)
    if cohort is not None and cohort in pairs.names:
        known = {written(own): own for own in people.table.listed(cohort)}
        named = [ANY if own is None else known.get(written(own)) for own in pairs.listed(cohort)]
    large: dict[frozenset[str | None], tuple[int, list[Any]]] = {}
    once: dict[frozenset[int | None], tuple[int, list[int | None]]] = {}
    strange = []
    for row, ids in homes_of(pairs, people, sharing):
        two = [people.known(who) for who in ids]
        if named[row] is None:
            continue
        if len(ids) > 2:
            large.setdefault(frozenset(map(written, ids)), (row, ids))
        elif len(ids) == 2 and None not in two:
            once.setdefault(frozenset(two), (row, two))
        elif len(ids) == 2:
            who = ids[two.index(None)]
            strange.append(f"{where}{pairs.at(row)}: nobody has id {who!r}{people.like(who)}")
    crowds = [
        f"{where}{pairs.at(row)}: {len(ids)} people share ({', '.join(map(repr, ids[:4]))}"
        f"{', …' * (len(ids) > 4)}); only pairs can be learned from: split them into pairs, or "
        "leave these people out by larger=leave_out"
        for row, ids in large.values()
        if sharing.larger == "refuse"
    ]
    rows = np.array([two for _, two in once.values()], dtype=np.int64).reshape(-1, 2)
    places = [f"{where}{pairs.at(row)}" for row, _ in once.values()]
    odd = [
        f"{place}, {cohort} {named[row]} for {own}"
        for place, (row, two) in zip(places, once.values(), strict=True)
        if cohort and named[row] not in (ANY, own := people.cohort_of(two[0] or 0))
    ]
    doubts = [
        f"{len(odd)} pairs are said to be of another {cohort} than their people, and count with "
        f"these (the first: {first})"
        for first in odd[:1]
    ]
    crowd, skipped = sum(len(ids) for _, ids in large.values()), named.count(None)
    what = "pairs" if sharing.way == "partners" else "rows"
    counts = (
        (crowd, f"people live in {len(large)} rooms of three or more"),
        (skipped, f"{what} are of cohorts that are not in the table of people"),
    )
    notes = tuple(f"{count} {why}" for count, why in counts if count)
    faults = [*some(crowds), *some(strange), *_faults(rows, people, places)]
    return Observed(rows, notes, tuple(doubts), tuple(faults))


def homes_of(pairs: Table, people: People, sharing: WhoShares) -> Iterable[tuple[int, list[Any]]]:
    """(row of the table, ids) of people who share, singles among them, in the table's order.

    By rooms: who has the same one in the same cohort; nobody shares a blank one. By partners:
    everybody with those named in the same row.
    """
    listed = zip(*map(pairs.listed, sharing.needed), strict=True)
    if sharing.way != "room":
        return enumerate([[who for who in ids if who is not None] for ids in listed])
    homes: dict[Any, tuple[int, list[Any]]] = {}
    for row, (me, *room) in enumerate(listed):
        if None not in room:
            mine = people.known(me)
            when = people.cohort_of(mine) if sharing.cohort and mine is not None else None
            homes.setdefault((when, *room), (row, []))[1].append(me)
    return homes.values()


def examples_of(
    observed: Observed, people: People, what: str = "learn from"
) -> tuple[Given, list[str]]:
    """Examples by group, and in words who is left out of them; all faults are in one message."""
    refuse(observed.faults)
    alone, everybody, group = 0, len(people.ids), people.group_of[observed.rows[:, 0]]
    halls, outcomes = list[Hall](), list[Ints]()
    for k, whole in enumerate(people.groups):
        pairs = observed.rows[group == k]
        alone += len(pairs) == 1
        if len(pairs) > 1:
            members = np.sort(pairs.ravel())
            halls.append(Hall(people, replace(whole, members=members)))
            outcomes.append(np.searchsorted(members, pairs))
    counts = (
        (everybody - 2 * len(observed.rows), f"of {everybody} people are in no pair"),
        (alone, "pairs are alone in their group"),
    )
    notes = [f"left out: {count} {why}" for count, why in counts if count]
    notes += [f"left out: {note}" for note in observed.notes]
    if not halls:
        raise ValueError("; ".join([f"there is nothing to {what}", *notes]))
    return Given(halls, outcomes, range(len(halls)), halls), notes


def as_table(given: Any, sharing: WhoShares) -> Table:
    """A table, or (id, id) tuples as one."""
    listed = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
    if not listed or (len(given) and isinstance(given[0], Mapping)):
        return table(given, sharing.needed)
    for row, pair in enumerate(given):
        if not are_ids(pair, 2):
            raise ValueError(f"pairs, row {row} is {pair!r}; expected two ids")
    return table({name: [pair[k] for pair in given] for k, name in enumerate(sharing.columns[:2])})


def _faults(rows: Ints, people: People, where: Sequence[str]) -> list[str]:
    """Self-pairs, people in two pairs, and pairs across groups."""
    seen: dict[int, int] = {}
    alone, twice, apart = [], [], []
    for k, (a, b) in enumerate(rows.tolist()):
        if a == b:
            alone.append(f"{where[k]}: {people.ids[a]!r} is paired with themself")
        for person in {a, b}:
            if seen.setdefault(person, k) != k:
                twice.append(
                    f"{where[k]}: {people.ids[person]!r} is in another pair too, in "
                    f"{where[seen[person]]}"
                )
        one, other = people.group_of[[a, b]]
        if one != other:
            apart.append(
                f"{where[k]}: {people.ids[a]!r} ({people.groups[one].label}) and "
                f"{people.ids[b]!r} ({people.groups[other].label}) are of different groups"
            )
    return [*some(alone), *some(twice), *some(apart)]


class Agreement(NamedTuple):
    """A column in which (nearly) all observed pairs agree, far more than chance would.

    ``blocks`` are the values that go together, as text: one value each, or its spellings. With
    ``whole``, partners have the same value as it is written. With ``few``, hardly anybody but
    partners has the same, as with a room's number.
    """

    column: str
    blocks: tuple[tuple[str, ...], ...]
    agree: int
    pairs: int
    chance: float
    whole: bool = True
    few: bool = False

    def __str__(self) -> str:
        by = f"(by chance {100 * self.chance:.0f} in 100 would)"
        if self.few:
            return (
                f"{self.agree} of {self.pairs} pairs have the same {by}, and hardly anybody else "
                "has it: does it say who shares, such as a room?"
            )
        several = [", ".join(map(repr, block)) for block in self.blocks if len(block) > 1]
        alike = "" if self.whole or not several else f" where {' and '.join(several)} mean the same"
        return f"{self.agree} of {self.pairs} pairs agree in it {by}{alike}"

    @property
    def once(self) -> str:
        """What is to be done before it can be a rule."""
        return "" if self.whole else CROSSED["once"]


class Crossed(ValueError):
    """A plan breaks what all observed pairs keep: (agreement, planned pairs that break it)."""

    def __init__(self, found: Sequence[tuple[Agreement, int]], planned: int) -> None:
        self.found, self.planned = tuple(found), planned
        super().__init__(self.words("fit"))

    def words(self, where: str) -> str:
        """What is broken, and how to say in a ``fit`` or on the ``page`` whether it is a rule."""
        told = CROSSED["found"] + CROSSED[where]
        return "\n".join(
            told.format(column=one.column, agreed=one, broken=broken, planned=self.planned)
            for one, broken in self.found
        )


def leaks(columns: Mapping[str, Column], pairs: Ints, group: Ints) -> list[Agreement]:
    """The columns in which partners agree far more than answers do; rows are people."""
    found = []
    for name, column in columns.items():
        known = ~missing(column)
        told = pairs[known[pairs].all(axis=1)]
        if len(told) < RULE:
            continue
        texts = [str(written(v)) for v in column.tolist()]
        codes = np.unique(texts, return_inverse=True)[1]
        same = codes[told[:, 0]] == codes[told[:, 1]]
        chance = _expected(codes[told], told, group)
        both = group * len(codes) + codes
        alike = dict(zip(*np.unique(both[known], return_counts=True), strict=True))
        crowd = [alike[own] for own in both[told[same, 0]]]
        if same.mean() >= MOST and chance <= BY_CHANCE and np.median(crowd) <= CROWD:
            found.append(Agreement(name, (), int(same.sum()), len(told), chance, few=True))
        elif agreed := _agreement(name, texts, told, group):
            found.append(agreed)
    return found


def _agreement(name: str, texts: Sequence[str], pairs: Ints, group: Ints) -> Agreement | None:
    """Whether pairs agree in a column's values, in values but for spelling, or in sets of values.

    Sets of words are found by joining those that are paired most often for their sizes, until
    hardly any pair is of two sets. Many sets of values could be found so; the more there are, the
    less does it say that one was.
    """
    held, places = np.unique([texts[row] for row in pairs.ravel().tolist()], return_inverse=True)
    ends = places.reshape(pairs.shape)
    alike, block = np.unique([folded(str(text)) for text in held], return_inverse=True)
    spellings = block

    def told(block: Ints, whole: bool, searched: float = 0.0) -> Agreement | None:
        own = block[ends]
        agree, chance = int((own[:, 0] == own[:, 1]).sum()), _expected(own, pairs, group)
        # neither chance nor a taste explains it: the bound of a binomial tail, exp(−n KL),
        # times the number of ways to join values that were tried (searched, its logarithm)
        apart, share = len(pairs) - agree, agree / len(pairs)
        broken = apart > ceil((1.0 - KEPT) * len(pairs))
        if broken or not 0.0 < chance < share or 1.0 - share > RATHER * (1.0 - chance):
            return None
        kl = share * log(share / chance)
        kl += (1.0 - share) * log((1.0 - share) / (1.0 - chance)) if apart else 0.0
        if len(pairs) * kl - searched < UNLIKELY:
            return None
        shown = spellings if whole else block
        sets = tuple(tuple(held[shown == k].tolist()) for k in np.unique(shown))
        return Agreement(name, sets, agree, len(pairs), chance, whole)

    gender = dict.fromkeys(WOMEN.split(), WOMEN) | dict.fromkeys(MEN.split(), MEN)
    sexes = [gender.get(own, own) for own in alike.tolist()]
    found = told(np.arange(len(held)), True) or told(block, False)
    found = found or told(np.unique(sexes, return_inverse=True)[1][block], False)
    if found or len(alike) > len(pairs) / 2 or all(number(text) is not None for text in held):
        return found  # numbers are answers on a scale: a strong taste pairs neighbours
    counts = np.zeros((len(alike), len(alike)))
    np.add.at(counts, tuple(block[ends].T), 1.0)
    counts += counts.T
    for left in range(len(alike) - 1, 1, -1):
        size = np.maximum(counts.sum(axis=1), 1.0)
        lift = np.triu(counts / np.outer(size, size), 1)
        one, other = np.unravel_index(int(lift.argmax()), lift.shape)
        if lift[one, other] == 0.0:
            return None
        counts[one] += counts[other]
        counts[:, one] += counts[:, other]
        counts[other] = counts[:, other] = 0.0
        block = np.where(block == other, one, block)
        found = told(block, False, len(alike) * log(left))
        if found:
            return found
    return None


def _expected(codes: Ints, pairs: Ints, group: Ints) -> float:
    """The share of pairs that would agree if partners were drawn within their groups.

    ``codes`` are those of both ends of every pair.
    """
    total = 0.0
    for own in np.unique(group[pairs[:, 0]]):
        mine = codes[group[pairs[:, 0]] == own]
        counts = np.unique(mine, return_counts=True)[1]
        total += len(mine) * (counts * (counts - 1)).sum() / (mine.size * (mine.size - 1))
    return float(total / len(pairs))


def refuse_crossed(agreed: Iterable[Agreement], table: Table, pairs: Ints) -> None:
    """Raise :class:`Crossed` if planned pairs (rows of the table) break an agreement.

    A pair of whom one has no value is not known to keep it; nor is any, without the column. For a
    room's number, which comes after a plan, only two different values count.
    """
    found = []
    for one in agreed:
        block: dict[str, Any] = {folded(w): k for k, texts in enumerate(one.blocks) for w in texts}
        cells = (
            table.columns[one.column] if one.column in table.names else np.full(len(table), np.nan)
        )
        keys = [folded(str(written(cell))) for cell in cells.tolist()]
        own = np.array([block.get(key, key) for key in keys], dtype=object)[pairs]
        known = ~missing(cells)[pairs].any(axis=1)
        broken = int((np.where(known, own[:, 0] != own[:, 1], not one.few)).sum())
        if broken:
            found.append((one, broken))
    if found:
        raise Crossed(found, len(pairs))


def in_words(one: Agreement) -> str:
    """As a warning of a fit."""
    rule = "is that a rule? If so, say same={0!r}; if partners may differ, mix={0!r}"
    told = f"{one} If so, say ignore={{0!r}}" if one.few else f"{one}: {rule}"
    return f"{one.column}: {told.format(one.column)}"
