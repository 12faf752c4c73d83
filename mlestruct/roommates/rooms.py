"""What a plan must keep: rooms, with who is to be in them, and pairs that must or must not be."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.roommates.frames import Table, number, written
from mlestruct.roommates.people import Group, People, are_ids, faults_of_people, refuse
from mlestruct.structures.base import Ints

SIZES = (1, 2, 4)
SIZE = ("size", "capacity", "beds", "places")  # names of a column, of which one is there
FIXED, GONE = "fixed", "accessible"  # a column that was read once
Fixed = Mapping[Any, Sequence[Any]]
Rule = Sequence[Hashable]
Consent = Sequence[Rule]
COLUMNS = ("rule", "id_a", "id_b")  # of a table of rules
KINDS = {"forbid": "forbid", "require": "require", "allow": "consent"}
SHOWN = 6  # people or pairs named in a message
APART = re.compile(r"\s*(?:[;,/&|\n+]|\bund\b|\band\b)\s*")


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
    size, named = _called(table, *SIZE), _called(table, FIXED)
    if size is None:
        raise ValueError(f"{table.file}no column 'size' says how many people a room is for")
    if GONE in (*table.names, *people.table.names):
        raise ValueError(f"a column {GONE!r} is not read: name who is to be where in {FIXED!r}")
    names = table.listed("room")
    fixed_in = _fixed(table, people, names, fixed, named)
    # a remark in one cell makes text of the others
    sizes = [c if (n := number(c)) is None else n for c in table.listed(size)]
    given: list[list[Room]] = [[] for _ in people.groups]
    home: dict[int, Any] = {}
    faults = faults_of_people(table, "room", [name for name in columns if name in table.names])
    for row, owner in enumerate(_owners(table, people, columns)):
        who = fixed_in.get(row, ())
        fault = _fault(names[row], sizes[row], who)
        if fault.startswith("room") and table.places is not None:
            fault = f"{table.at(row, size)}: {fault}"
        away = next((k for k in who if people.group_of[k] != owner), None)
        if not fault and away is not None:
            whose = "no group's" if owner is None else f"{people.groups[owner].label}'s"
            own = people.groups[people.group_of[away]].label
            fault = f"fixed: room {names[row]!r} is {whose}; {people.ids[away]!r} is of {own}"
        for k in who:
            if not fault and home.setdefault(k, names[row]) != names[row]:
                fault = f"fixed: {people.ids[k]!r} has room {home[k]!r} and room {names[row]!r}"
        if fault:
            faults.append(fault)
        elif owner is not None:
            given[owner].append(Room(names[row], int(sizes[row]), who))
    refuse(faults)
    return [_filled(rooms, group) for rooms, group in zip(given, people.groups, strict=True)]


def _called(table: Table, *known: str) -> str | None:
    """The column that is called so, in letters of any case."""
    own = [name for name in table.names if name.casefold() in known]
    if len(own) > 1:
        raise ValueError(f"{table.file}both {own[0]!r} and {own[1]!r} are there; keep one of them")
    return own[0] if own else None


def _fixed(
    table: Table, people: People, names: Sequence[Any], given: Fixed, column: str | None
) -> dict[int, tuple[int, ...]]:
    """Who is to be in which room, by rows: from the mapping, and from a column of the table."""
    row_of = {written(name): row for row, name in enumerate(names)}
    found: dict[int, list[int]] = {}
    for name, who in given.items():
        if written(name) not in row_of:
            raise ValueError(f"fixed: there is no room {name!r} in the table of rooms")
        if not are_ids(who):
            raise ValueError(f"fixed: room {name!r} has {who!r}; expected a list of ids")
        where = f"fixed room {name!r}"
        found[row_of[written(name)]] = [people.find(person, where) for person in who]
    for row, cell in enumerate(() if column is None else table.listed(column)):
        if cell is not None:
            whole = people.known(cell)
            parts = ids_in(str(cell), lambda word: people.known(word) is not None)
            where = f"{table.at(row, column)}: fixed room {names[row]!r}"
            mine = [people.find(p, where) for p in parts] if whole is None else [whole]
            found[row] = list(dict.fromkeys([*found.get(row, []), *mine]))
    return {row: tuple(who) for row, who in found.items()}


def _fault(name: Any, size: Any, who: Sequence[int]) -> str:
    """Why this room cannot be planned; nothing for one that can."""
    if size is None or size != size:
        return f"room {name!r} has no size; say how many people it is for: 1, 2 or 4"
    if size not in SIZES:
        return (
            f"room {name!r} is for {written(size)}; rooms for 1, 2 and 4 can be planned (a four is "
            "two pairs that go well together); fill others by hand and leave those people out"
        )
    if who and (len(who) != 4 if size > 2 else len(who) > size):
        return f"fixed: room {name!r} for {int(size)} cannot be fixed to {len(who)} people"
    return ""


def _owners(table: Table, people: People, columns: Sequence[str]) -> Iterator[int | None]:
    """The number of the one group that each room fits; None where it fits none."""
    shared = [k for k, name in enumerate(columns) if name in table.names]
    listed = [table.listed(columns[k]) for k in shared]
    mine = [[written(group.key[k]) for k in shared] for group in people.groups]
    for row, name in enumerate(table["room"].tolist()):
        key = [written(column[row]) for column in listed]
        fit = [g for g, own in enumerate(mine) if own == key]
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


def housed(rooms: Sequence[Room], homes: Sequence[Ints]) -> list[Any]:
    """The room of each set of people who share: fixed ones, then by size, in order; or None."""
    fixed = {row: room for room in rooms for row in room.fixed}
    free = {size: [r for r in rooms if r.size == size and not r.fixed] for size in SIZES}
    found = []
    for home in homes:
        mine = next((fixed[row] for row in home.tolist() if row in fixed), None)
        if mine is None and rooms:
            mine = free[len(home)].pop(0)
        found.append(mine and mine.name)
    return found


class Placed(NamedTuple):
    """A rule that knows where it was written, for messages."""

    a: Hashable
    b: Hashable
    where: str


@dataclass(frozen=True)
class Rules:
    """(rules × 2) rows of people who must not share, and who must; each within one group."""

    forbid: Ints
    require: Ints

    @classmethod
    def read(cls, people: People, forbid: Sequence[Rule], require: Sequence[Rule]) -> Rules:
        """Known people, no contradictions; forbidding pairs across groups says nothing new."""
        never, must = _rows(people, forbid, "forbid"), _rows(people, require, "require")
        apart = people.group_of[never[:, 0]] != people.group_of[never[:, 1]]
        barred, partner = set(map(frozenset, never.tolist())), dict[int, int]()
        must = np.unique(np.sort(must, axis=1), axis=0)
        for two in must.tolist():
            a, b = (people.ids[row] for row in two)
            one, other = (people.groups[people.group_of[row]] for row in two)
            if one is not other:
                raise Infeasible(
                    f"require: {a!r} ({one.label}) and {b!r} ({other.label}) are of groups that "
                    "never share"
                )
            if frozenset(two) in barred:
                raise Infeasible(f"{a!r} with {b!r} is both forbidden and required")
            for me, mate in (two, two[::-1]):
                if partner.setdefault(me, mate) != mate:
                    both = [sorted((me, partner[me])), sorted((me, mate))]
                    pairs = [f"{people.ids[a]!r} with {people.ids[b]!r}" for a, b in both]
                    who = people.ids[me]
                    raise Infeasible(f"require: {who!r} cannot be in 2 pairs: {', '.join(pairs)}")
        return cls(never[~apart], must)

    def within(self, group: Group) -> tuple[Ints, Ints]:
        """The rules of one group, as places among its members."""
        mine = (own[np.isin(own[:, 0], group.members)] for own in (self.forbid, self.require))
        forbid, require = (np.searchsorted(group.members, own) for own in mine)
        return forbid, require


def refused_by(people: People, consent: Consent) -> list[Rule]:
    """The pairs that lists of consent leave out: whoever has a list shares with nobody else."""
    rows = _rows(people, consent, "consent")
    allowed: dict[int, set[int]] = {}
    for me, other in rows.tolist():
        allowed.setdefault(me, {me}).add(other)
    ids = people.ids
    return [
        (ids[me], ids[other])
        for me, others in allowed.items()
        for other in people.groups[people.group_of[me]].members.tolist()
        if other not in others
    ]


def _rows(people: People, rules: Sequence[Rule], name: str) -> Ints:
    rows = []
    for k, rule in enumerate(rules):
        where = f"{name}[{k}]"
        if isinstance(rule, Placed):
            where, rule = rule.where, rule[:2]
        if not are_ids(rule, 2):
            raise ValueError(f"{where} is {rule!r}; expected two ids")
        a, b = (people.find(person, where) for person in rule)
        if a == b:
            raise ValueError(f"{where} names {people.ids[a]!r} twice")
        rows.append((a, b))
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def conflict(label: str, ids: Sequence[Any], forbidden: Ints, groups: Sequence[Any]) -> str:
    """Why not everybody can be paired, by Tutte's witness: whom rules leave to too few others."""
    some = [int(v) for group in sorted(groups, key=len)[:SHOWN] for v in group]
    who = ", ".join(repr(ids[v]) if v < len(ids) else "an empty bed" for v in some[:SHOWN])
    blame = [f"({ids[a]!r}, {ids[b]!r})" for a, b in forbidden.tolist() if {a, b} & {*some}]
    more = f" and {len(blame) - SHOWN} more" if len(blame) > SHOWN else ""
    return (
        f"{label}: not everybody can be paired: too few may share with {who}, because of consent= "
        f"or forbid={', '.join(blame[:SHOWN])}{more}"
    )


def ids_in(cell: str, is_id: Callable[[str], bool]) -> list[str]:
    """The ids in one cell: parted by commas and the like, else by blanks where all are ids."""
    parts, words = [part for part in APART.split(cell) if part], cell.split()
    return words if len(parts) == 1 and not is_id(cell) and all(map(is_id, words)) else parts


def listed_rules(table: Table, own: Mapping[str, Any]) -> dict[str, list[Placed]]:
    """``forbid``, ``require`` and ``consent`` of columns rule, id_a, id_b; ``own`` ids by text."""
    made: dict[str, list[Placed]] = {kind: [] for kind in KINDS.values()}
    third = next((n for n in table.names if n.startswith("id_") and n not in COLUMNS), None)
    if third is not None:
        raise ValueError(
            f"{table.file}a rule is about two people, {COLUMNS[1]} and {COLUMNS[2]}; {third!r} "
            "would be a third: write a line for every two of them"
        )
    columns = (table.listed(name) for name in COLUMNS)
    for row, (rule, a, b) in enumerate(zip(*columns, strict=True)):
        kind = KINDS.get(str(rule).casefold())
        if kind is None:
            raise ValueError(
                f"{table.at(row, 'rule')}: a rule is forbid, require or allow, "
                + ("and this is blank" if rule is None else f"not {rule!r}")
            )
        if a is None or b is None:
            raise ValueError(f"{table.at(row)}: a rule is about two people, and one is missing")
        made[kind].append(Placed(own.get(str(a), a), own.get(str(b), b), table.at(row)))
    return made
