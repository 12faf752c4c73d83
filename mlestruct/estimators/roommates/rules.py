"""Pairs that must not or must be: checked, and sorted by group."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.estimators.roommates.people import Group, People, are_ids
from mlestruct.structures.base import Ints
from mlestruct.tables import Table

Rule = tuple[Hashable, Hashable]
Consent = Sequence[Rule]
SHOWN = 6
COLUMNS = ("rule", "id_a", "id_b")  # of a table of rules
KINDS = {"forbid": "forbid", "require": "require", "allow": "consent"}


class Placed(tuple[Hashable, ...]):
    """A rule that knows where it was written, for messages."""

    where: str = ""

    @classmethod
    def of(cls, rule: Sequence[Hashable], where: str) -> Placed:
        placed = cls(rule)
        placed.where = where
        return placed


@dataclass(frozen=True)
class Rules:
    """(rules × 2) rows of people who must not share, and who must; each within one group."""

    forbid: Ints
    require: Ints

    @classmethod
    def read(cls, people: People, forbid: Sequence[Rule], require: Sequence[Rule]) -> Rules:
        """Known people, no contradictions; forbidding pairs across groups says nothing new."""
        never = _rows(people, forbid, "forbid")
        apart = people.group_of[never[:, 0]] != people.group_of[never[:, 1]]
        must = _rows(people, require, "require")
        for (a, b), names in zip(must.tolist(), require, strict=True):
            one, other = people.group_of[[a, b]]
            if one != other:
                raise Infeasible(
                    f"require: {names[0]!r} ({people.groups[one].label}) and {names[1]!r} "
                    f"({people.groups[other].label}) are of groups that never share"
                )
        used, counts = np.unique(must, return_counts=True)
        if (counts > 1).any():
            twice = people.ids[used[counts.argmax()]]
            pairs = [f"{a!r} with {b!r}" for a, b in require if twice in (a, b)]
            raise Infeasible(
                f"require: {twice!r} cannot be in {len(pairs)} pairs: {', '.join(pairs)}"
            )
        both = {frozenset(r) for r in never.tolist()} & {frozenset(r) for r in must.tolist()}
        for a, b in (sorted(pair) for pair in both):
            raise Infeasible(
                f"{people.ids[a]!r} with {people.ids[b]!r} is both forbidden and required"
            )
        return cls(never[~apart], must)

    def within(self, group: Group) -> tuple[Ints, Ints]:
        """The rules of one group, as places among its members."""
        place = {row: k for k, row in enumerate(group.members.tolist())}

        def local(rules: Ints) -> Ints:
            mine = [[place[a], place[b]] for a, b in rules.tolist() if a in place]
            return np.array(mine, dtype=np.int64).reshape(-1, 2)

        return local(self.forbid), local(self.require)


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
    for number, rule in enumerate(rules):
        where = getattr(rule, "where", "") or f"{name}[{number}]"
        if not are_ids(rule, 2):
            raise ValueError(f"{where} is {rule!r}; expected two ids")
        a, b = (people.find(person, where) for person in rule)
        if a == b:
            raise ValueError(f"{where} names {people.ids[a]!r} twice")
        rows.append((a, b))
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def conflict(
    label: str,
    ids: Sequence[Any],
    forbidden: Ints,
    separators: Sequence[Any],
    groups: Sequence[Sequence[Any]],
) -> str:
    """Tutte's witness in words: odd groups that only too few others may join, and why.

    A group that nobody may join is a conflict of its own, and the smallest one is named.
    """
    if not len(separators):
        groups = [min(groups, key=len)]
    group_of = {int(v): k for k, members in enumerate(groups) for v in members}
    served = {int(v) for v in separators}
    blame = [
        f"({ids[a]!r}, {ids[b]!r})"
        for a, b in forbidden.tolist()
        if group_of.get(a) != group_of.get(b) and not {a, b} & served
    ]
    named = "; ".join(_named(members, ids) for members in groups[:SHOWN])
    named += f" and {len(groups) - SHOWN} more" if len(groups) > SHOWN else ""
    joined = f"each other, only with {_named(separators, ids)}" if len(groups) > 1 else "others"
    more = f" and {len(blame) - SHOWN} more" if len(blame) > SHOWN else ""
    return (
        f"{label}: not everybody can be paired: {named} may not be paired with {joined}, because "
        f"of consent= or forbid={', '.join(blame[:SHOWN])}{more}"
    )


def _named(places: Sequence[Any] | Ints, ids: Sequence[Any]) -> str:
    named = [repr(ids[v]) if v < len(ids) else "an empty bed" for v in places[:SHOWN]]
    return f"[{', '.join(named)}{', …' if len(places) > SHOWN else ''}]"


APART = re.compile(r"\s*(?:[;,/&|\n+]|\bund\b|\band\b)\s*")


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
    columns = (table.as_names(name).tolist() for name in COLUMNS)
    for row, (rule, a, b) in enumerate(zip(*columns, strict=True)):
        kind = KINDS.get(str(rule).casefold())
        if kind is None:
            raise ValueError(
                f"{table.at(row, 'rule')}: a rule is forbid, require or allow, "
                + ("and this is blank" if rule is None else f"not {rule!r}")
            )
        if a is None or b is None:
            raise ValueError(f"{table.at(row)}: a rule is about two people, and one is missing")
        made[kind].append(Placed.of([own.get(str(who), who) for who in (a, b)], table.at(row)))
    return made
