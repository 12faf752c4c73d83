"""Files as tables: CSV of any separator and encoding, Excel workbooks, Parquet.

How a file was read is kept in ``Table.said``, and every part of it can be told instead. What may
mean two things is left as text, or refused with its place.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlestruct.files import content
from mlestruct.tables import separated, workbooks
from mlestruct.tables.cells import Cell, Decimal, written
from mlestruct.tables.frames import (
    Table,
    checked,
    evident,
    of_columns,
    typed,
)
from mlestruct.tables.grids import Grid, Places, letters
from mlestruct.tables.headings import Headed, headed
from mlestruct.tables.separated import decoded

FilePath = str | os.PathLike[str]


def read(
    path: FilePath,
    wanted: Collection[str] = (),
    *,
    sheet: str | None = None,
    separator: str | None = None,
    decimal: Decimal | None = None,
    encoding: str | None = None,
    header: int | None = None,
) -> Table:
    """A CSV file, a workbook (``book.xlsx``, or ``book.xlsx#Sheet``) or a Parquet file.

    Separator, quotes, encoding, decimal mark and the line of names are found, unless they are
    told: ``header`` is the line of names, counted from 1. Blanks around cells are taken off, blank
    cells are missing, and a column is one of numbers only if every other cell is a number; 007 and
    numbers of more than fifteen digits are text. Workbooks need the extra ``mlestruct[office]``.
    """
    place, sheet = _place(path, sheet)
    usual: Decimal | None = None
    data, name = content(place, "table"), os.fspath(place)
    if data.startswith(b"PAR1"):
        return _parquet(data, name)
    if workbooks.is_packed(data):
        grid = workbooks.grid(data, name, sheet, wanted)
    elif sheet is not None:
        raise ValueError(f"{name} is no workbook, so it has no sheet {sheet!r}")
    else:
        text = decoded(data, name, encoding)
        grid = separated.grid(text.text, name, text.words, separator)
        usual = None if "semicolons" in grid.said[1] else "."
    return _table(grid, wanted, header, decimal, usual)


def sheets(path: FilePath) -> list[str]:
    """The sheets of a workbook that may hold a table; none for other files."""
    data = content(path, "table")
    return workbooks.sheets(data, os.fspath(path)) if workbooks.is_packed(data) else []


def _place(path: FilePath, sheet: str | None) -> tuple[Path, str | None]:
    """The file, and the sheet that ``file#sheet`` names."""
    given = os.fspath(path)
    before, mark, after = given.rpartition("#")
    if mark and sheet is None and not Path(given).exists() and Path(before).exists():
        return Path(before), after
    return Path(given), sheet


def _table(
    grid: Grid,
    wanted: Collection[str],
    header: int | None,
    decimal: Decimal | None,
    usual: Decimal | None,
) -> Table:
    grid = grid.stripped()
    found = headed(grid, wanted, header)
    cells = {
        name: [grid.rows[r][k] if k < len(grid.rows[r]) else None for r in found.rows]
        for name, k in zip(found.names, found.columns, strict=True)
    }
    shown = decimal or evident(cells.values())
    read = {name: typed(name, column, shown or usual) for name, column in cells.items()}
    said = [*grid.said, *found.said, *_stripping(grid, found)]
    if decimal or shown == ",":
        said.append("decimal commas" if shown == "," else "decimal points")
    said += [doubt for _, doubt in read.values() if doubt]
    lines = np.array([grid.lines[r] for r in found.rows], dtype=np.int64)
    sheet = dict(zip(found.names, map(letters, found.columns), strict=True)) if grid.sheet else {}
    return Table(
        {name: column for name, (column, _) in read.items()},
        dict,
        {name: _as_written(column) for name, column in cells.items()},
        Places(grid.path, lines, grid.sheet, sheet),
        shown or usual,
        (f"{grid.path}: {len(lines)} rows; {', '.join(said)}",),
    )


def _stripping(grid: Grid, found: Headed) -> list[str]:
    """How many cells of the data lost blanks, and where the first of them is."""
    rows, columns = set(found.rows), set(found.columns)
    lost = [(row, k) for row, k in grid.blanks if row in rows and k in columns]
    if not lost:
        return []
    row, k = lost[0]
    place = f"{letters(k)}{grid.lines[row]}" if grid.sheet else f"in line {grid.lines[row]}"
    return [f"blanks taken off {len(lost)} cell{'s' * (len(lost) > 1)} (the first {place})"]


def _as_written(cells: Sequence[Cell]) -> Any:
    column = np.empty(len(cells), dtype=object)
    column[:] = [written(cell) for cell in cells]
    return column


def _parquet(data: bytes, path: str) -> Table:
    """Columns with the types that the file gives them."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(
            f"{path} is a Parquet file, which needs pyarrow: pip install pyarrow, or save the "
            "table as CSV in UTF-8"
        ) from error
    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        if file.metadata.num_rows * file.metadata.num_columns > separated.CELLS:
            raise ValueError(f"{path} has more than {separated.CELLS:,} cells; is it a table?")
        found = file.read().to_pydict()
    except pa.ArrowException as error:
        raise ValueError(f"{path} does not open as a Parquet file: {error}") from error
    made = checked(of_columns(found), dict)
    lines = np.arange(1, len(made) + 1)
    return Table(made.columns, dict, None, Places(path, lines), None, (f"{path}: Parquet",))
