"""Cells as they are written, the numbers that they spell, and the grids that hold them.

Nothing is read that is not sure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Decimal = Literal[".", ","]
Cell = str | int | float | None
"""Text as written, a number that a workbook or frame holds as one, or None for a blank cell."""

INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"  # zero-width characters, which str.strip() leaves
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
SIGN = re.compile("[\u2212\u2012\u2013](?=[0-9])")  # minus signs and dashes in front of a digit
APART = "'\u2019\u00a0\u2009\u202f"  # part thousands and never are decimal marks: 1'234.5
NUMBERS = {  # 1234,5e6 or ,5; 1.234,5, which has both marks, so it can be read in one way; 1'234,5
    mark: re.compile(
        rf"-?(?:(?:0|[1-9][0-9]{{0,14}})(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][-+]?[0-9]+)?"
        rf"|-?[1-9][0-9]{{0,2}}(?:[{other}][0-9]{{3}})+[{mark}][0-9]+"
        rf"|-?[1-9][0-9]{{0,2}}([{APART}])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:[{mark}][0-9]+)?"
    )
    for mark, other in (".,", ",.")
}
THOUSANDS = {mark: re.compile(rf"-?[1-9][0-9]{{0,2}}(?:[{mark}][0-9]{{3}})+") for mark in ".,"}


def stripped(text: str) -> str:
    """Without the blanks, of any kind, at both ends."""
    text = text.strip()
    while text and (text[0] in INVISIBLE or text[-1] in INVISIBLE):
        text = text.strip(INVISIBLE).strip()
    return text


def written(cell: Cell) -> str | None:
    """What a cell shows: 7 and 7.0 are both "7"."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return None if cell is None else str(cell)


def whole(cell: Cell) -> int | None:
    """A whole number that reads back as written; ``007``, ``1.0`` and ``١٢`` are none."""
    if isinstance(cell, str):
        plain = WHOLE.fullmatch(cell) and cell != "-0" and abs(int(cell)) < 1 << 63
        return int(cell) if plain else None
    return cell if isinstance(cell, int) else None


def number(cell: Cell, decimal: Decimal = ".") -> float | None:
    """The number that a cell spells in ASCII digits, with this decimal mark; else None.

    Leading zeros and more than fifteen digits make a name, such as 007 or an account's number.
    """
    if not isinstance(cell, str):
        return None if cell is None else float(cell)
    plain = SIGN.sub("-", cell, count=1)
    if not NUMBERS[decimal].fullmatch(plain):
        return None
    kept = re.sub(f"[{APART}{',' if decimal == '.' else '.'}]", "", plain)
    return float(kept.replace(",", "."))


def is_number(cell: Cell) -> bool:
    """Whether a cell spells a number with either decimal mark."""
    return number(cell) is not None or number(cell, ",") is not None


def spelled(cells: Sequence[Cell], decimal: Decimal) -> list[Any] | None:
    """The numbers of a column, None for its blank cells; None if a cell is no number."""
    spellings = set(cells) - {None}
    for read in (whole, lambda cell: number(cell, decimal)):
        found: dict[Cell, Any] = {cell: read(cell) for cell in spellings}
        if None not in found.values():
            found[None] = None
            return [found[cell] for cell in cells]
    return None


def marks(cells: Sequence[Cell]) -> set[Decimal]:
    """The decimal marks with which every cell of a column is a number."""
    shapes: tuple[Decimal, ...] = (".", ",")
    return {mark for mark in shapes if spelled(cells, mark) is not None}


def unsure(cells: Sequence[Cell], mark: Decimal) -> bool:
    """Whether all cells with this mark could as well be in thousands: 1,234 but not 1,23."""
    marked = [cell for cell in cells if isinstance(cell, str) and mark in cell]
    return bool(marked) and all(map(THOUSANDS[mark].fullmatch, marked))


@dataclass(frozen=True)
class Places:
    """Where rows and columns of a table stand in its file, for messages a person can follow.

    ``lines`` count from 1 as an editor or a spreadsheet does; ``columns`` are a sheet's letters
    by name, and empty for text files.
    """

    path: str
    lines: NDArray[np.int64] = field(repr=False)
    sheet: str | None = None
    columns: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def file(self) -> str:
        return self.path if self.sheet is None else f"{self.path}, sheet {self.sheet!r}"

    def at(self, row: int, column: str | None = None) -> str:
        """``people.csv, line 12`` or ``people.xlsx, sheet 'Students', cell D12``."""
        line = int(self.lines[row])
        if self.sheet is None:
            return f"{self.path}, line {line}"
        letter = self.columns.get(column or "")
        return f"{self.file}, cell {letter}{line}" if letter else f"{self.file}, row {line}"


@dataclass(frozen=True)
class Grid:
    """Rows of cells (None: blank) with their lines in the file, and in words how they were read."""

    rows: list[list[Cell]]
    lines: list[int]
    path: str
    sheet: str | None = None
    said: tuple[str, ...] = ()
    blanks: tuple[tuple[int, int], ...] = ()  # (row, column) of cells that lost blanks

    def cell(self, row: int, column: int) -> str:
        """Where a cell stands."""
        if self.sheet is None:
            return f"{self.path}, line {self.lines[row]}"
        return f"{self.path}, sheet {self.sheet!r}, cell {letters(column)}{self.lines[row]}"

    @property
    def file(self) -> str:
        return self.path if self.sheet is None else f"{self.path}, sheet {self.sheet!r}"

    def stripped(self) -> Grid:
        """Without blanks around text, and with letters in one piece; what changed is kept."""
        rows: list[list[Cell]] = []
        lost: list[tuple[int, int]] = []
        joined = 0
        for number, row in enumerate(self.rows):
            whole = [unicodedata.normalize("NFC", c) if isinstance(c, str) else c for c in row]
            joined += sum(a != b for a, b in zip(row, whole, strict=True))
            bare = [stripped(c) if isinstance(c, str) else c for c in whole]
            lost += [(number, k) for k, cell in enumerate(bare) if cell != whole[k]]
            rows.append([None if cell == "" else cell for cell in bare])
        more = (f"letters and their accents joined in {joined} cells",) if joined else ()
        return replace(self, rows=rows, blanks=tuple(lost), said=(*self.said, *more))


def letters(column: int) -> str:
    """A sheet's name for its column: 0 is A, 26 is AA."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(column + 1))
