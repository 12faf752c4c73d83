"""All findings about tables of people and of who shares; roles and the command that they suggest.

A fault stops a fit, or makes it learn what is not meant; a remark is worth knowing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from mlestruct.roommates.cells import written
from mlestruct.roommates.frames import Table
from mlestruct.roommates.leaks import KEPT, Leak, leaks
from mlestruct.roommates.observed import ColumnNames, homes_of, read_pairs
from mlestruct.roommates.pairing import Worth
from mlestruct.roommates.people import People, faults_of_people, groups_of
from mlestruct.roommates.plan import Plan
from mlestruct.roommates.questionnaire import some
from mlestruct.roommates.roles import (
    codes,
    cohort_of,
    command,
    remarks,
    repeats,
    roles_of_answers,
    rule_of,
    spellings,
    who_is_who,
    words_among_numbers,
)
from mlestruct.roommates.rooms import Rule
from mlestruct.structures.base import Ints

PAIRS_PER_WEIGHT = 5  # fewer say little: docs/roommates.md


class Finding(NamedTuple):
    """``kind`` fault or remark, the table's number, and what was found where."""

    kind: Literal["fault", "remark"]
    table: int
    words: str


@dataclass(frozen=True)
class Told:
    """What the user has said of the columns; ``chosen`` where rules are not to be proposed."""

    id: str = "id"
    cohort: str | None = None
    same: tuple[str, ...] = ()
    partners: tuple[str, ...] = ("id_a", "id_b")
    room: tuple[str, ...] = ()
    partner: tuple[str, ...] = ()
    no_answer: Any = ()
    trust: tuple[str, ...] = ()
    mix: tuple[str, ...] = ()
    chosen: bool = False

    @property
    def groups(self) -> list[str]:
        return [*([self.cohort] if self.cohort else []), *self.same]

    @property
    def columns(self) -> ColumnNames:
        return ColumnNames(
            self.partners, self.cohort, id=self.id, room=self.room, partner=self.partner
        )


@dataclass(frozen=True)
class Diagnosis:
    """Findings in the order of the tables, every column's role, and the command to learn with.

    ``told`` is what was said of the columns, with what was proposed where nothing was; ``codes``
    are the values of each column that probably mean no answer.
    """

    findings: list[Finding]
    roles: dict[str, str] = field(default_factory=dict)
    command: str = ""
    told: Told = field(default_factory=Told)
    codes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def faults(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind == "fault"]

    def __str__(self) -> str:
        lines = [f"{'!' if f.kind == 'fault' else '-'} {f.words}" for f in self.findings]
        told = [f"to learn from these tables: {self.command}"] if self.command else []
        return "\n".join([*lines, *told])


def examine(
    tables: Sequence[Table], told: Told | None = None, names: Sequence[str] = ()
) -> Diagnosis:
    """Everything about these tables; the first with an id column is that of people.

    ``names`` are what the tables are called in the proposed command. Where no table has the
    default columns, the ids and who shares are looked for, and what was found is said.
    """
    told, guessed = _introduced(tables, told or Told())
    people = next((k for k, table in enumerate(tables) if told.id in table.names), None)
    findings = [_fault(k, words) for k, t in enumerate(tables) for words in faults(t)]
    if people is None:
        words = "no column looks like ids of people, so little can be said; name one by id="
        nobody = [Finding("remark", 0, words)] if tables else []
        return Diagnosis([*findings, *nobody], told=told)
    findings += [Finding("remark", people, words) for words in guessed]
    everybody = tables[people]
    own = bool(told.room or told.partner)
    needed = set(told.columns.needed)
    shares = [k for k, t in enumerate(tables) if needed <= set(t.names) and (own or k != people)]
    told, taken = _completed([tables[k] for k in shares], everybody, told)
    findings += [Finding("remark", people, words) for words in taken]
    findings += _of_people(people, everybody, told)
    for k in shares:
        findings += [_fault(k, words) for words in _of_pairs(tables[k], everybody, told)]
    pairs = paired([tables[k] for k in shares], everybody, told)
    return _with_answers(findings, tables, people, shares, pairs, told, names)


def _introduced(tables: Sequence[Table], told: Told) -> tuple[Told, list[str]]:
    """With the ids' column and who shares, where the usual columns are in no table; in words."""
    usual, found = Told(), list[str]()
    missing_id = told.id == usual.id and not any(told.id in t.names for t in tables)
    who = who_is_who(tables, None if missing_id else told.id)
    if who is None:
        return told, found
    if missing_id:
        told = replace(told, id=who.id)
        found.append(f"column {who.id!r} is taken for the ids of people")
    said = told.room or told.partner or told.partners != usual.partners
    if said or any(set(told.partners) <= set(t.names) for t in tables):
        return told, found
    if who.partners:
        told = replace(told, partners=who.partners)
        found.append(f"columns {_quoted(who.partners)} are taken for who shares")
    elif who.room or who.partner:
        told = replace(told, room=who.room, partner=who.partner)
        what = "the room" if who.room else "the partner"
        found.append(f"column {_quoted(who.room or who.partner)} is taken for {what} of a person")
    return told, found


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _fault(number: int, words: str) -> Finding:
    return Finding("fault", number, words)


def paired(shares: Sequence[Table], everybody: Table, told: Told) -> Ints:
    """(pairs × 2) rows of people, of the pairs of all tables that say who shares."""
    found = [_rows(table, everybody, told) for table in shares]
    return np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *found]), axis=0)


def _completed(shares: Sequence[Table], everybody: Table, told: Told) -> tuple[Told, list[str]]:
    """With a cohort and rules, where none was named and nearly all pairs keep them; in words.

    The rule that most pairs keep is taken first; others must say more than it does.
    """
    found: list[str] = []
    if told.chosen:
        return told, found
    guess = cohort_of(everybody, [told.id, *told.groups])
    if told.cohort is None and guess is not None:
        tried = replace(told, cohort=guess)
        pairs = paired(shares, everybody, tried)
        when = [written(c) for c in everybody.listed(guess)]
        kept = [when[a] == when[b] for a, b in pairs.tolist()]
        told = tried if not kept or np.mean(kept) >= KEPT else told
    pairs = paired(shares, everybody, told)
    taken = {told.id, *told.room, *told.partner, *told.trust, *told.mix}
    while True:
        labels = unchecked(everybody, told).group_of
        free = [name for name in everybody.names if name not in taken and name not in told.groups]
        agreed = rule_of(leaks({n: everybody.columns[n] for n in free}, pairs, labels))
        if agreed is None:
            return told, found
        told = replace(told, same=(*told.same, agreed.column))
        found.append(
            f"column {agreed.column!r} is proposed as a rule: {agreed}; if partners may differ in "
            f"it, say mix={agreed.column!r}"
        )


def _of_people(number: int, people: Table, told: Told) -> Iterator[Finding]:
    for words in faults_of_people(people, told.id, told.groups):
        yield Finding("fault", number, words)
    for words in remarks_on_groups(people, told.groups):
        yield Finding("remark", number, words)


def _of_pairs(table: Table, everybody: Table, told: Told) -> Iterator[str]:
    """What a fit would refuse of a table of who shares, whichever way it says so."""
    try:
        read_pairs(table, unchecked(everybody, told), told.columns)
    except ValueError as error:
        lines = str(error).splitlines()
        yield from (line.strip() for line in (lines[1:] if len(lines) > 1 else lines))


def unchecked(everybody: Table, told: Told) -> People:
    """People as they are, whatever is wrong with them."""
    ids = everybody.as_names(told.id).tolist()
    none = np.empty((len(ids), 0), dtype=np.int64)
    return People(everybody, ids, none, groups_of(everybody, told.groups))


def _rows(table: Table, everybody: Table, told: Told) -> Ints:
    """(pairs × 2) rows of people, of the pairs that can be read."""
    people, by_text = unchecked(everybody, told), table.written is not None
    try:
        homes = homes_of(table, people, told.columns)
    except ValueError:
        homes = []
    twos = [[people.known(who, by_text) for who in home.ids] for home in homes]
    rows = ([row for row in two if row is not None] for two in twos if len(two) == 2)
    found = {tuple(sorted(row)) for row in rows if len(set(row)) == 2}
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)


def _with_answers(
    findings: list[Finding],
    tables: Sequence[Table],
    number: int,
    shares: Sequence[int],
    pairs: Ints,
    told: Told,
    names: Sequence[str],
) -> Diagnosis:
    """The findings, and those about columns of answers."""
    people = tables[number]
    kept = [told.id, *told.groups, *(n for n in (*told.room, *told.partner) if n in people.names)]
    labels = unchecked(people, told).group_of
    asked = {name: people.columns[name] for name in people.names if name not in kept}
    decided = {*told.trust, *told.mix}
    leaking = [leak for leak in leaks(asked, pairs, labels) if leak.column not in decided]
    roles, codes = roles_of_answers(_coded(people, told), kept, leaking)
    used = [name for name, role in roles.items() if role != "ignore"]
    findings = [
        *findings,
        *_about_answers(number, _coded(people, told), kept, used, told.trust),
        *_about_leaks(number, leaking, people, pairs, told),
        *_about_pairs(shares, people, pairs, len(used)),
    ]
    taken = {told.id: "id"} | ({told.cohort: "cohort"} if told.cohort else {})
    taken |= dict.fromkeys(told.same, "same")
    usual = Told()
    asked_for = ("id", "cohort", "same", "mix", "partners", "room", "partner")
    given = {name: getattr(told, name) for name in asked_for}
    settings = {name: value for name, value in given.items() if value != getattr(usual, name)}
    codes = {**_as_mapping(told.no_answer, used), **codes}
    found = Diagnosis(findings, taken | roles, "", told, codes)
    if not shares:
        return found
    files = [names[k] for k in dict.fromkeys((number, *shares))] if names else []
    return replace(found, command=command(files, people, settings, roles, codes))


def _as_mapping(no_answer: Any, used: Sequence[str]) -> dict[str, list[str]]:
    if isinstance(no_answer, dict):
        return {name: list(map(str, values)) for name, values in no_answer.items()}
    values = [str(value) for value in no_answer]
    return dict.fromkeys(used, values) if values else {}


def _coded(people: Table, told: Told) -> Table:
    """Without the codes that were told."""
    every = list(told.no_answer)
    if isinstance(told.no_answer, dict):
        return people.without({n: v for n, v in told.no_answer.items() if n in people.names})
    return people.without({n: every for n in people.names if n != told.id}) if every else people


def _about_answers(
    number: int, people: Table, kept: Sequence[str], used: Sequence[str], trust: Collection[str]
) -> Iterator[Finding]:
    for name in people.names:
        if name in kept or name in trust:
            continue
        faults = [*codes(people, name), *words_among_numbers(people, name)]
        faults += spellings(people, name) if name in used else []
        yield from (Finding("fault", number, words) for words in faults)
        yield from (Finding("remark", number, words) for words in remarks(people, name))
    odd_ids = words_among_numbers(people, kept[0])
    yield from (Finding("fault", number, f"{words}: is that a person?") for words in odd_ids)
    for name in kept:
        yield from (Finding("fault", number, words) for words in spellings(people, name))


def _about_leaks(
    number: int, found: Iterable[Leak], people: Table, pairs: Ints, told: Told
) -> Iterator[Finding]:
    for leak in found:
        name = repr(leak.column)
        advice = f"leave it out of the answers, or trust={name}"
        if leak.rule:
            once = "" if leak.agreed and leak.agreed.whole else "write each of them in one way and "
            advice = f"{once}say same={name}; if partners may differ in it, say mix={name}"
        yield Finding("fault", number, f"column {name}: {leak.words} If so, {advice}")
    ids = [written(who) for who in people.as_names(told.id).tolist()]
    for name in people.names:
        shown = [written(value) for value in people.as_names(name).tolist()]
        hits = sum(shown[a] == ids[b] or shown[b] == ids[a] for a, b in pairs.tolist())
        if name != told.id and len(pairs) and 2 * hits >= len(pairs) and name not in told.partner:
            words = f"column {name!r} names the partner in {hits} of {len(pairs)} pairs"
            yield Finding("fault", number, f"{words}; leave it out of the answers")


def _about_pairs(
    shares: Sequence[int], people: Table, pairs: Ints, questions: int
) -> Iterator[Finding]:
    if not shares:
        return
    alone = len(people) - len(np.unique(pairs))
    if alone:
        words = f"{alone} of {len(people)} people are in no pair, and nothing is learned from them"
        yield Finding("remark", shares[0], words)
    if len(pairs) < PAIRS_PER_WEIGHT * questions:
        yield Finding(
            "remark",
            shares[0],
            f"{len(pairs)} pairs are few for {questions} questions: at least "
            f"{PAIRS_PER_WEIGHT * questions} would tell more; intervals will be wide",
        )


def faults(table: Table) -> Iterator[str]:
    """What is wrong with any table."""
    if len(table) == 0:
        yield "the table is empty"
    yield from table.mixed.values()
    whole = [name for name in table.names if name not in table.mixed]
    rows = list(zip(*map(table.listed, whole), strict=True))
    yield from some(f"{table.at(k)} repeats an earlier one" for k in repeats(rows))
    for name, column in table.columns.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            yield f"column {name!r} holds infinite numbers" + (
                f", the first in {table.at(row, name)}" if table.places else ""
            )


def remarks_on_groups(table: Table, groups: Sequence[str]) -> Iterator[str]:
    """Groups of one, who have nobody to share with, and odd ones, which leave one person over."""
    for group in groups_of(table, groups):
        if len(group.members) == 1:
            yield f"{group.label}: one person, who has nobody to share with"
        elif len(group.members) % 2:
            count = f"{len(group.members)} people, an odd number"
            yield f"{group.label}: {count}, so one of them stays alone"


def faults_of_rules(
    people: Table,
    id_column: str,
    groups: Sequence[str],
    forbid: Sequence[Rule],
    require: Sequence[Rule],
) -> Iterator[str]:
    """Why nobody could keep these rules: the first contradiction, in few people where it can be.

    Rules among people who are faulty themselves are not tried.
    """
    if faults_of_people(people, id_column, groups):
        return
    try:
        read = People.read(people, id_column, groups, [], "refuse")
        alike = [Worth((), read.codes[group.members], {}) for group in read.groups]
        len(Plan.of(read, alike, forbid, require, None, "map", 0.5).pairs)  # solves every group
    except ValueError as error:
        yield str(error)
