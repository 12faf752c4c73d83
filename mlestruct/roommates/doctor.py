"""All findings about tables of people and of who shares, and what columns are probably for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mlestruct.roommates.cells import number, written
from mlestruct.roommates.columns import EACH, MOST_LEVELS, suspects, variants
from mlestruct.roommates.frames import Column, Table, missing
from mlestruct.roommates.leaks import KEPT, Agreement, Leak, leaks
from mlestruct.roommates.observed import homes_of, read_pairs
from mlestruct.roommates.people import People, faults_of_people, groups_of
from mlestruct.roommates.project import Settings
from mlestruct.roommates.questionnaire import some
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
NEAR_CONSTANT, MOSTLY_MISSING, NEAR_ID = 0.95, 0.5, 0.9
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
ALMOST = 0.8  # share of numbers that makes other cells codes


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


@dataclass(frozen=True)
class Diagnosis:
    """Findings in the order of the tables, and all settings: as told, else as proposed."""

    findings: list[Finding]
    settings: Settings = field(default_factory=Settings)

    @property
    def faults(self) -> list[Finding]:
        """What is to be put right, or not understood."""
        return [finding for finding in self.findings if finding.severity != "note"]

    @property
    def puzzles(self) -> list[Finding]:
        """Why the tables are not understood."""
        return [finding for finding in self.findings if finding.severity == "puzzle"]

    def __str__(self) -> str:
        return "\n".join(f"{'-' if f.severity == 'note' else '!'} {f.words}" for f in self.findings)


def examine(
    tables: Sequence[Table], told: Settings | None = None, chosen: bool = False
) -> Diagnosis:
    """Everything about these tables; the first with an id column is that of people.

    Where no table has the default columns, the ids and who shares are looked for. What all pairs
    agree in is proposed as a rule, unless rules are ``chosen`` already.
    """
    told, findings = _introduced(tables, told or Settings())
    people = next((k for k, table in enumerate(tables) if told.id in table.names), None)
    general = [Finding(code, k, v) for k, t in enumerate(tables) for code, v in faults(t)]
    if people is None:
        nobody = [Finding("no ids", 0, {})] if tables else []
        return Diagnosis([*general, *nobody, *findings], told)
    everybody = tables[people]
    own, needed = told.way != "partners", set(told.columns.needed)
    shares = [k for k, t in enumerate(tables) if needed <= set(t.names) and (own or k != people)]
    if not shares:
        findings.append(Finding("no shares" if len(tables) > 1 else "nobody shares", people, {}))
    sharing = [tables[k] for k in shares]
    told, proposals = (told, []) if chosen else _with_rules(sharing, everybody, told)
    findings = [*general, *(f._replace(table=people) for f in (*findings, *proposals))]
    for words in faults_of_people(everybody, told.id, told.groups):
        findings.append(Finding("refused", people, {"words": words}))
    for k in shares:
        found = _of_pairs(tables[k], everybody, told)
        findings += [Finding("refused", k, {"words": words}) for words in found]
    pairs = paired(sharing, everybody, told)
    findings += [Finding(c, people, v) for c, v in remarks_on_groups(everybody, told, pairs)]
    taken = [told.id, *told.groups, *(n for n in told.shares if own and n in everybody.names)]
    coded = _coded(everybody, told)
    leaking = _leaking(everybody, [*taken, *told.trust, *told.mix], pairs, told)
    proposed = _with_roles(coded, taken, {leak.column for leak in leaking}, told)
    if not chosen:
        proposed = replace(proposed, missing="neutral")
    findings += [Finding(c, people, v) for c, v in _of_answers(coded, taken, proposed)]
    findings += [Finding(c, people, v) for c, v in _of_leaks(leaking, everybody, pairs, told)]
    if not proposed.asked:
        findings.append(Finding("no questions", people, {}))
    if shares:
        few = _of_count(everybody, pairs, len(proposed.asked))
        findings += [Finding(code, shares[0], values) for code, values in few]
    return Diagnosis(findings, proposed)


def _introduced(tables: Sequence[Table], told: Settings) -> tuple[Settings, list[Finding]]:
    """With the ids' column and who shares, where the usual columns are in no table."""
    findings = [Finding("turned", k, {}) for k, table in enumerate(tables) if _turned(table)]
    missing_id = told.id == Settings.id and not any(told.id in t.names for t in tables)
    who = who_is_who(tables, None if missing_id else told.id)
    said = told.way != "partners" or told.partners != Settings.partners
    said = said or any(set(told.partners) <= set(t.names) for t in tables)
    if told.id == Settings.id and who is not None and not any(who[1:]) and not said:
        other = who_is_who(tables, among=[n for t in tables for n in t.names if n != told.id])
        missing_id, who = (True, other) if other and any(other[1:]) else (missing_id, who)
    if who is None:
        return told, findings
    if missing_id:
        told = replace(told, id=who.id)
        findings.append(Finding("ids taken", 0, {"column": who.id}))
    if said:
        return told, findings
    found = {way: columns for way, columns in who._asdict().items() if way != "id" and columns}
    for way, columns in found.items():
        told = replace(told, **{way: columns})
        listed = ", ".join(map(repr, columns))
        findings.append(Finding(f"{way} taken", 0, {"columns": listed}))
    return told, findings


def _turned(table: Table) -> bool:
    """Whether people seem to be columns: most are called by numbers, and rows are few."""
    numbers = sum(number(name) is not None for name in table.names)
    return numbers > max(len(table.names) / 2, 2 * len(table), 8)


def paired(shares: Sequence[Table], everybody: Table, told: Settings) -> Ints:
    """(pairs × 2) rows of people, of the pairs of all tables that say who shares."""
    found = [_rows(table, everybody, told) for table in shares]
    return np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *found]), axis=0)


def _with_rules(
    shares: Sequence[Table], everybody: Table, told: Settings
) -> tuple[Settings, list[Finding]]:
    """With a cohort and rules, where none was named and nearly all pairs keep them.

    The rule that most pairs keep is taken first; others must say more than it does.
    """
    findings: list[Finding] = []
    guess = next(
        (n for n in everybody.names
         if n not in (told.id, *told.groups) and COHORTS.fullmatch(n.casefold())), None
    )  # fmt: skip
    if told.cohort is None and guess is not None:
        tried = replace(told, cohort=guess)
        when = [written(c) for c in everybody.listed(guess)]
        kept = [when[a] == when[b] for a, b in paired(shares, everybody, tried).tolist()]
        told = tried if not kept or np.mean(kept) >= KEPT else told
    pairs = paired(shares, everybody, told)
    taken = {told.id, *told.room, *told.partner, *told.trust, *told.mix}
    while agreed := rule_of(_leaking(everybody, {*taken, *told.groups}, pairs, told)):
        told = replace(told, same=(*told.same, agreed.column))
        values = {"column": agreed.column, "agreed": agreed}
        findings.append(Finding("rule proposed", 0, values))
    return told, findings


def _leaking(people: Table, taken: Collection[str], pairs: Ints, told: Settings) -> list[Leak]:
    free = {name: people.columns[name] for name in people.names if name not in taken}
    return leaks(free, pairs, unchecked(people, told).group_of)


def rule_of(found: Iterable[Leak]) -> Agreement | None:
    """The column in which most pairs agree where few would by chance: a rule, to all appearance.

    Of columns that say the same, the one that is called like a rule.
    """
    rules = [leak.agreed for leak in found if leak.rule and leak.agreed and leak.agreed.whole]

    def order(one: Agreement) -> tuple[float, bool]:
        return one.agree / one.pairs, GROUPS.fullmatch(one.column.casefold()) is not None

    return max(rules, key=order, default=None)


def _of_pairs(table: Table, everybody: Table, told: Settings) -> Iterator[str]:
    """What a fit would refuse of a table of who shares, whichever way it says so."""
    try:
        read_pairs(table, unchecked(everybody, told), told.columns)
    except ValueError as error:
        lines = str(error).splitlines()
        yield from (line.strip() for line in (lines[1:] if len(lines) > 1 else lines))


def unchecked(everybody: Table, told: Settings) -> People:
    """People as they are, whatever is wrong with them."""
    ids = everybody.as_names(told.id).tolist()
    none = np.empty((len(ids), 0), dtype=np.int64)
    return People(everybody, ids, none, groups_of(everybody, told.groups))


def _rows(table: Table, everybody: Table, told: Settings) -> Ints:
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


def _coded(people: Table, told: Settings) -> Table:
    """Without the codes that were told."""
    codes = told.no_answer
    if not isinstance(codes, dict):
        codes = {n: list(codes) for n in people.names if n != told.id} if codes else {}
    return people.without({name: v for name, v in codes.items() if name in people.names})


def _with_roles(
    people: Table, taken: Collection[str], leaking: Collection[str], told: Settings
) -> Settings:
    """With a role for every column of which nothing is said, and its codes for no answer."""
    said, codes = told.uses(), dict(told.no_answer) if isinstance(told.no_answer, dict) else {}
    found: dict[str, list[str]] = {}
    spelled = {name: dict(words) for name, words in told.spelled.items()}
    for name in people.names:
        named = {"trust", "protected", "no answer", "spelled"}.issuperset(said.get(name, ()))
        if name in taken or not named or name == told.names:
            continue
        role, own = role_of(people[name]) if name not in people.mixed else ("ignore", [])
        if name not in people.mixed and (steps := _steps(people[name])):
            role, spelled[name] = "ordinal", steps
        role = "ignore" if name in leaking else role
        found.setdefault(role, []).append(name)
        if own and role != "ignore" and name not in told.trust:
            codes[name] = own
    more: dict[str, Any] = {role: (*getattr(told, role), *names) for role, names in found.items()}
    if codes and not isinstance(told.no_answer, dict):
        codes = {}
    return replace(told, **more, no_answer=codes or told.no_answer, spelled=spelled)


def _steps(column: Column) -> dict[str, str]:
    """The number of each word, where all answers are words of one scale."""
    values = {v for v in column[~missing(column)].tolist() if isinstance(v, str)}
    for scale in SCALES if len(values) > 2 and column.dtype.kind == "O" else ():
        order = [word for word in scale.split("|") if word in {v.casefold() for v in values}]
        if all(value.casefold() in order for value in values):
            steps = {value: order.index(value.casefold()) + 1 for value in values}
            return {value: str(steps[value]) for value in sorted(values, key=steps.__getitem__)}
    return {}


def role_of(column: Column) -> tuple[str, list[str]]:
    """(ordinal, binary, categorical or ignore; codes for no answer) of a column of answers."""
    codes = [suspect.value for suspect in suspects(column)]
    shown = [str(written(value)) for value in column[~missing(column)].tolist()]
    told = [value for value in shown if value not in codes]
    values = set(told)
    numbers = [value for value in values if number(value) is not None]
    if len(values) < 2 or len(values) > MOST_LEVELS:
        return "ignore", []
    if len(numbers) == len(values):
        return ("binary" if values <= {"0", "1"} else "ordinal"), codes
    if len(numbers) >= ALMOST * len(values):
        return "ordinal", [*codes, *sorted(values - set(numbers))]
    if len(values) == 2:
        return "binary", codes
    return ("categorical" if len(values) <= min(FEW, len(told) // 2) else "ignore"), codes


Found = Iterator[tuple[str, dict[str, Any]]]
"""Codes of findings, with their values."""


def _of_answers(people: Table, taken: Sequence[str], told: Settings) -> Found:
    for name in people.names:
        if name not in taken and name not in told.trust and name not in people.mixed:
            yield from _codes(people, name)
            for words in words_among_numbers(people, name):
                yield "word", {"words": words}
            yield from spellings(people, name) if name in told.asked else ()
            for value, count in Counter(people[name].tolist()).items():
                if GONE.fullmatch(str(value).casefold()):
                    yield "gone", {"column": name, "value": value, "count": count}
            yield from remarks(people, name)
    for words in words_among_numbers(people, taken[0]):
        yield "odd id", {"words": words}
    for name in taken:
        yield from spellings(people, name)


def _of_leaks(found: Iterable[Leak], people: Table, pairs: Ints, told: Settings) -> Found:
    for leak in found:
        values = {"column": leak.column, "words": leak.words}
        whole = leak.agreed is not None and leak.agreed.whole
        yield ("rule" if whole else "spelled rule") if leak.rule else "leak", values
    ids = [written(who) for who in people.as_names(told.id).tolist()]
    for name in people.names:
        if name in (told.id, *told.partner) or not len(pairs) or name in people.mixed:
            continue
        shown = [written(value) for value in people.as_names(name).tolist()]
        hits = sum(shown[a] == ids[b] or shown[b] == ids[a] for a, b in pairs.tolist())
        if 2 * hits >= len(pairs):
            yield "names partner", {"column": name, "hits": hits, "pairs": len(pairs)}


def _of_count(people: Table, pairs: Ints, questions: int) -> Found:
    alone = len(people) - len(np.unique(pairs))
    if alone:
        yield "alone", {"alone": alone, "people": len(people)}
    least = PAIRS_PER_WEIGHT * questions
    if len(pairs) < least:
        yield "few", {"pairs": len(pairs), "questions": questions, "least": least}


def faults(table: Table) -> Found:
    """What is wrong with any table."""
    if len(table) == 0:
        yield "empty", {}
    yield from (("refused", {"words": words}) for words in table.mixed.values())
    whole = [name for name in table.names if name not in table.mixed]
    rows = list(zip(*map(table.listed, whole), strict=True))
    for words in some(f"{table.at(k)} repeats an earlier one" for k in repeats(rows)):
        yield "refused", {"words": words}
    for name, column in table.columns.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            where = f", the first in {table.at(row, name)}" if table.places else ""
            yield "infinite", {"column": name, "where": where}


def remarks_on_groups(table: Table, told: Settings, pairs: Ints) -> Found:
    """Groups of one, who have nobody to share with, and odd ones, which leave one person over.

    Those of which somebody is paired already are counted only.
    """
    done, old = set(np.unique(pairs).tolist()), 0
    for group in groups_of(table, told.groups):
        count = len(group.members)
        if done & set(group.members.tolist()):
            old += count % 2
        elif count % 2:
            yield "one alone" if count == 1 else "odd", {"group": group.label, "count": count}
    if old:
        yield "odd before", {"count": old}


class Who(NamedTuple):
    """The ids' column, and one of three ways to say who shares; empty where none was found."""

    id: str
    partners: tuple[str, ...] = ()
    room: tuple[str, ...] = ()
    partner: tuple[str, ...] = ()


def who_is_who(
    tables: Sequence[Table], id_column: str | None = None, among: Sequence[str] | None = None
) -> Who | None:
    """By names and by values: cells of other tables that are ids of people; None without ids."""
    found = _ids(tables, id_column, among)
    if found is None:
        return None
    people, name = found
    ids = set(_cells(tables[people], name))
    for k, table in enumerate(tables):
        if k != people:
            ends = tuple(n for n in table.names if _names_people(_cells(table, n), ids))
            if len(ends) > 1:
                return Who(name, partners=ends)
            rooms = tuple(n for n in table.names if ROOMS.fullmatch(n.casefold()))
            if ends == (name,) and rooms:
                return Who(name, room=rooms[:1])
    own = [n for n in tables[people].names if n != name]
    partner = tuple(n for n in own if _mutual(tables[people], name, n))
    rooms = tuple(n for n in own if ROOMS.fullmatch(n.casefold()))
    return Who(name, partner=partner) if partner else Who(name, room=rooms[:1])


def _ids(
    tables: Sequence[Table], told: str | None, among: Sequence[str] | None
) -> tuple[int, str] | None:
    """(table, column) of the ids: nearly all different, named so or met in other tables.

    Somebody listed twice, or without an id, is a fault to be told, and no other column is better.
    """
    ranked = []
    for k, table in enumerate(tables):
        for place, name in enumerate(table.names):
            cells = _cells(table, name)
            different = len(set(cells)) / max(len(table), 2)
            free = told is None and (among is None or name in among)
            if name == told or (free and different >= NEARLY):
                others = [t for other, t in enumerate(tables) if other != k]
                ids = set(cells)
                met = sum(_names_people(_cells(t, other), ids) for t in others for other in t.names)
                met += sum(_mutual(table, name, own) for own in table.names if own != name)
                named = IDS.fullmatch(name.casefold()) is not None
                if name == told or named or met:
                    whole = different == 1.0
                    ranked.append((met, whole, named, len(table.names), -k, -place, k, name))
    return max(ranked)[-2:] if ranked else None


def _names_people(cells: Sequence[str], ids: set[str]) -> bool:
    """Whether a column names people: nearly all cells are ids, and few are the same one again."""
    known = [cell for cell in cells if cell in ids]
    enough = len(known) > 1 and len(known) >= KNOWN * len(cells)
    return enough and len(set(known)) >= DIFFERENT * len(known)


def _mutual(people: Table, ids: str, name: str) -> bool:
    """Whether a column names everybody's partner: nearly all who are named name the other."""
    if name in people.mixed or not _names_people(_cells(people, name), set(_cells(people, ids))):
        return False
    listed = zip(people.listed(ids), people.listed(name), strict=True)
    other = {written(me): written(one) for me, one in listed if one is not None}
    named = [me for me, one in other.items() if one in other]
    return len(named) > 1 and sum(other[other[me]] == me for me in named) >= KNOWN * len(named)


def _cells(table: Table, name: str) -> list[str]:
    """What stands in a column, as text; nothing for its blank cells."""
    if name in table.mixed:
        return []
    return [str(written(cell)) for cell in table.listed(name) if cell is not None]


def _codes(table: Table, name: str) -> Found:
    """Values that probably mean that there is no answer, with the first place."""
    shown = [written(value) for value in table[name].tolist()]
    for value, count in suspects(table[name]):
        where = table.at(shown.index(value), name)
        yield "code", {"column": name, "value": value, "count": count, "where": where}


def words_among_numbers(table: Table, name: str) -> Iterator[str]:
    """A few cells of text in a column of numbers."""
    column = table[name]
    if column.dtype.kind != "O":
        return
    known = {suspect.value for suspect in suspects(column)}
    cells = [(row, v) for row, v in enumerate(column.tolist()) if v is not None]
    odd = [(row, v) for row, v in cells if number(v) is None and number(v, ",") is None]
    if odd and len(odd) <= 0.2 * len(cells):
        rest = [(row, v) for row, v in odd if v not in known]
        for row, value in rest[:EACH]:
            yield f"column {name!r} holds numbers, and {value!r} in {table.at(row, name)}"


def spellings(table: Table, name: str) -> Found:
    """One answer in several spellings."""
    counts = Counter(table.as_levels(name).tolist())
    for alike in variants(table.as_levels(name)):
        listed = ", ".join(f"{value!r} ({counts[value]})" for value in alike)
        most = max(alike, key=counts.__getitem__)
        first = next(value for value in alike if value != most)
        yield "spelled", {"column": name, "listed": listed, "first": first, "most": most}


def remarks(table: Table, name: str) -> Found:
    """What makes a column of little use."""
    gone = missing(table[name])
    shown = [str(written(value)) for value in table[name][~gone].tolist()]
    counts = Counter(shown)
    values: dict[str, Any] = {"column": name, "blank": int(gone.sum()), "rows": len(gone)}
    if np.mean(gone) >= MOSTLY_MISSING:
        yield "blank", values
    if not counts:
        return
    value, most = counts.most_common(1)[0]
    values |= {"value": value, "most": most, "answers": len(shown)}
    if len(counts) == 1 and len(shown) > 1:
        yield "constant", values
    elif len(shown) > 1 and most >= NEAR_CONSTANT * len(shown):
        yield "nearly constant", values
    if len(counts) >= NEAR_ID * len(shown) and len(counts) > MOST_LEVELS:
        yield "different", values


def repeats(values: Iterable[Any]) -> Iterator[int]:
    """The places of values that came before."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen and value is not None:
            yield place
        seen.add(value)
