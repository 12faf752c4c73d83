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
from pathlib import Path
from statistics import median

from mlestruct.roommates import frames, separated, workbooks
from mlestruct.roommates.frames import (
    Cell,
    Decimal,
    Grid,
    Table,
    is_number,
    letters,
    number,
    written,
)
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


def _top(
    grid: Grid, full: Sequence[int], wanted: Collection[str], line: int | None
) -> tuple[int, int]:
    """The row of names, and how many rows above it are titles."""
    if line is not None:
        top = next((k for k in full if grid.lines[k] == line), None)
        if top is None:
            raise ValueError(f"{grid.file}: line {line}, named as the line of names, is blank")
        return top, full.index(top)
    tops = [grid.rows[k] for k in full[:DEEP]]
    named = [j for j, row in enumerate(tops) if wanted and set(wanted) <= set(map(_name, row))]
    usual = median(_filled(grid.rows[k]) for k in full[len(full) // 2 :])
    fullest = [j for j, row in enumerate(tops) if _filled(row) >= FULL * usual]
    if not named and not fullest:
        raise ValueError(f"{grid.file}: no line of column names was found; say which line has them")
    place = (named or fullest)[0]
    k = full[place]
    if not named and _reads_as_data(grid, k, full[place + 1 :]):
        shown = ", ".join(written(cell) or "" for cell in grid.rows[k])
        shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
        raise ValueError(
            f"{grid.cell(k, 0)}: {shown!r} looks like data; put a line of column names above it"
        )
    # names may be merged over two lines, or groups of them stand in the line above
    for below in full[place + 1 : place + 2]:
        words = [cell for cell in grid.rows[below] if cell is not None]
        fuller = len(words) > _filled(grid.rows[k])
        fuller = fuller and (not named or set(wanted) <= set(map(_name, words)))
        if fuller and all(isinstance(c, str) and number(c) is None for c in words):
            return below, place + 1
    return k, place


def _reads_as_data(grid: Grid, top: int, below: Sequence[int]) -> bool:
    """Whether every column of numbers has a number on top (a run such as 1, 2, 3 are names)."""
    row = grid.rows[top]
    spelled = [number(_value(row, k)) for k in _numeric(grid, below)]
    run = [value for value in spelled if value is not None]
    if not run or len(run) < len(spelled):
        return False
    counted = len(run) > 1 and run == [run[0] + k for k in range(len(run))]
    return not (counted and len(run) < _filled(row))


def _numeric(grid: Grid, rows: Sequence[int]) -> list[int]:
    """The columns that hold numbers in most of these rows."""
    found, rows = [], rows[:ENOUGH]
    for k in range(max((len(grid.rows[r]) for r in rows), default=0)):
        cells = [c for r in rows if (c := _value(grid.rows[r], k)) is not None]
        spelled = sum(map(is_number, cells))
        if cells and spelled >= NUMERIC * len(cells):
            found.append(k)
    return found


def _data(grid: Grid, full: Sequence[int], top: int) -> tuple[list[int], list[str]]:
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
    usual = median(_filled(grid.rows[k]) for k in below) if below else 0
    for k in below:  # lines of sums and means begin with such a word, and have gaps
        place, first = next((j, c) for j, c in enumerate(grid.rows[k]) if c is not None)
        total = isinstance(first, str) and TOTALS.fullmatch(first.casefold())
        if total and _filled(grid.rows[k]) < usual:
            raise ValueError(
                f"{grid.cell(k, place)}: {first!r} looks like a line of totals; delete that line, "
                "or fill its gaps if it is data"
            )
    last = below[-1] if below else top
    blank = sum(not _filled(grid.rows[k]) for k in range(top + 1, last))
    if blank:
        said.append(f"{blank} blank line{'s' * (blank > 1)} left out")
    return sorted(set(below).difference(again)), said


def _explains(grid: Grid, below: Sequence[int]) -> bool:
    """Whether the first row has different words wherever the rows under it have numbers."""
    columns = _numeric(grid, below[1:])
    cells = [_value(grid.rows[below[0]], k) for k in columns]
    words = [c for c in cells if c is not None and not is_number(c)]
    return len(columns) > 1 and len(words) == len(columns) and len(set(words)) > 1


def _refuse_ragged(grid: Grid, rows: Sequence[int], width: int) -> None:
    """All rows with too few or too many cells; blank ones at the end do not count as too many."""
    wrong = [
        f"{grid.cell(k, 0)}: {len(row)} cells for {width} columns"
        for k, row in ((k, grid.rows[k]) for k in rows)
        if len(row) < width or any(cell is not None for cell in row[width:])
    ]
    if wrong:
        more = f"\n  and {len(wrong) - SHOWN} more such lines" * (len(wrong) > SHOWN)
        advice = "; a separator or quote is missing there, or one too many"
        raise ValueError("\n  ".join(wrong[:SHOWN]) + more + advice)


def _names(grid: Grid, top: int, columns: Sequence[int]) -> tuple[list[str], list[str]]:
    """Names, with the group's name in front where that is what tells two apart; what was done."""
    names, said, group = [_name(_value(grid.rows[top], k)) for k in columns], [], ""
    places = [letters(k) if grid.sheet else str(k + 1) for k in columns]
    twice = {name for name, count in Counter(names).items() if count > 1 and name}
    for place, (k, name) in enumerate(zip(columns, names, strict=True)):
        group = _name(_value(grid.rows[top - 1], k) if top else None) or group
        names[place] = f"{group} {name}".strip() if name in twice else name
        if not name:
            names[place] = f"column {places[place]}"
            said.append(f"a column without a name called {names[place]!r}")
    where: dict[str, list[str]] = {}
    for name, place_of in zip(names, places, strict=True):
        where.setdefault(name, []).append(place_of)
    again = [f"two columns {n!r} ({' and '.join(w)})" for n, w in where.items() if len(w) > 1]
    if again:
        raise ValueError(f"{grid.cell(top, 0)}: {', '.join(again)}; rename one of them")
    return names, said


def _filled(row: Sequence[Cell]) -> int:
    """How many cells are not blank."""
    return sum(cell is not None for cell in row)


def _value(row: Sequence[Cell], column: int) -> Cell:
    return row[column] if column < len(row) else None


def _name(cell: Cell) -> str:
    return " ".join((written(cell) or "").split())


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
    name = os.fspath(path)
    before, mark, after = name.rpartition("#")
    if mark and sheet is None and not Path(name).exists() and Path(before).exists():
        name, sheet = before, after
    usual: Decimal | None = None
    data = content(Path(name), "table")
    if workbooks.is_packed(data):
        grid = workbooks.grid(data, name, sheet, wanted)
    elif sheet is not None:
        raise ValueError(f"{name} is no workbook, so it has no sheet {sheet!r}")
    else:
        text, words = decoded(data, name, encoding)
        grid = separated.grid(text, name, words, separator)
        usual = None if "semicolons" in grid.said[1] else "."
    return _table(grid, wanted, header, decimal, usual)


def sheets(path: FilePath) -> list[str]:
    """The sheets of a workbook that may hold a table; none for other files."""
    data = content(path, "table")
    return workbooks.sheets(data, os.fspath(path)) if workbooks.is_packed(data) else []


def _table(
    grid: Grid,
    wanted: Collection[str],
    header: int | None,
    decimal: Decimal | None,
    usual: Decimal | None,
) -> Table:
    """The names and data of a grid; ``header`` is the line of names, where it is told.

    Nameless columns are named by their place, blank ones dropped.
    """
    grid = grid.stripped()
    full = [k for k, row in enumerate(grid.rows) if _filled(row)]
    if not full:
        raise ValueError(f"{grid.file} is empty; expected a line of column names")
    top, above = _top(grid, full, wanted, header)
    chosen, passed = _data(grid, full, top)
    if grid.sheet is None:
        width = max(k for k, cell in enumerate(grid.rows[top]) if cell is not None) + 1
        _refuse_ragged(grid, chosen, width)
    used = sorted({j for k in (top, *chosen) for j, c in enumerate(grid.rows[k]) if c is not None})
    names, called = _names(grid, top, used)
    cells = {
        name: [_value(grid.rows[row], k) for row in chosen]
        for name, k in zip(names, used, strict=True)
    }
    shown = decimal or frames.evident(cells.values())
    read = {name: frames.typed(name, column, shown or usual) for name, column in cells.items()}
    line = f"names in {'row' if grid.sheet else 'line'} {grid.lines[top]}"
    said = [
        *grid.said,
        line,
        *([f"{above} line{'s' * (above > 1)} above it left out"] if above else []),
    ]
    said += [*passed, *called]
    lost = [(row, k) for row, k in grid.blanks if row in set(chosen) and k in set(used)]
    if lost:
        row, k = lost[0]
        place = f"{letters(k)}{grid.lines[row]}" if grid.sheet else f"in line {grid.lines[row]}"
        said.append(f"blanks taken off {len(lost)} cell{'s' * (len(lost) > 1)} (the first {place})")
    if decimal or shown == ",":
        said.append("decimal commas" if shown == "," else "decimal points")
    said += [doubt for _, doubt in read.values() if doubt]
    lines = [grid.lines[row] for row in chosen]
    sheet = dict(zip(names, map(letters, used), strict=True)) if grid.sheet else {}
    return Table(
        {name: column for name, (column, _) in read.items()},
        dict,
        {name: frames.objects(list(map(written, column))) for name, column in cells.items()},
        frames.Places(grid.path, lines, grid.sheet, sheet),
        shown or usual,
        (f"{grid.path}: {len(lines)} rows; {', '.join(said)}",),
    )
