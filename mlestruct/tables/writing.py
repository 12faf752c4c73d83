"""Columns as CSV files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.tables.frames import missing

QUOTE = '"'
ENDS = re.compile(r'[,;|"\s]')


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Columns as UTF-8 CSV; missing answers are empty cells."""
    arrays = [np.asarray(column) for column in columns.values()]
    listed = [
        ["" if absent else value for value, absent in zip(a.tolist(), missing(a), strict=True)]
        for a in arrays
    ]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        for row in ([*columns], *zip(*listed, strict=True)):
            file.write(",".join(map(_cell, row)) + "\r\n")


def _cell(value: object) -> str:
    """Quoted wherever some program may see an end of the cell: commas are not the only ones."""
    text = repr(value) if isinstance(value, float) else str(value)
    return f'"{text.replace(QUOTE, QUOTE + QUOTE)}"' if ENDS.search(text) else text
