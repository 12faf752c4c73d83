"""A cleaned copy of a table, and every change that made it one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from mlestruct.doctor.rows import repeats
from mlestruct.tables import Column, Columns, Table
from mlestruct.tables.cells import written
from mlestruct.tables.frames import bare
from mlestruct.tables.suspicion import suspects, variants


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
    out = np.array(cells, dtype=object)
    out[:] = [c.replace(",", ".") if isinstance(c, str) else c for c in cells.tolist()]
    return out


def _spellings(table: Table, name: str) -> dict[str, str]:
    """Each rarer spelling of an answer with the most frequent one."""
    column = bare(table[name])
    counts = Counter(column.tolist())
    found: dict[str, str] = {}
    for alike in variants(table.as_levels(name)):
        best = max(alike, key=lambda value: (counts[value], value))
        found |= {value: best for value in alike if value != best}
    return found
