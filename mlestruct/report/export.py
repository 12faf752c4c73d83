"""CSV files that a spreadsheet opens without running them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mlestruct.tables import write_csv

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_csv(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]]) -> None:
    """Text that a spreadsheet would read as a formula gets an apostrophe in front.

    That is text that begins with one of = + - @, a tab or a carriage return; numbers stay numbers.
    """
    write_csv(path, {guarded(name): [guarded(v) for v in c] for name, c in columns.items()})


def guarded(value: Any) -> Any:
    """The value, or its text behind an apostrophe."""
    risky = isinstance(value, str) and value.startswith(FORMULA)
    return f"'{value}" if risky else value
