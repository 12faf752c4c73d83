"""A table of people, checked once; and the pairs that must not or must be, by group."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.roommates.cells import written
from mlestruct.roommates.columns import folded
from mlestruct.roommates.frames import Table
from mlestruct.roommates.questionnaire import Answers, Unknown, person, refuse, some, spelled_twice
from mlestruct.structures.base import Ints

Missing = Literal["refuse", "neutral"]
POINT_ZERO = re.compile(r"(-?[0-9]+)[.,]0+")


@dataclass(frozen=True)
class Group:
    """People of one cohort who agree in every ``same`` column: only they may share a room."""

    label: str
    key: tuple[Any, ...]
    members: Ints = field(repr=False)


@dataclass(frozen=True)
class People:
    """Ids, answers' levels (people × questions), groups, and what was done to answers.

    The last level of a question is that of an answer that is missing or unknown.
    """

    table: Table
    ids: list[Any]
    codes: Ints
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        table: Table,
        id_column: str,
        group_columns: Sequence[str],
        answers: Sequence[Answers],
        missing_rule: Missing,
        unknown: Mapping[str, Unknown] = MappingProxyType({}),
        faults: Sequence[str] = (),
    ) -> People:
        """Checked: ids present and different, groups known, answers as when fitted.

        Everything that is wrong is in one message, after ``faults`` already known.
        """
        ids, wrong = ids_of(table, id_column), list(faults)
        columns, notes = [], []
        for known in answers:
            try:
                rule = unknown.get(known.column, "refuse")
                codes, told = _codes(table, known, ids, missing_rule, rule)
                columns.append(codes)
                notes += told
            except ValueError as error:
                wrong.append(str(error))
        refuse([*wrong, *without(table, group_columns)])
        codes = np.stack(columns, axis=1) if columns else np.empty((len(ids), 0), dtype=np.int64)
        notes += [*_silent(table, ids, codes, answers), *spelled_twice(table, group_columns)]
        return cls(table, ids, codes, groups_of(table, group_columns), tuple(notes))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row(self) -> dict[Any, int]:
        return {person: row for row, person in enumerate(self.ids)}

    @cached_property
    def group_of(self) -> Ints:
        """The number of each person's group."""
        out = np.empty(len(self), dtype=np.int64)
        for number, group in enumerate(self.groups):
            out[group.members] = number
        return out

    @cached_property
    def spelled(self) -> dict[str, int]:
        """The row of an id by its text: where one side is a file, 7 and "7" are one person."""
        return {text: self.row[person] for text, person in by_text(self.ids).items()}

    def find(self, person: Any, where: str, by_text: bool = False) -> int:
        """The row of an id; unknown ones are refused by name and place."""
        row = self.known(person, by_text)
        if row is None:
            raise ValueError(f"{where}: nobody has id {person!r}{self.like(person)}")
        return row

    def known(self, person: Any, by_text: bool = False) -> int | None:
        """The row of an id, None for an unknown one; by its text where a file is involved."""
        try:
            return self.row[person]
        except (KeyError, TypeError):
            if not (by_text or self.table.written is not None):
                return None
            spelling = str(written(person))
            return meant(spelling, self.spelled, self.ids)

    def cohort_of(self, row: int) -> Any:
        """The first of the columns that keep people apart."""
        return self.groups[self.group_of[row]].key[0]

    def like(self, person: Any) -> str:
        """An id that was perhaps meant: 7 for 007, a1 for A1."""
        bare = folded(str(person)).lstrip("0")
        like = next((i for i in self.ids if bare and folded(str(i)).lstrip("0") == bare), None)
        if like is None:
            return ""
        kind = "of another type" if str(like) == str(person) else "which is written differently"
        return f"; there is {like!r}, {kind}"


def by_text(names: Iterable[Any]) -> dict[str, Any]:
    """Names by their text; where all are spelled 7.0, by 7 too."""
    found = {str(written(name)): name for name in names}
    whole = {match[1]: found[text] for text in found if (match := POINT_ZERO.fullmatch(text))}
    return {**found, **whole} if len(whole) == len(found) else found


def meant(spelling: str, known: Mapping[str, Any], names: Iterable[Any]) -> Any:
    """What is known by a spelling, None for nothing.

    7.0 is 7 where all names are whole numbers: programs that know gaps write whole numbers so.
    """
    match = None if spelling in known else POINT_ZERO.fullmatch(spelling)
    bare = match and all(isinstance(name, int) for name in names)
    return known.get(match[1] if match and bare else spelling)


def are_ids(given: Any, count: int | None = None) -> bool:
    """Whether this is a list of ids, of so many, and no id by itself."""
    return isinstance(given, (tuple, list, np.ndarray)) and count in (None, len(given))


def ids_of(table: Table, column: str) -> list[Any]:
    """Everybody's id, as it is written; none missing, none twice."""
    if len(table) == 0:
        raise ValueError("the table of people is empty")
    refuse(faults_of_people(table, column))
    return table.as_names(column).tolist()


def faults_of_people(table: Table, id_column: str, groups: Sequence[str] = ()) -> list[str]:
    """Whose id is missing, which are given twice, and who is in no group."""
    first: dict[Any, int] = {}
    twice = []
    for row, own in enumerate(table.listed(id_column)):
        if own is not None and first.setdefault(own, row) != row:
            twice.append(f"id {own!r} is in {table.both(first[own], row)}")
    return [*without(table, [id_column]), *some(twice), *without(table, groups)]


def without(table: Table, columns: Sequence[str]) -> list[str]:
    """Rows with blank cells in these columns."""
    gone = {name: [row for row, cell in enumerate(table.listed(name)) if cell is None]
            for name in columns}  # fmt: skip
    return [
        fault
        for name, rows in gone.items()
        for fault in some(f"{table.at(row, name)} has no {name!r}" for row in rows)
    ]


def _codes(
    table: Table, known: Answers, ids: list[Any], rule: Missing, unknown: Unknown
) -> tuple[Ints, list[str]]:
    codes, notes = known.codes(table, ids, unknown)
    gone = np.flatnonzero(codes < 0)
    if len(gone) and rule == "refuse":
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise ValueError(
            f"column {known.column!r}: {person(table, ids, int(gone[0]), known.column)}{more} gave "
            "no answer; leave them out, or count such answers as average ones: fit with "
            "missing='neutral'"
        )
    codes[gone] = len(known.levels)
    return codes, notes


def _silent(table: Table, ids: list[Any], codes: Ints, answers: Sequence[Answers]) -> list[str]:
    """Rows without any answer, such as a line of totals or a remark below a list."""
    nothing = np.array([len(known.levels) for known in answers])
    rows: Ints = np.flatnonzero((codes == nothing).all(axis=1))
    if len(answers) < 2 or not len(rows):
        return []
    first = person(table, ids, int(rows[0]), answers[0].column)
    return [f"answered no question: {len(rows)}, the first {first}; are these people?"]


def groups_of(table: Table, columns: Sequence[str]) -> tuple[Group, ...]:
    """The groups, each with its name in words: ``year 3, gender F``."""
    keys = zip(*map(table.labels, columns), strict=True) if columns else [()] * len(table)
    members: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(keys):
        members.setdefault(key, []).append(row)
    found = []
    for key, rows in members.items():
        words = ", ".join(f"{c} {k}" for c, k in zip(columns, key, strict=True))
        found.append(Group(words or "everyone", key, np.array(rows)))
    return tuple(found)


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
