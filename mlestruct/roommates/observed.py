"""Observed pairs: checked against the people, and cut into examples to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mlestruct.roommates.cells import written
from mlestruct.roommates.frames import Table, table
from mlestruct.roommates.people import Group, People, are_ids, by_text, meant
from mlestruct.roommates.questionnaire import refuse, some
from mlestruct.structures.base import Ints

Larger = Literal["refuse", "leave_out"]
ANY = object()  # the cohort of a row that names none


@dataclass(frozen=True)
class ColumnNames:
    """How a table of pairs names its columns.

    Who shares is said by rows with two ids (``partners``; a row with one is a single), or by rows
    of one person each: with a ``room``, which may take several columns, or with a ``partner``.
    Rooms of three and more are refused, or the people in them are left out (``larger``).
    """

    partners: tuple[str, ...]
    cohort: str | None = None
    id: str = "id"
    room: tuple[str, ...] = ()
    partner: tuple[str, ...] = ()
    larger: Larger = "refuse"

    @property
    def by_person(self) -> bool:
        return bool(self.room or self.partner)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns without which a table of pairs says nothing."""
        return (self.id, *self.room, *self.partner) if self.by_person else self.partners


class Observed(NamedTuple):
    """(pairs × 2) rows of people; in words who is not among them, and what looks wrong."""

    rows: Ints
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class Home(NamedTuple):
    """People who share, as somebody wrote them down: ids, and the rows of the table."""

    ids: tuple[Any, ...]
    rows: tuple[int, ...]


class ObservedGroup(NamedTuple):
    """The people of one group who are in pairs, as an example to learn from.

    Given that these people were paired among themselves, their matching has the model's own
    distribution: so nobody is compared with people who were not paired.
    """

    group: Group
    members: Ints
    pairs: Ints


def read_pairs(given: Any, people: People, columns: ColumnNames) -> Observed:
    """Every pair within one group, nobody in two; pairs of cohorts without people are skipped.

    Without a table of pairs the table of people says who shares. All faults are in one message.
    """
    pairs = as_table(people.table if given is None else given, columns)
    if given is None and not columns.by_person:
        raise ValueError("who shares is not said: give a table of pairs, or room= or partner=")
    named = _cohorts(pairs, people, columns.cohort)
    homes = [home for home in homes_of(pairs, people, columns) if named[home.rows[0]] is not None]
    large = [home for home in homes if len(home.ids) > 2]
    if columns.larger == "refuse":
        crowds = [
            f"{_place(pairs, home)}: {len(home.ids)} people share "
            f"({', '.join(map(repr, home.ids[:4]))}{', …' * (len(home.ids) > 4)}); only pairs can "
            "be learned from: split them into pairs, or leave these people out by larger=leave_out"
            for home in large
        ]
        refuse(some(crowds))
    once: dict[frozenset[int], tuple[Home, tuple[int, int]]] = {}
    strange = []
    for home in [home for home in homes if len(home.ids) == 2]:
        a, b = (people.known(who, pairs.written is not None) for who in home.ids)
        for who, row in zip(home.ids, (a, b), strict=True):
            if row is None:
                strange.append(f"{_place(pairs, home)}: nobody has id {who!r}{people.like(who)}")
        if a is not None and b is not None:
            once.setdefault(frozenset((a, b)), (home, (a, b)))
    shared = [home for home, _ in once.values()]
    rows = np.array([two for _, two in once.values()], dtype=np.int64).reshape(-1, 2)
    places = [_place(pairs, home) for home in shared]
    refuse([*some(strange), *_faults(rows, people, places)])
    crowd, skipped = sum(len(home.ids) for home in large), named.count(None)
    what = "rows" if columns.by_person else "pairs"
    notes = [f"{crowd} people live in {len(large)} rooms of three or more"] * bool(large)
    notes += [f"{skipped} {what} are of cohorts that are not in the table of people"] * bool(
        skipped
    )
    said = [named[home.rows[0]] for home in shared]
    theirs = [people.cohort_of(row) for row in rows[:, 0].tolist()] if columns.cohort else []
    odd = [
        f"{place}, {columns.cohort} {own} for {other}"
        for place, own, other in zip(places, said, theirs, strict=False)
        if own is not ANY and own != other
    ]
    doubts = [
        f"{len(odd)} pairs are said to be of another {columns.cohort} than their people, and count "
        f"with these (the first: {first})"
        for first in odd[:1]
    ]
    return Observed(rows, tuple(notes), tuple(doubts))


def homes_of(pairs: Table, people: People, columns: ColumnNames) -> list[Home]:
    """Sets of people who share, in the table's order; singles among them.

    By rooms: who has the same one in the same cohort; nobody shares a blank one. By partners:
    everybody with those named in the same row; once where each names the other.
    """
    strange = [name for name in columns.partners if name not in pairs.columns]
    if strange and not columns.by_person:
        raise ValueError(
            f"{pairs.file}there is no column {strange[0]!r}; there are {', '.join(pairs.columns)}: "
            "partners= names the two columns of ids"
        )
    ends = columns.room or columns.partner or columns.partners
    ids = pairs.as_names(columns.id).tolist() if columns.by_person else [None] * len(pairs)
    homes: dict[Any, Home] = {}
    for row, (me, *named) in enumerate(zip(ids, *map(pairs.listed, ends), strict=True)):
        key: Any = row
        who = others = tuple(one for one in named if one is not None)
        if columns.room:
            mine = people.known(me, pairs.written is not None)
            when = people.cohort_of(mine) if columns.cohort and mine is not None else None
            key, who = (when, *named), (me,) if None not in named else ()
            who = (*homes.get(key, Home((), ())).ids, *who)
        elif columns.partner:
            who = (
                (me, me) if others and set(others) == {me} else tuple(dict.fromkeys((me, *others)))
            )
            key = frozenset(map(written, who))
            who = homes[key].ids if key in homes else who
        if who:
            homes[key] = Home(who, (*homes.get(key, Home((), ())).rows, row))
    return list(homes.values())


def _place(pairs: Table, home: Home) -> str:
    """``pairs, row 3``, or the lines of a file."""
    rows = home.rows
    if pairs.places is None:
        return f"pairs, row {rows[0]}"
    return pairs.at(rows[0]) if len(rows) == 1 else pairs.both(rows[0], rows[1])


def blocks_of(
    observed: Observed, people: People, what: str = "learn from"
) -> tuple[list[ObservedGroup], list[str]]:
    """Examples by group; and in words who is left out of them."""
    blocks, alone = [], 0
    group = people.group_of[observed.rows[:, 0]]
    for number, whole in enumerate(people.groups):
        pairs = observed.rows[group == number]
        alone += len(pairs) == 1
        if len(pairs) > 1:
            members = np.sort(pairs.ravel())
            blocks.append(ObservedGroup(whole, members, np.searchsorted(members, pairs)))
    counts = (
        (len(people) - 2 * len(observed.rows), f"of {len(people)} people are in no pair"),
        (alone, "pairs are alone in their group"),
    )
    notes = [f"left out: {count} {why}" for count, why in counts if count]
    notes += [f"left out: {note}" for note in observed.notes]
    if not blocks:
        raise ValueError("; ".join([f"there is nothing to {what}", *notes]))
    return blocks, notes


def as_table(given: Any, columns: ColumnNames) -> Table:
    """A table, or (id, id) tuples as one."""
    listed = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
    if not listed or (len(given) and isinstance(given[0], Mapping)):
        return table(given, columns.needed)
    for row, pair in enumerate(given):
        if not are_ids(pair, 2):
            raise ValueError(f"pairs, row {row} is {pair!r}; expected two ids")
    return table({name: [pair[k] for pair in given] for k, name in enumerate(columns.partners[:2])})


def _cohorts(pairs: Table, people: People, cohort: str | None) -> list[Any]:
    """The people's cohort that every row names: None for another one, ANY where it names none."""
    if cohort is None or cohort not in pairs.names:
        return [ANY] * len(pairs)
    listed = people.table.labels(cohort)
    known = by_text(listed)
    said = pairs.labels(cohort)
    return [ANY if own is None else meant(str(written(own)), known, listed) for own in said]


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
