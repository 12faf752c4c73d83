"""What each column is probably for, what is odd in it, and cleaned copies of tables."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlestruct.roommates.cells import number, written
from mlestruct.roommates.columns import EACH, MOST_LEVELS, suspects, variants
from mlestruct.roommates.frames import Column, Columns, Table, bare, missing, objects
from mlestruct.roommates.leaks import Agreement, Leak

IDS = re.compile(
    r"id|nr\.?|no\.?|code|kennung|name|person|people|student(?:in)?|resident|bewohner(?:in)?|"
    r"(?:.*[ _.-])?(?:id|nr\.?|no\.?|number|code)|.*nummer|matrikel.*"
)
ROOMS = re.compile(r"(?:.*[ _.-])?(?:rooms?|zimmer|raum|apartment|wohnung)(?:[ _.-]?(?:nr|no)\.?)?")
KNOWN, DIFFERENT = 0.8, 0.5  # shares of cells that are ids, and that are not the same id again
NEAR_CONSTANT, MOSTLY_MISSING, NEAR_ID = 0.95, 0.5, 0.9
NEARLY = 0.9  # share of rows with an id of their own, where somebody is listed twice


class Who(NamedTuple):
    """The ids' column, and one of three ways to say who shares; empty where none was found."""

    id: str
    partners: tuple[str, ...] = ()
    room: tuple[str, ...] = ()
    partner: tuple[str, ...] = ()


def who_is_who(tables: Sequence[Table], id_column: str | None = None) -> Who | None:
    """By names and by values: cells of other tables that are ids of people; None without ids."""
    found = _ids(tables, id_column)
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
    partner = tuple(n for n in own if _names_people(_cells(tables[people], n), ids, 1.0))
    rooms = tuple(n for n in own if ROOMS.fullmatch(n.casefold()))
    return Who(name, partner=partner) if partner else Who(name, room=rooms[:1])


def _ids(tables: Sequence[Table], told: str | None) -> tuple[int, str] | None:
    """(table, column) of the ids: nearly all different, named so or met in other tables.

    Somebody listed twice, or without an id, is a fault to be told, and no other column is better.
    """
    ranked = []
    for k, table in enumerate(tables):
        for place, name in enumerate(table.names):
            cells = _cells(table, name)
            different = len(set(cells)) / max(len(table), 2)
            if name == told or (told is None and different >= NEARLY):
                others = [t for other, t in enumerate(tables) if other != k]
                ids = set(cells)
                met = sum(_names_people(_cells(t, other), ids) for t in others for other in t.names)
                named = IDS.fullmatch(name.casefold()) is not None
                if name == told or named or met:
                    whole = different == 1.0
                    ranked.append((met, whole, named, len(table.names), -k, -place, k, name))
    return max(ranked)[-2:] if ranked else None


def _names_people(cells: Sequence[str], ids: set[str], different: float = DIFFERENT) -> bool:
    """Whether a column names people: nearly all cells are ids, and few are the same one again."""
    known = [cell for cell in cells if cell in ids]
    enough = len(known) > 1 and len(known) >= KNOWN * len(cells)
    return enough and len(set(known)) >= different * len(known)


def _cells(table: Table, name: str) -> list[str]:
    """What stands in a column, as text; nothing for its blank cells."""
    return [str(written(cell)) for cell in table.listed(name) if cell is not None]


FEW = 12  # answers that a question in words has at most
COHORTS = re.compile("year|cohort|class|intake|semester|term|jahr|jahrgang|kohorte|année|año")
GROUPS = re.compile("gender|sex|geschlecht|genre|sexo|house|haus|wing|building|gebäude")
ALMOST = 0.8  # share of numbers that makes other cells codes


def cohort_of(people: Table, taken: Collection[str]) -> str | None:
    """The first column that is called like a year or term."""
    return next(
        (n for n in people.names if n not in taken and COHORTS.fullmatch(n.casefold())), None
    )


def rule_of(found: Iterable[Leak]) -> Agreement | None:
    """The column in which most pairs agree where few would by chance: a rule, to all appearance.

    Of columns that say the same, the one that is called like a rule.
    """
    rules = [leak.agreed for leak in found if leak.rule and leak.agreed and leak.agreed.whole]

    def order(one: Agreement) -> tuple[float, bool]:
        return one.agree / one.pairs, GROUPS.fullmatch(one.column.casefold()) is not None

    return max(rules, key=order, default=None)


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


def roles_of_answers(
    people: Table, taken: Collection[str], found: Iterable[Leak]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Every other column's role, and its codes for no answer; what leaks is left out."""
    out = {leak.column for leak in found}
    roles, codes = {}, {}
    for name in people.names:
        if name not in taken:
            role, told = role_of(people[name])
            roles[name] = "ignore" if name in out else role
            if told and roles[name] != "ignore":
                codes[name] = told
    return roles, codes


def command(
    files: Sequence[str],
    people: Table,
    settings: Mapping[str, str | Sequence[str]],
    roles: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
) -> str:
    """The line to type: ``mlestruct roommates fit …``."""
    words = ["mlestruct", "roommates", "fit", *files]
    for name, told in settings.items():
        words += [f"--{name}", told if isinstance(told, str) else _joined(told)]
    for role in ("ordinal", "binary", "categorical"):
        mine = [n for n, r in roles.items() if r == role]
        words += [f"--{role}", _joined(_short(mine, people.names, roles))] if mine else []
    listed = [f"{name}={value}" for name, values in codes.items() for value in values]
    words += ["--no-answer", _joined(listed)] if listed else []
    gaps = any(missing(people[name]).any() for name, role in roles.items() if role != "ignore")
    words += ["--missing", "neutral"] if gaps or listed else []
    return " ".join(shlex.quote(word) for word in words)


def _joined(names: Sequence[str]) -> str:
    """Names with commas between, as the command line reads them."""
    marked = (name.replace('"', '""') for name in names)
    return ",".join(f'"{name}"' if set(name) & set(',"') else name for name in marked)


def _short(columns: Sequence[str], every: Sequence[str], roles: Mapping[str, str]) -> list[str]:
    """Names, with a pattern for those that only differ in a number: q1, q2, q3 are ``q*``."""
    out: list[str] = []
    for name in columns:
        stem = re.sub(r"[0-9]+$", "", name)
        fits = [n for n in every if n.startswith(stem)]
        whole = stem and len(fits) > 2 and set(fits) <= set(columns) and not set(stem) & set("*?[]")
        if (word := f"{stem}*" if whole else name) not in out:
            out.append(word)
    return out


class Change(NamedTuple):
    """One cell, or one row where there is no column: where it stood, and what became of it."""

    where: str
    column: str | None
    before: str | None
    after: str | None
    why: str


def cleaned(table: Table, trust: Collection[str] = ()) -> tuple[Columns, list[Change]]:
    """The columns without codes for no answer, with one spelling each, and no row twice.

    Nothing else is touched: ids, groups that contradict each other and unknown partners are for
    somebody who knows these people. Columns in ``trust`` stay as they are.
    """
    columns = {name: _shown(table, name) for name in table.names}
    changes: list[Change] = []
    for name in table.names:
        if name not in trust:
            columns[name], found = _column(table, name)
            changes += found
    listed = [[written(v) for v in column.tolist()] for column in columns.values()]
    again = set(repeats(zip(*listed, strict=True)))
    changes += [Change(table.at(k), None, None, None, "repeats a row") for k in sorted(again)]
    kept = np.array([k for k in range(len(table)) if k not in again], dtype=np.int64)
    return {name: column[kept] for name, column in columns.items()}, changes


def _column(table: Table, name: str) -> tuple[Any, list[Change]]:
    """One column's cells, and what was changed in them."""
    codes = {suspect.value for suspect in suspects(table[name])}
    shown = _shown(table, name)
    instead = _spellings(table, name)
    out = np.array(shown, dtype=object)
    changes = []
    for row, cell in enumerate(shown.tolist()):
        text = written(cell)
        if text in codes:
            out[row] = None
            changes.append(Change(table.at(row, name), name, text, None, "no answer"))
        elif text in instead:
            out[row] = instead[text]
            why = "the spelling of most"
            changes.append(Change(table.at(row, name), name, text, instead[text], why))
    return (out if changes else shown), changes


def _shown(table: Table, name: str) -> Column:
    """A column as it is written; numbers with a decimal point."""
    column, cells = table[name], table.as_written(name)
    if column.dtype.kind != "f":
        return cells
    return objects([c.replace(",", ".") if isinstance(c, str) else c for c in cells.tolist()])


def _spellings(table: Table, name: str) -> dict[str, str]:
    """Each rarer spelling of an answer with the most frequent one."""
    column = bare(table[name])
    counts = Counter(column.tolist())
    found: dict[str, str] = {}
    for alike in variants(table.as_levels(name)):
        best = max(alike, key=lambda value: (counts[value], value))
        found |= {value: best for value in alike if value != best}
    return found


def codes(table: Table, name: str) -> Iterator[str]:
    """Values that probably mean that there is no answer, with the first places."""
    shown = [written(value) for value in table[name].tolist()]
    for suspect in suspects(table[name]):
        rows = [row for row, value in enumerate(shown) if value == suspect.value]
        where = ", ".join(table.at(row, name) for row in rows[:1])
        yield (
            f"column {name!r}: {suspect.value!r}, {suspect.given} times, the first in {where}, "
            f"looks like a code for no answer; if it is, say no_answer={name}={suspect.value}, "
            f"else trust={name}"
        )


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


def spellings(table: Table, name: str) -> Iterator[str]:
    """One answer in several spellings."""
    counts = Counter(table.as_levels(name).tolist())
    for alike in variants(table.as_levels(name)):
        listed = ", ".join(f"{value!r} ({counts[value]})" for value in alike)
        yield f"column {name!r}: {listed} differ in case or signs only, and count as different"


def remarks(table: Table, name: str) -> Iterator[str]:
    """What makes a column of little use."""
    gone = missing(table[name])
    shown = [str(written(value)) for value in table[name][~gone].tolist()]
    counts = Counter(shown)
    if np.mean(gone) >= MOSTLY_MISSING:
        yield f"column {name!r}: {int(gone.sum())} of {len(gone)} cells are blank"
    if not counts:
        return
    value, most = counts.most_common(1)[0]
    if len(counts) == 1 and len(shown) > 1:
        yield f"column {name!r} is {value!r} for all {most} who answered: it tells nobody apart"
    elif len(shown) > 1 and most >= NEAR_CONSTANT * len(shown):
        yield f"column {name!r} is {value!r} for {most} of {len(shown)}: it tells few people apart"
    if len(counts) >= NEAR_ID * len(shown) and len(counts) > MOST_LEVELS:
        yield f"column {name!r} is different for nearly everybody, as an id or a free text is"


def repeats(values: Iterable[Any]) -> Iterator[int]:
    """The places of values that came before."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen and value is not None:
            yield place
        seen.add(value)
