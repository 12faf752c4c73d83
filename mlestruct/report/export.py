"""CSV files that a spreadsheet opens without running them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.tables import Column, write_csv

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # as OWASP lists them

SEPARATORS = ";|\t\r\n"
INSIDE = re.compile(
    rf"(?s)(?<=.)([{SEPARATORS}]\s*[\"']*)(?=[{re.escape(''.join(FORMULA[:4] + FORMULA[7:]))}])"
)


def export_csv(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Text that a spreadsheet would read as a formula gets an apostrophe in front.

    That is text that begins with one of = + - @ (of full width too), a tab or the end of a line, or
    would do so behind one of its own separators where a spreadsheet splits cells there; numbers
    stay numbers. What is exported is about people, so nobody but its owner may read the file.
    """
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    columns = {guarded(name): _guarded(array) for name, array in arrays.items()}
    write_csv(path, columns, private=True)


def guarded(value: Any) -> Any:
    """The value, or its text behind an apostrophe."""
    if not isinstance(value, str):
        return value
    value = INSIDE.sub(r"\1'", value)
    return f"'{value}" if value.startswith(FORMULA) else value


def _guarded(column: Column) -> Column:
    if column.dtype.kind not in "OU":
        return column
    return np.array([guarded(value) for value in column.tolist()], dtype=object)
