"""A sheet or file before it is a table: rows of cells, and where each of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mlestruct.tables.cells import Cell, composed, stripped


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
            whole = [composed(c) if isinstance(c, str) else c for c in row]
            joined += sum(a != b for a, b in zip(row, whole, strict=True))
            bare = [stripped(c) if isinstance(c, str) else c for c in whole]
            lost += [
                (number, k) for k, (a, b) in enumerate(zip(whole, bare, strict=True)) if a != b
            ]
            rows.append([None if cell == "" else cell for cell in bare])
        more = (f"letters and their accents joined in {joined} cells",) if joined else ()
        return replace(self, rows=rows, blanks=tuple(lost), said=(*self.said, *more))


def letters(column: int) -> str:
    """A sheet's name for its column: 0 is A, 26 is AA."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def filled(row: Sequence[Cell]) -> int:
    """How many cells are not blank."""
    return sum(cell is not None for cell in row)
