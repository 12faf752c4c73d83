"""A table of rooms: who stays single, who shares in pairs or in fours, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.estimators.roommates.people import Group, People, are_ids
from mlestruct.structures.base import Ints
from mlestruct.tables import Table

SIZES = (1, 2, 4)
Fixed = Mapping[Any, Sequence[Any]]


@dataclass(frozen=True)
class Room:
    """A room, how many people it is to hold, and the rows of those who must be among them."""

    name: Any
    size: int
    fixed: tuple[int, ...] = ()


def rooms_of(
    table: Table, people: People, columns: Sequence[str], fixed: Fixed
) -> list[list[Room]]:
    """The rooms that each group fills: fixed ones first, then in the table's order."""
    names = table["room"].tolist()
    if len(set(names)) < len(names):
        raise ValueError(f"room {next(n for n in names if names.count(n) > 1)!r} is listed twice")
    for name, who in fixed.items():
        if name not in names:
            raise ValueError(f"fixed: there is no room {name!r} in the table of rooms")
        if not are_ids(who):
            raise ValueError(f"fixed: room {name!r} has {who!r}; expected a list of ids")
    sizes = table["size"].tolist() if "size" in table.names else [2] * len(names)
    given: list[list[Room]] = [[] for _ in people.groups]
    for name, size, owner in zip(names, sizes, _owners(table, people, columns), strict=True):
        rows = tuple(people.find(person, f"fixed room {name!r}") for person in fixed.get(name, ()))
        _refuse(name, size, rows)
        if owner is not None:
            given[owner].append(Room(name, int(size), rows))
        elif rows:
            raise ValueError(f"fixed: room {name!r} belongs to no group of these people")
    for group, rooms in zip(people.groups, given, strict=True):
        _refuse_strangers(people, group, rooms)
    return [_filled(rooms, group) for rooms, group in zip(given, people.groups, strict=True)]


def _refuse(name: Any, size: Any, who: Sequence[int]) -> None:
    if size not in SIZES:
        raise ValueError(
            f"room {name!r} is for {size}; rooms for 1, 2 and 4 can be planned (a four is two "
            "pairs that go well together); fill others by hand and leave those people out"
        )
    if who and (size > 2 or len(who) > size):
        raise ValueError(f"fixed: room {name!r} for {size} cannot be fixed to {len(who)} people")


def _refuse_strangers(people: People, group: Group, rooms: list[Room]) -> None:
    mine = set(group.members.tolist())
    for room in rooms:
        for row in set(room.fixed) - mine:
            other = people.groups[people.group_of[row]].label
            raise ValueError(
                f"fixed: room {room.name!r} is {group.label}'s; {people.ids[row]!r} is of {other}"
            )


def _owners(table: Table, people: People, columns: Sequence[str]) -> Iterator[int | None]:
    """The number of the one group that each room fits; None where it fits none."""
    shared = [k for k, name in enumerate(columns) if name in table.names]
    listed = [table[columns[k]].tolist() for k in shared]
    for number, name in enumerate(table["room"].tolist()):
        key = [column[number] for column in listed]
        fit = [g for g, group in enumerate(people.groups) if [group.key[k] for k in shared] == key]
        if len(fit) > 1:
            raise ValueError(
                f"room {name!r} fits {people.groups[fit[0]].label} and "
                f"{people.groups[fit[1]].label}; the table of rooms needs the columns "
                f"{', '.join(columns)}"
            )
        yield fit[0] if fit else None


def _filled(rooms: list[Room], group: Group) -> list[Room]:
    """As many rooms as are needed; the last may have a free place."""
    rooms = sorted(rooms, key=lambda room: not room.fixed)
    ends = np.cumsum([0, *(room.size for room in rooms)])
    people = len(group.members)
    if ends[-1] < people:
        raise Infeasible(
            f"{group.label}: {len(rooms)} rooms have {ends[-1]} places for {people} people"
        )
    used = int(np.searchsorted(ends, people)) - 1
    left = people - int(ends[used])
    if left == 3:
        raise ValueError(
            f"{group.label}: room {rooms[used].name!r} for 4 would hold 3; list a room for 1 or 2 "
            "before it"
        )
    return [*rooms[:used], replace(rooms[used], size=left)]


def settle(rooms: Sequence[Room], homes: Sequence[Ints]) -> list[Any]:
    """The room of each set of people who share: fixed ones, then by size, in order; or None."""
    places: list[Any] = [None] * len(homes)
    free = list(rooms)
    if not free:
        return places
    order = sorted(range(len(homes)), key=lambda h: not _fixed_in(homes[h], rooms))
    for h in order:
        mine = _fixed_in(homes[h], free)
        room = mine or next(r for r in free if r.size == len(homes[h]) and not r.fixed)
        free.remove(room)
        places[h] = room.name
    return places


def _fixed_in(home: Ints, rooms: Sequence[Room]) -> Room | None:
    return next((room for room in rooms if set(room.fixed) & set(home.tolist())), None)
