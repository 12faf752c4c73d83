"""All findings about tables of people and of who shares, and what columns are probably for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.roommates import frames
from mlestruct.roommates.frames import Column, Table, number, shown, suspects, written
from mlestruct.roommates.observed import KEPT, Agreement, leaks, read_pairs
from mlestruct.roommates.people import People, faults_of_people, groups_of
from mlestruct.roommates.project import Settings
from mlestruct.roommates.words import FINDINGS
from mlestruct.structures.base import Ints

PAIRS_PER_WEIGHT = 5  # fewer say little: docs/roommates.md
IDS = re.compile(
    r"id|nr\.?|no\.?|code|kennung|name|person|people|student(?:in)?|resident|bewohner(?:in)?|"
    r"(?:.*[ _.-])?(?:id|nr\.?|no\.?|number|code)|.*nummer|matrikel.*"
)
ROOMS = re.compile(r"(?:.*[ _.-])?(?:rooms?|zimmer|raum|apartment|wohnung)(?:[ _.-]?(?:nr|no)\.?)?")
COHORTS = re.compile("year|cohort|class|intake|semester|term|jahr|jahrgang|kohorte|année|año")
GROUPS = re.compile("gender|sex|geschlecht|genre|sexo|house|haus|wing|building|gebäude")
KNOWN, DIFFERENT = 0.8, 0.5  # shares of cells that are ids, and that are not the same id again
NEARLY = 0.9  # share of rows with an id of their own, where somebody is listed twice
SCALES = (  # words in their order
    "never|seldom|rarely|sometimes|often|usually|always",
    "nie|selten|manchmal|oft|meistens|immer",
    "jamais|rarement|parfois|souvent|toujours",
    "strongly disagree|disagree|neutral|neither|agree|strongly agree",
    "stimme gar nicht zu|stimme nicht zu|teils teils|stimme zu|stimme voll zu",
    "not at all|a little|somewhat|much|very much",
    "gar nicht|wenig|mittel|ziemlich|sehr",
)
GONE = re.compile("withdrawn|cancelled|canceled|left|inactive|moved out|abgemeldet|ausgezogen")
FEW = 12  # answers that a question in words has at most
ALMOST = 0.8  # share of numbers that makes other cells codes, or faults


class Finding(NamedTuple):
    """A sentence of FINDINGS by its code, the table's number, and the values in the sentence."""

    code: str
    table: int
    values: dict[str, Any]

    @property
    def severity(self) -> str:
        """``stop`` (a fit would refuse it, or learn what is not meant), ``puzzle`` or ``note``."""
        return FINDINGS[self.code][0]

    @property
    def words(self) -> str:
        """What was found where, and what to do about it."""
        return "".join(FINDINGS[self.code][1:3]).format(**self.values)

    @property
    def on_page(self) -> str:
        """The same, with what to do on the page."""
        _, found, *remedies = FINDINGS[self.code]
        return (found + (remedies or [""])[-1]).format(**self.values)


class Findings(list[Finding]):
    """In the order in which they were made."""

    def add(self, code: str, table: int, **values: Any) -> None:
        self.append(Finding(code, table, values))

    def refused(self, table: int, faults: Iterable[str]) -> None:
        """What a fit would refuse, in its words."""
        self.extend(Finding("refused", table, {"words": words}) for words in faults)


@dataclass(frozen=True)
class Diagnosis:
    """Findings in the order of the tables, and all settings: as told, else as proposed."""

    findings: list[Finding]
    settings: Settings = field(default_factory=Settings)

    def __str__(self) -> str:
        return "\n".join(f"{'-' if f.severity == 'note' else '!'} {f.words}" for f in self.findings)


def examine(
    tables: Sequence[Table], told: Settings | None = None, chosen: bool = False
) -> Diagnosis:
    """Everything about these tables; the first with an id column is that of people.

    Where no table has the default columns, the ids and who shares are looked for. What all pairs
    agree in is proposed as a rule, unless rules are ``chosen`` already.
    """
    found = Findings()
    told = _introduced(tables, told or Settings(), found)
    people = next((k for k, table in enumerate(tables) if told.id in table.names), None)
    if people is None:
        return Diagnosis([*([Finding("no ids", 0, {})] if tables else []), *found], told)
    everybody, own, needed = tables[people], told.way != "partners", set(told.sharing.needed)
    shares = [k for k, t in enumerate(tables) if needed <= set(t.names) and (own or k != people)]
    if not shares:
        found.add("no shares" if len(tables) > 1 else "nobody shares", people)
    sharing = [tables[k] for k in shares]
    if not chosen:
        told = _with_rules(sharing, everybody, told, found)
    found[:] = [one._replace(table=people) for one in found]
    found.refused(people, faults_of_people(everybody, told.id, told.groups))
    for k in shares:
        found.refused(k, read_pairs(tables[k], unchecked(everybody, told), told.sharing).faults)
    pairs = paired(sharing, everybody, told)
    done = set(np.unique(pairs).tolist())
    for group in groups_of(everybody, told.groups):  # odd ones of which nobody shares yet
        if len(group.members) % 2 and not done & set(group.members.tolist()):
            found.add("odd", people, group=group.label, count=len(group.members))
    taken = [told.id, *told.groups, *(n for n in told.shares if own and n in everybody.names)]
    coded = _coded(everybody, told)
    leaking = _leaking(everybody, [*taken, *told.trust, *told.mix], pairs, told)
    proposed = _with_roles(coded, taken, {leak.column for leak in leaking}, told)
    proposed = proposed if chosen else replace(proposed, missing="neutral")
    _answers(people, coded, taken, proposed, found)
    found += [
        Finding("leak" if one.few else "rule", people, {"column": one.column, "agreed": one})
        for one in leaking
    ]
    if not proposed.asked:
        found.add("no questions", people)
    if shares:
        alone, questions = len(everybody) - len(np.unique(pairs)), len(proposed.asked)
        if alone:
            found.add("alone", shares[0], alone=alone, people=len(everybody))
        if len(pairs) < (least := PAIRS_PER_WEIGHT * questions):
            found.add("few", shares[0], pairs=len(pairs), questions=questions, least=least)
    return Diagnosis(found, proposed)


def _introduced(tables: Sequence[Table], told: Settings, found: Findings) -> Settings:
    """With the ids' column and who shares, where the usual columns are in no table."""
    for k, table in enumerate(tables):
        numbers = sum(number(name) is not None for name in table.names)
        if numbers > max(len(table.names) / 2, 2 * len(table), 8):
            found.add("turned", k)
    missing_id = told.id == Settings.id and not any(told.id in t.names for t in tables)
    who = who_is_who(tables, None if missing_id else told.id)
    said = told.way != "partners" or told.partners != Settings.partners
    said = said or any(set(told.partners) <= set(t.names) for t in tables)
    if told.id == Settings.id and who is not None and not who.columns and not said:
        other = who_is_who(tables, among=[n for t in tables for n in t.names if n != told.id])
        missing_id, who = (True, other) if other and other.columns else (missing_id, who)
    if who is not None and missing_id:
        told = replace(told, id=who.id)
        found.add("ids taken", 0, column=who.id)
    if who is not None and who.columns and not said:
        more: dict[str, Any] = {who.way: who.columns}
        told = replace(told, **more)
        found.add(f"{who.way} taken", 0, columns=", ".join(map(repr, who.columns)))
    return told


def paired(shares: Sequence[Table], everybody: Table, told: Settings) -> Ints:
    """(pairs × 2) rows of people, of the pairs of all tables that say who shares."""
    people, needed = unchecked(everybody, told), set(told.sharing.needed)
    found = [read_pairs(t, people, told.sharing) for t in shares if needed <= set(t.names)]
    rows = np.concatenate([*(one.rows for one in found), np.empty((0, 2), dtype=np.int64)])
    return np.unique(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1), axis=0)


def unchecked(everybody: Table, told: Settings) -> People:
    """People as they are, whatever is wrong with them."""
    ids = everybody.listed(told.id)
    none = np.empty((len(ids), 0), dtype=np.int64)
    return People(everybody, ids, none, groups_of(everybody, told.groups))


def _with_rules(
    shares: Sequence[Table], everybody: Table, told: Settings, found: Findings
) -> Settings:
    """With a cohort and rules, where none was named and nearly all pairs keep them.

    The rule that most pairs keep is taken first, of columns that say the same the one that is
    called like a rule; others must say more than it does.
    """
    if told.cohort is None:
        done = np.isin(np.arange(len(everybody)), paired(shares, everybody, told))
        free = [n for n in everybody.names if n not in (told.id, *told.same)]
        called = [name for name in free if COHORTS.fullmatch(name.casefold())]
        for name in called[:1] or [name for name in free if _is_cohort(everybody, name, done)][:1]:
            tried, when = replace(told, cohort=name), everybody.listed(name)
            kept = [when[a] == when[b] for a, b in paired(shares, everybody, tried).tolist()]
            told = tried if not kept or np.mean(kept) >= KEPT else told
    pairs = paired(shares, everybody, told)
    taken = {told.id, *told.room, *told.partner, *told.trust, *told.mix}
    while True:
        leaking = _leaking(everybody, {*taken, *told.groups}, pairs, told)
        rules = [one for one in leaking if one.whole and not one.few]
        if not rules:
            return told
        rules.sort(key=lambda one: GROUPS.fullmatch(one.column.casefold()) is None)
        agreed = max(rules, key=lambda one: one.agree / one.pairs)
        told = replace(told, same=(*told.same, agreed.column))
        found.add("rule proposed", 0, column=agreed.column, agreed=agreed)


def _is_cohort(people: Table, name: str, done: NDArray[np.bool_]) -> bool:
    """Whether a column parts those who share already from those who are to be paired up."""
    values = np.array(list(map(str, people.listed(name))))
    held = [done[values == value] for value in np.unique(values)]
    shares = [own.mean() if len(own) > 1 else 0.5 for own in held]
    several = 1 < len(held) <= FEW and "None" not in values and min(shares) == 0 < max(shares)
    return several and all(share in (0, 1) or share >= KNOWN for share in shares)


def _leaking(people: Table, taken: Collection[str], pairs: Ints, told: Settings) -> list[Agreement]:
    free = {name: people.columns[name] for name in people.names if name not in taken}
    return leaks(free, pairs, unchecked(people, told).group_of)


def _coded(people: Table, told: Settings) -> Table:
    """Without the codes that were told."""
    codes = told.no_answer
    if not isinstance(codes, dict):
        codes = {n: list(codes) for n in people.names if n != told.id} if codes else {}
    return people.respelled(codes)


def _with_roles(
    people: Table, taken: Collection[str], leaking: Collection[str], told: Settings
) -> Settings:
    """With a role for every column of which nothing is said, and its codes for no answer."""
    said, roles = told.uses(), {role: list(getattr(told, role)) for role in ROLES}
    by_column = isinstance(told.no_answer, dict)
    codes = dict(told.no_answer) if by_column else {}
    spelled = {name: dict(words) for name, words in told.spelled.items()}
    for name in people.names:
        named = {"trust", "protected", "no answer", "spelled", "levels", "words"}.issuperset(
            said.get(name, ())
        )
        if name in taken or not named or name == told.names:
            continue
        role, own, steps = role_of(people[name])
        role = "ignore" if name in leaking else role
        roles[role].append(name)
        if steps:
            spelled[name] = steps
        if own and role != "ignore" and name not in told.trust and by_column:
            codes[name] = own
    more: dict[str, Any] = {role: tuple(names) for role, names in roles.items()}
    return replace(told, **more, no_answer=codes or told.no_answer, spelled=spelled)


ROLES = ("ordinal", "binary", "categorical", "ignore")
Role = tuple[str, list[str], dict[str, str]]
NO_ROLE: Role = ("ignore", [], {})


def role_of(column: Column) -> Role:
    """One of ROLES, codes for no answer, and the number of each word that is one of a scale."""
    codes, counts = list(suspects(column)), shown(column)
    values = [value for value in counts if value not in codes]
    for scale in SCALES if len(counts) > 2 and column.dtype.kind == "O" else ():
        order = [word for word in scale.split("|") if word in map(str.casefold, counts)]
        if all(value.casefold() in order for value in counts):
            steps = {value: order.index(value.casefold()) + 1 for value in counts}
            ordered = sorted(sorted(steps), key=steps.__getitem__)
            return "ordinal", codes, {value: str(steps[value]) for value in ordered}
    words = [value for value in values if number(value) is None]
    if len(values) < 2 or len(values) > frames.MOST_LEVELS:
        return NO_ROLE
    if not words:
        return "binary" if {*values} <= {"0", "1"} else "ordinal", codes, {}
    if len(words) <= (1 - ALMOST) * len(values):
        return "ordinal", [*codes, *sorted(words)], {}
    if len(values) == 2:
        return "binary", codes, {}
    few = len(values) <= min(FEW, sum(counts[value] for value in values) // 2)
    return ("categorical", codes, {}) if few else NO_ROLE


def _answers(
    people: int, table: Table, taken: Sequence[str], told: Settings, found: Findings
) -> None:
    """What looks odd among the answers and in the columns that keep people apart."""
    for name in table.names:
        if name in taken or name in told.trust:
            continue
        column, counts = table[name], shown(table[name])
        texts = [written(value) for value in column.tolist()]
        for value, count in suspects(column).items():
            where = table.at(texts.index(value), name)
            found.add("code", people, column=name, value=value, count=count, where=where)
        _words_among_numbers(people, table, name, found)
        if name in told.asked:
            _spellings(people, table, name, found)
        for value, count in counts.items():
            if GONE.fullmatch(value.casefold()):
                found.add("gone", people, column=name, value=value, count=count)
    _words_among_numbers(people, table, taken[0], found)
    for name in taken:
        _spellings(people, table, name, found)


def _words_among_numbers(number: int, table: Table, name: str, found: Findings) -> None:
    """A few cells of text in a column of numbers."""
    cells = [(row, v) for row, v in enumerate(table[name].tolist()) if isinstance(v, str)]
    odd = [(row, value) for row, value in cells if not frames.is_number(value)]
    known = suspects(table[name]) if len(odd) <= (1 - ALMOST) * len(cells) else [v for _, v in odd]
    for row, value in [(row, value) for row, value in odd if value not in known][: frames.EACH]:
        found.add("word", number, column=name, value=value, where=table.at(row, name))


def _spellings(people: int, table: Table, name: str, found: Findings) -> None:
    """One answer in several spellings."""
    counts = Counter(table.as_levels(name).tolist())
    for alike in frames.variants(table.as_levels(name)):
        listed = ", ".join(f"{value!r} ({counts[value]})" for value in alike)
        most = max(alike, key=counts.__getitem__)
        first = next(value for value in alike if value != most)
        found.add("spelled", people, column=name, listed=listed, first=first, most=most)


class Who(NamedTuple):
    """The ids' column; the way and the columns that say who shares, none where none were found."""

    id: str
    way: str = "room"
    columns: tuple[str, ...] = ()


def who_is_who(
    tables: Sequence[Table], id_column: str | None = None, among: Sequence[str] | None = None
) -> Who | None:
    """By names and by values: cells of other tables that are ids of people; None without ids."""
    cells = [
        {name: [str(written(v)) for v in t.listed(name) if v is not None] for name in t.names}
        for t in tables
    ]
    ranked = []
    for k, table in enumerate(tables):
        for place, (name, mine) in enumerate(cells[k].items()):
            different = len(set(mine)) / max(len(table), 2)
            free = id_column is None and (among is None or name in among)
            if name == id_column or (free and different >= NEARLY):
                others = [column for j, t in enumerate(cells) if j != k for column in t.values()]
                met = sum(_names_people(column, set(mine)) for column in others)
                met += sum(_mutual(table, name, other) for other in cells[k] if other != name)
                named = IDS.fullmatch(name.casefold()) is not None
                if name == id_column or named or met:
                    whole = different == 1.0  # not so: somebody is listed twice, or has no id
                    ranked.append((met, whole, named, len(table.names), -k, -place, k, name))
    if not ranked:
        return None
    people, name = max(ranked)[-2:]
    ids = set(cells[people][name])
    for k, table in enumerate(tables):
        if k != people:
            ends = tuple(n for n, column in cells[k].items() if _names_people(column, ids))
            if len(ends) > 1:
                return Who(name, "partners", ends)
            rooms = tuple(n for n in table.names if ROOMS.fullmatch(n.casefold()))
            if ends == (name,) and rooms:
                return Who(name, "room", rooms[:1])
    rest = [n for n in cells[people] if n != name]
    partner = tuple(n for n in rest if _mutual(tables[people], name, n))
    rooms = tuple(n for n in rest if ROOMS.fullmatch(n.casefold()))
    return Who(name, "partner", partner) if partner else Who(name, "room", rooms[:1])


def _names_people(cells: Sequence[str], ids: set[str]) -> bool:
    """Whether a column names people: nearly all cells are ids, and few are the same one again."""
    known = [cell for cell in cells if cell in ids]
    enough = len(known) > 1 and len(known) >= KNOWN * len(cells)
    return enough and len(set(known)) >= DIFFERENT * len(known)


def _mutual(people: Table, ids: str, name: str) -> bool:
    """Whether a column names everybody's partner: nearly all who are named name the other."""
    listed = zip(people.listed(ids), people.listed(name), strict=True)
    told = [(written(me), str(written(one))) for me, one in listed if one is not None]
    if not _names_people([one for _, one in told], set(map(str, map(written, people.listed(ids))))):
        return False
    other = dict(told)
    named = [me for me, one in told if one in other]
    return len(named) > 1 and sum(other[other[me]] == me for me in named) >= KNOWN * len(named)
