"""What stands in the columns of a table, in a line each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlestruct.roommates.cells import written
from mlestruct.roommates.frames import Column, Table, missing

KINDS = {"i": "whole numbers", "f": "numbers", "b": "yes/no", "O": "text"}
SHOWN = 5  # different values of a column


class Surveyed(NamedTuple):
    """One column: its type, gaps, different values, and the first and last of them."""

    column: str
    type: str
    missing: int
    different: int
    values: str


def survey(table: Table) -> list[Surveyed]:
    """Every column in the table's order."""
    return [_surveyed(name, column) for name, column in table.columns.items()]


def _surveyed(name: str, column: Column) -> Surveyed:
    gone = missing(column)
    present = column[~gone]
    seen = np.unique(present.astype(str) if present.dtype.kind == "O" else present)
    return Surveyed(name, KINDS[column.dtype.kind], int(gone.sum()), len(seen), _span(seen))


def _span(seen: Column) -> str:
    """All of few values, else the first and the last."""
    told = [" ".join(str(written(v)).split()) for v in seen.tolist()]
    words = [word if len(word) <= 16 else f"{word[:15]}…" for word in told]
    return ", ".join(words) if len(words) <= SHOWN else f"{words[0]} … {words[-1]}"
