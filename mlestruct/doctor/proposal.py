"""Which column holds the ids, and which says who shares: a proposal where nobody has said so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mlestruct.tables import Table
from mlestruct.tables.cells import written

IDS = re.compile(
    r"id|nr\.?|no\.?|code|kennung|name|person|people|student(?:in)?|resident|bewohner(?:in)?|"
    r"(?:.*[ _.-])?(?:id|nr\.?|no\.?|number|code)|.*nummer|matrikel.*"
)
ROOMS = re.compile(r"(?:.*[ _.-])?(?:rooms?|zimmer|raum|apartment|wohnung)(?:[ _.-]?(?:nr|no)\.?)?")
KNOWN, DIFFERENT = 0.8, 0.5  # shares of cells that are ids, and that are not the same id again


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
    for number, table in enumerate(tables):
        if number != people:
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
    """(table, column) of the ids: all there, all different, named so or met in other tables."""
    ranked = []
    for number, table in enumerate(tables):
        for place, name in enumerate(table.names):
            cells = _cells(table, name)
            unique = len(set(cells)) == len(cells) == len(table) > 1
            if name == told or (told is None and unique):
                others = [t for k, t in enumerate(tables) if k != number]
                ids = set(cells)
                met = sum(_names_people(_cells(t, other), ids) for t in others for other in t.names)
                named = IDS.fullmatch(name.casefold()) is not None
                if name == told or named or met:
                    ranked.append((met, named, len(table.names), -number, -place, number, name))
    return max(ranked)[-2:] if ranked else None


def _names_people(cells: Sequence[str], ids: set[str], different: float = DIFFERENT) -> bool:
    """Whether a column names people: nearly all cells are ids, and few are the same one again."""
    known = [cell for cell in cells if cell in ids]
    enough = len(known) > 1 and len(known) >= KNOWN * len(cells)
    return enough and len(set(known)) >= different * len(known)


def _cells(table: Table, name: str) -> list[str]:
    """What stands in a column, as text; nothing for its blank cells."""
    return [str(written(cell)) for cell in table.listed(name) if cell is not None]
