"""Columns as CSV files."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.tables.frames import missing


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Columns as UTF-8 CSV; missing answers are empty cells."""
    arrays = [np.asarray(column) for column in columns.values()]
    listed = [
        ["" if absent else value for value, absent in zip(a.tolist(), missing(a), strict=True)]
        for a in arrays
    ]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)  # ends lines by \r\n, else a \r inside a cell stays unquoted
        writer.writerow(columns)
        writer.writerows(zip(*listed, strict=True))
