"""Text with separators as a grid: which separator and quotes, found by what makes even rows.

Each candidate reads the whole text. The one under which most rows have the same number of cells
wins, then the one that leaves fewest other separators inside cells. Rows that still do not fit are
refused with their line: a cell too many or too few means that answers moved to another question.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.tables.cells import Cell
from mlestruct.tables.frames import missing
from mlestruct.tables.grids import Grid

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
STRONG = frozenset(";\t|")  # seldom within a cell; a comma often is
SAMPLE = 100_000  # characters that dialects are compared on
QUOTE = '"'
ENDS = re.compile(r'[,;|"\s]')


class Dialect(NamedTuple):
    """How cells are parted and quoted."""

    separator: str
    quote: str = '"'
    padded: bool = False  # blanks between a separator and a quote
    escaped: bool = False  # quotes inside quotes by a backslash

    @property
    def words(self) -> str:
        found = SEPARATORS.get(self.separator, repr(self.separator))
        found += " and single quotes" if self.quote == "'" else ""
        return found + (", quotes after a backslash" if self.escaped else "")


def grid(text: str, path: str, words: str, separator: str | None = None) -> Grid:
    """The rows of a text, with the line that each begins in."""
    first = 1
    head, _, rest = text.partition("\n")
    if separator is None and head.strip().lower().startswith("sep=") and len(head.strip()) == 5:
        separator, text, first = head.strip()[4], rest, 2  # Excel's own way to say it
    dialect = _dialect(text, separator)
    try:
        found = list(_rows(text, dialect))
    except csv.Error as error:
        line = _broken(text, dialect) + first - 1
        raise ValueError(
            f"{path}, line {line}: {_in_words(error)}; put the quotes of that line right"
        ) from error
    rows: list[list[Cell]] = [list(row) for _, row in found]
    lines = [line + first - 1 for line, _ in found]
    parted = dialect.words if max((len(row) for row in rows), default=1) > 1 else "one column"
    if separator is None and parted == "one column" and _wrapped(rows):
        raise ValueError(
            f"{path}, line {first}: every line is one cell, in quotes with the separators in it; "
            "take the quotes around the lines away"
        )
    return Grid(rows, lines, path, None, (words, parted))


def _wrapped(rows: list[list[Cell]]) -> bool:
    """Whether all cells of a single column hold as many separators, two at least."""
    cells = [str(cell) for row in rows for cell in row if cell]
    counts = ({cell.count(sign) for cell in cells} for sign in STRONG | {","})
    return len(cells) > 1 and any(len(each) == 1 and min(each) > 1 for each in counts)


def _dialect(text: str, separator: str | None) -> Dialect:
    """The dialect whose rows are most even; commas for a single column."""
    sample = text if len(text) <= SAMPLE else text[: text.rfind("\n", 0, SAMPLE) + 1] or text
    given = [separator] if separator else list(SEPARATORS)
    quotes = ['"', "'"] if "'" in sample else ['"']
    escapes = [False, True] if '\\"' in sample else [False]
    tried = [
        (_evenness(sample, dialect), -number, dialect)
        for number, dialect in enumerate(
            Dialect(s, q, p, e) for e, p, q, s in product(escapes, (False, True), quotes, given)
        )
    ]
    best, _, dialect = max(tried, key=lambda t: t[:2])
    return dialect if best > (0.0, 0.0, 0) or separator else Dialect(",")


def _evenness(sample: str, dialect: Dialect) -> tuple[float, float, int]:
    """(share of rows of the usual width, share of cells without other separators, the width)."""
    try:
        rows = [row for _, row in _rows(sample, dialect) if any(row)]
    except csv.Error:
        return 0.0, 0.0, 0
    widths = Counter(len(row) for row in rows if len(row) > 1)
    if not widths:
        return 0.0, 0.0, 0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    cells = [cell for row in rows if len(row) == width for cell in row]
    others = (STRONG | {dialect.quote}) - {dialect.separator}
    clean = sum(not others & set(cell) and not _quoted(cell) for cell in cells) / len(cells)
    return round(count / len(rows), 2), clean, width


def _quoted(cell: str) -> bool:
    bare = cell.strip()
    return len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\""


def _rows(text: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """(line that it begins in, cells) of every row."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.separator,
        quotechar=dialect.quote,
        skipinitialspace=dialect.padded,
        doublequote=not dialect.escaped,
        escapechar="\\" if dialect.escaped else None,
        strict=True,
    )
    line = 1
    for row in reader:
        yield line, row
        line = reader.line_num + 1


def _broken(text: str, dialect: Dialect) -> int:
    """The line in which the row begins that cannot be read."""
    line = 1
    try:
        for start, row in _rows(text, dialect):
            line = start + max(1, sum(cell.count("\n") for cell in row) + 1)
    except csv.Error:
        pass
    return line


def _in_words(error: csv.Error) -> str:
    if "unexpected end" in str(error):
        return "a quote is opened here and never closed"
    if "expected after" in str(error):
        return "a quote ends within a cell"
    if "field limit" in str(error):
        return f"a cell of more than {csv.field_size_limit()} signs"
    return str(error)


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
