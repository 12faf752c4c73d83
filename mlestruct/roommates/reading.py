"""Files as tables: CSV of any separator and encoding, Excel workbooks.

How a file was read is kept in ``Table.said``, and every part of it can be told instead. What may
mean two things is left as text, or refused with its place. A line is the one of names if it is
about as full as the rows below it and does not read like them: where columns hold numbers, it
holds words.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from mlestruct.roommates import separated, workbooks
from mlestruct.roommates.cells import Cell, Decimal, Grid, Places, filled, letters, number, written
from mlestruct.roommates.frames import Table, evident, objects, typed
from mlestruct.roommates.separated import decoded
from mlestruct.storage.files import content

FULL = 0.6  # share of a usual row's cells that names fill
NUMERIC = 0.8  # share of numbers that makes a column one of numbers
DEEP = 30  # lines from the top among which names are looked for
ENOUGH = 200  # rows that tell a column of numbers
TOTALS = re.compile(
    r"(?:(?:zwischen|gesamt|end)?summen?|(?:ins)?gesamt|(?:grand |sub-?)?totals?|sum|anzahl|"
    r"durchschnitt|mittelwert|average|mean|ø|somme|suma|totale|totaal)[ :.=]*"
)
SHOWN = 5  # faults of one kind that a message lists


@dataclass(frozen=True)
class Headed:
    """Names with their columns in the grid, the rows that are data, and what was passed over."""

    names: list[str]
    columns: list[int]
    rows: list[int]
    said: tuple[str, ...]


def headed(grid: Grid, wanted: Collection[str] = (), line: int | None = None) -> Headed:
    """Names and data of a grid; ``wanted`` names decide where two lines could be the names.

    ``line`` is the line of names, where it is told. Nameless columns are named by their place,
    blank ones dropped; a ValueError lists all rows of another length.
    """
    full = [k for k, row in enumerate(grid.rows) if filled(row)]
    if not full:
        raise ValueError(f"{grid.file} is empty; expected a line of column names")
    top, above = _chosen(grid, full, wanted, line)
    rows, said = _data(grid, full, top, wanted if line is None else ())
    if above:
        said.insert(0, f"{above} line{'s' * (above > 1)} above it left out")
    if grid.sheet is None:
        _refuse_ragged(grid, rows, len(_trimmed(grid.rows[top])))
    used = {j for k in (top, *rows) for j, cell in enumerate(grid.rows[k]) if cell is not None}
    columns = sorted(used)
    names, more = _names(grid, top, columns)
    words = f"names in {'row' if grid.sheet else 'line'} {grid.lines[top]}"
    return Headed(names, columns, rows, (words, *said, *more))


def _chosen(
    grid: Grid, full: Sequence[int], wanted: Collection[str], line: int | None
) -> tuple[int, int]:
    """The row of names, and how many rows above it are titles."""
    if line is not None:
        top = next((k for k in full if grid.lines[k] == line), None)
        if top is None:
            raise ValueError(f"{grid.file}: line {line}, named as the line of names, is blank")
        return top, full.index(top)
    for k in full[:DEEP]:
        if wanted and set(wanted) <= set(map(_name, grid.rows[k])):
            k = _deepest(grid, full, k, wanted)
            return k, full.index(k)
    usual = median(filled(grid.rows[k]) for k in full[len(full) // 2 :])
    for place, k in enumerate(full[:DEEP]):
        if filled(grid.rows[k]) >= FULL * usual:
            below = full[place + 1 :]
            if _reads_as_data(grid, k, below):
                raise ValueError(
                    f"{grid.cell(k, 0)}: {_quoted(grid.rows[k])} looks like data; put a line of "
                    "column names above it"
                )
            deeper = below and _is_group_line(grid.rows[k], grid.rows[below[0]])
            return (below[0], place + 1) if deeper else (k, place)
    raise ValueError(f"{grid.file}: no line of column names was found; say which line has them")


def _deepest(grid: Grid, full: Sequence[int], top: int, wanted: Collection[str]) -> int:
    """The line below, where cells merged over both lines put the wanted names into it too."""
    below = next((k for k in full if k > top), None)
    if below is None or not set(wanted) <= set(map(_name, grid.rows[below])):
        return top
    return below if _is_group_line(grid.rows[top], grid.rows[below]) else top


def _is_group_line(row: Sequence[Cell], below: Sequence[Cell]) -> bool:
    """Whether a line with gaps stands over a fuller line of different words."""
    words = [cell for cell in below if cell is not None]
    fuller = len(words) > filled(row)
    return fuller and all(isinstance(c, str) and number(c) is None for c in words)


def _reads_as_data(grid: Grid, top: int, below: Sequence[int]) -> bool:
    """Whether every column of numbers has a number on top (a run such as 1, 2, 3 are names)."""
    row = grid.rows[top]
    heads = [_value(row, k) for k in _numeric(grid, below)]
    spelled = [number(head) for head in heads]
    if not heads or any(value is None for value in spelled):
        return False
    run = np.array([value for value in spelled if value is not None])
    counted = len(run) > 1 and bool((np.diff(run) == 1).all())
    return not (counted and len(heads) < filled(row))


def _numeric(grid: Grid, rows: Sequence[int]) -> list[int]:
    """The columns that hold numbers in most of these rows."""
    found, rows = [], rows[:ENOUGH]
    for k in range(max((len(grid.rows[r]) for r in rows), default=0)):
        cells = [c for r in rows if (c := _value(grid.rows[r], k)) is not None]
        spelled = sum(number(c) is not None or number(c, ",") is not None for c in cells)
        if cells and spelled >= NUMERIC * len(cells):
            found.append(k)
    return found


def _data(
    grid: Grid, full: Sequence[int], top: int, wanted: Collection[str]
) -> tuple[list[int], list[str]]:
    """The rows below the names, and what was passed over among them."""
    below = [k for k in full if k > top]
    said = []
    if below and _explains(grid, below):
        said.append(f"line {grid.lines[below[0]]} below it explains the names, left out")
        below = below[1:]
    again = [k for k in below if grid.rows[k] == grid.rows[top]]
    if again:
        listed = ", ".join(str(grid.lines[k]) for k in again[:SHOWN])
        said.append(f"names repeated in line {listed} left out")
    _refuse_totals(grid, below)
    last = below[-1] if below else top
    blank = sum(not filled(grid.rows[k]) for k in range(top + 1, last))
    if blank:
        said.append(f"{blank} blank line{'s' * (blank > 1)} left out")
    return sorted(set(below).difference(again)), said


def _refuse_totals(grid: Grid, below: Sequence[int]) -> None:
    """Lines of sums and means are no people: they begin with such a word, and have gaps."""
    usual = median(filled(grid.rows[k]) for k in below) if below else 0
    for k in below:
        row = grid.rows[k]
        place, first = next((j, c) for j, c in enumerate(row) if c is not None)
        if isinstance(first, str) and TOTALS.fullmatch(first.casefold()) and filled(row) < usual:
            raise ValueError(
                f"{grid.cell(k, place)}: {first!r} looks like a line of totals; delete that line, "
                "or fill its gaps if it is data"
            )


def _explains(grid: Grid, below: Sequence[int]) -> bool:
    """Whether the first row has different words wherever the rows under it have numbers."""
    columns = _numeric(grid, below[1:])
    cells = [_value(grid.rows[below[0]], k) for k in columns]
    words = [c for c in cells if c is not None and number(c) is None and number(c, ",") is None]
    return len(columns) > 1 and len(words) == len(columns) and len(set(words)) > 1


def _refuse_ragged(grid: Grid, rows: Sequence[int], width: int) -> None:
    """All rows with too few or too many cells."""
    wrong = [
        f"{grid.path}, line {grid.lines[k]}: {len(grid.rows[k])} cells for {width} columns"
        for k in rows
        if len(grid.rows[k]) < width or len(_trimmed(grid.rows[k])) > width
    ]
    if wrong:
        more = f"\n  and {len(wrong) - SHOWN} more such lines" * (len(wrong) > SHOWN)
        advice = "; a separator or quote is missing there, or one too many"
        raise ValueError("\n  ".join(wrong[:SHOWN]) + more + advice)


def _trimmed(row: Sequence[Cell]) -> Sequence[Cell]:
    """Without blank cells at the end."""
    end = len(row)
    while end > 1 and row[end - 1] is None:
        end -= 1
    return row[:end]


def _names(grid: Grid, top: int, columns: Sequence[int]) -> tuple[list[str], list[str]]:
    """Names, with the group's name in front where that is what tells two apart."""
    said = []
    names = [_name(_value(grid.rows[top], k)) for k in columns]
    twice = {name for name, count in Counter(filter(None, names)).items() if count > 1}
    if twice:
        names = _joined(grid, top, columns, names, twice)
    for place, (k, name) in enumerate(zip(columns, names, strict=True)):
        if not name:
            names[place] = f"column {_place(grid, k)}"
            said.append(f"a column without a name called {names[place]!r}")
    _refuse_twice(grid, top, columns, names)
    return names, said


def _joined(
    grid: Grid, top: int, columns: Sequence[int], names: list[str], twice: Collection[str]
) -> list[str]:
    """Names that occur twice, behind the last word to the left in the line above."""
    above = grid.rows[top - 1] if top else []
    out, group = [], ""
    for k, name in zip(columns, names, strict=True):
        group = _name(_value(above, k)) or group
        out.append(f"{group} {name}".strip() if name in twice else name)
    return out


def _refuse_twice(grid: Grid, top: int, columns: Sequence[int], names: Sequence[str]) -> None:
    counts = Counter(names)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        pairs = list(zip(columns, names, strict=True))
        where = {n: [_place(grid, k) for k, own in pairs if own == n] for n in twice}
        listed = ", ".join(f"two columns {n!r} ({' and '.join(w)})" for n, w in where.items())
        raise ValueError(f"{grid.cell(top, 0)}: {listed}; rename one of them")


def _place(grid: Grid, column: int) -> str:
    return letters(column) if grid.sheet else str(column + 1)


def _value(row: Sequence[Cell], column: int) -> Cell:
    return row[column] if column < len(row) else None


def _name(cell: Cell) -> str:
    return " ".join((written(cell) or "").split())


def _quoted(row: Sequence[Cell]) -> str:
    shown = ", ".join(written(cell) or "" for cell in row)
    return repr(shown if len(shown) <= 40 else f"{shown[:39]}…")


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
    """A CSV file, or a workbook (``book.xlsx``, or ``book.xlsx#Sheet``).

    Separator, quotes, encoding, decimal mark and the line of names are found, unless they are
    told: ``header`` is the line of names, counted from 1. Blanks around cells are taken off, blank
    cells are missing, and a column is one of numbers only if every other cell is a number; 007 and
    numbers of more than fifteen digits are text. Workbooks need the extra ``mlestruct[office]``.
    """
    place, sheet = _placed_in(path, sheet)
    usual: Decimal | None = None
    data, name = content(place, "table"), os.fspath(place)
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


def _placed_in(path: FilePath, sheet: str | None) -> tuple[Path, str | None]:
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
        {name: objects(list(map(written, column))) for name, column in cells.items()},
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
