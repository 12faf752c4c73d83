"""Where something stands that is wrong: all of it in one message, by line, cell and person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlestruct.tables import Table

SHOWN = 20  # faults in one message
EACH = 5  # of one kind


def refuse(faults: Iterable[str]) -> None:
    """Nothing for no faults; else a ValueError that lists them."""
    listed = list(faults)
    if len(listed) == 1:
        raise ValueError(listed[0])
    if listed:
        more = [f"and {len(listed) - SHOWN} more"] if len(listed) > SHOWN else []
        head = f"{len(listed)} faults:"
        raise ValueError("\n  ".join([head, *listed[:SHOWN], *more]))


def some(faults: Iterable[str]) -> list[str]:
    """The first few of one kind, and how many more."""
    listed = list(faults)
    more = [f"… and {len(listed) - EACH} more such rows"] if len(listed) > EACH else []
    return [*listed[:EACH], *more]


def person(table: Table, ids: Sequence[Any], row: int, column: str) -> str:
    """``person 7``, with the cell where the table comes from a file."""
    where = "" if table.places is None else f" ({table.at(row, column)})"
    return f"person {ids[row]!r}{where}"
