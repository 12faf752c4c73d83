"""Files as tables: CSV of any separator, in UTF-8, UTF-16 or Windows-1252, and Excel workbooks.

How a file was read is kept in ``Table.said``, and every part of it can be told instead. What may
mean two things is left as text, or refused with its place.

Each candidate for the separator reads the text. The one under which most rows have the same number
of cells wins, then the one that leaves fewest other separators inside cells. Rows that still do not
fit are refused with their line: a cell too many or too few means that answers moved to another
question.

A line is the one of names if it is about as full as the rows below it and does not read like them:
where columns hold numbers, it holds words.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.roommates import frames, workbooks
from mlestruct.roommates.frames import (
    Cell,
    Decimal,
    Grid,
    Row,
    Table,
    bare_text,
    is_number,
    letters,
    number,
    written,
)
from mlestruct.storage.files import content, fresh

OTHERS = re.compile(  # what begins so is no table as text
    rb"(?:\xef\xbb\xbf)?\s*(?:[\[{]\s*[\"\[{]|(?i:<(?:!doctype|html|\?xml|table|meta)))|"
    rb"\xd0\xcf\x11\xe0|%PDF|\{\\rtf|PAR1|\x1f\x8b|Rar!|7z\xbc\xaf|\x89PNG|\xff\xd8\xff"
)
STRANGE = re.compile(  # letters of other encodings as Windows-1252 would show them
    "\ufffd|[ÂÃÄÅÐÑâ][^\x00-\x7fÀ-ÿ]|[À-ÖØ-öø-ÿ]{3}|[a-z][ŠŸŽŒÐÞ][a-z]|[a-z]Ÿ|£[a-zà-ÿ]|[B-DF-HJ-NP-TV-Zb-df-hj-np-tv-z]š[b-df-hj-np-tv-z]|[A-Za-z][‚ƒ„…†‡ˆ‰‹‘“”•˜™›¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿×÷][a-z]"
)
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
STRONG = frozenset(";\t|")  # seldom within a cell; a comma often is
MOST = 1 << 24  # bytes of a text
SAMPLE = 100_000  # characters that separators are compared on
CELLS = 1 << 22  # of a file, blank ones among them
QUOTE = '"'
ENDS = re.compile(r'[,;|"\s]')


def decoded(data: bytes, place: str, encoding: str | None = None) -> tuple[str, str]:
    """Return the text of a file and its encoding in words; a ValueError names the line.

    The encoding is the one that is told, or that a mark shows, or UTF-8, or else Windows-1252,
    unless that would make no words.
    """
    if OTHERS.match(data):
        raise ValueError(
            f"{place} is no table as text, but JSON, a web page, an old Excel file (.xls), one "
            "with a password, a PDF, packed, or the like; save it as .xlsx or as CSV in UTF-8"
        )
    marked = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    found = encoding or ("utf-16" if wide else marked)
    try:
        text = data.decode(found).removeprefix("\ufeff")
    except LookupError as error:
        raise ValueError(
            f"encoding {found!r} is unknown; try utf-8, cp1252 or mac_roman"
        ) from error
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = 1 + data[:start].count(b"\n")
        here = f"{place}, line {line}"
        if encoding is not None or found != "utf-8":
            raise ValueError(f"{here}: not {found} ({error})") from error
        text, found = data.decode("cp1252", "replace"), "cp1252"
        if odd := STRANGE.search(text):
            raise ValueError(
                f"{here}: byte 0x{data[start]:02x} is no UTF-8, and as Windows-1252 the file would "
                f"read {odd.group()!r}; put that line right, save the file as UTF-8, or name its "
                "encoding, such as cp850, mac_roman or cp1250: encoding="
            ) from error
    if "\0" in text:
        line = 1 + text[: text.index("\0")].count("\n")
        raise ValueError(
            f"{place}, line {line}: a zero byte; save the table as CSV in UTF-8, or name its "
            "encoding, such as utf-16-le: encoding="
        )
    return text, {"cp1252": "Windows-1252"}.get(found, found.upper())


def text_grid(text: str, path: str, words: str, separator: str | None = None) -> Grid:
    """Return the rows of a text, with the line that each begins in."""
    first = 1
    head, _, rest = text.partition("\n")
    if separator is None and head.strip().lower().startswith("sep=") and len(head.strip()) == 5:
        separator, text, first = head.strip()[4], rest, 2  # Excel's own way to say it
    quote = "'" if text.startswith("'") else QUOTE
    sign = separator or max(SEPARATORS, key=lambda sign: _evenness(text, sign, quote))
    if max(map(text.count, (sign, "\n", "\r"))) > CELLS:
        raise ValueError(f"{path} has more than {CELLS:,} cells or lines; is it a table of people?")
    rows, line = [], first
    try:
        for line, cells in _rows(text, sign, quote, first):
            filled = {k: c for k, cell in enumerate(cells) if (c := bare_text(cell))}
            rows += [Row(line, filled, len(cells))] if filled else []
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {error.args[0]}: a quote is never closed or ends within a cell, or a "
            f"cell has more than {csv.field_size_limit()} signs; put that line right"
        ) from error
    if any(row.width > 1 for row in rows):
        parted = SEPARATORS.get(sign, repr(sign)) + " and single quotes" * (quote != QUOTE)
        return Grid(path, None, rows, [words, parted])
    if rows and separator is None and max(str(rows[0].cells[0]).count(s) for s in SEPARATORS) > 1:
        raise ValueError(
            f"{path}, line {rows[0].line}: every line is one cell, in quotes with the separators "
            "in it; take the quotes around the lines away"
        )
    return Grid(path, None, rows, [words, "one column"])


def _evenness(text: str, sign: str, quote: str) -> tuple[float, float, int]:
    """(share of rows of the usual width, share of cells without other separators, the width)."""
    sample = text[: text.rfind("\n", 0, SAMPLE) + 1 or SAMPLE] if len(text) > SAMPLE else text
    try:
        rows = [row for _, row in _rows(sample, sign, quote) if any(row)]
    except csv.Error:
        return 0.0, 0.0, 0
    widths = Counter(len(row) for row in rows if len(row) > 1)
    if not widths:
        return 0.0, 0.0, 0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    cells = [cell for row in rows if len(row) == width for cell in row]
    clean = sum((STRONG - {sign}).isdisjoint(cell) for cell in cells) / len(cells)
    return round(count / len(rows), 2), clean, width


def _rows(text: str, sign: str, quote: str, first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """(line that it begins in, cells) of every row; an error has the line."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(
        lines, strict=True, delimiter=sign, quotechar=quote, skipinitialspace=sign != " "
    )
    line = first
    try:
        for row in reader:
            yield line, row
            line = first + reader.line_num
    except csv.Error as error:
        raise csv.Error(line) from error


def write_csv(
    path: str | os.PathLike[str], columns: Mapping[str, ArrayLike], *, private: bool = False
) -> None:
    """Columns as UTF-8 CSV, all of them or no file; missing answers are empty cells.

    Nobody but its owner may read a ``private`` file.
    """
    listed = []
    for column in map(np.asarray, columns.values()):
        gone = frames.missing(column).tolist()
        listed.append(["" if g else v for v, g in zip(column.tolist(), gone, strict=True)])
    with fresh(Path(path), private) as file:
        for row in ([*columns], *zip(*listed, strict=True)):
            file.write(f"{','.join(map(_cell, row))}\r\n".encode())


def _cell(value: object) -> str:
    """Quoted wherever some program may see an end of the cell: commas are not the only ones."""
    text = repr(value) if isinstance(value, float) else str(value)
    return f'"{text.replace(QUOTE, QUOTE + QUOTE)}"' if ENDS.search(text) else text


FULL = 0.6  # share of a usual row's cells that names fill
NUMERIC = 0.8  # share of numbers that makes a column one of numbers
DEEP = 30  # filled lines from the top among which names are looked for
ENOUGH = 200  # rows that tell a column of numbers
TOTALS = re.compile(
    r"(?:(?:zwischen|gesamt|end)?summen?|(?:ins)?gesamt|(?:grand |sub-?)?totals?|sum|anzahl|"
    r"durchschnitt|mittelwert|average|mean|ø|somme|suma|totale|totaal)[ :.=]*"
)
POINT_ZERO = re.compile(r"-?[0-9]+[.,]0")
SHOWN = 5  # faults of one kind that a message lists


def _top(grid: Grid, line: int | None) -> int:
    """The number of the row of names."""
    rows = grid.rows
    if line is not None:
        top = next((k for k, row in enumerate(rows) if row.line == line), None)
        if top is None:
            raise ValueError(f"{grid.path}: line {line}, named as the line of names, is blank")
        return top
    usual = median(len(row.cells) for row in rows[len(rows) // 2 :])
    top = next((k for k, row in enumerate(rows[:DEEP]) if len(row.cells) >= FULL * usual), None)
    if top is None:
        raise ValueError(f"{grid.path}: no line of column names was found; say which line has them")
    if _reads_as_data(rows[top], rows[top + 1 :][:ENOUGH]):
        shown = ", ".join(written(cell) or "" for cell in rows[top].cells.values())[:40]
        place = grid.place(rows[top].line, 0)
        raise ValueError(f"{place}: {shown!r} looks like data; put a line of column names above it")
    # names may be merged over two lines, or groups of them stand in the line above
    for below in rows[top + 1 : top + 2]:
        words = all(isinstance(c, str) and number(c) is None for c in below.cells.values())
        if words and len(below.cells) > len(rows[top].cells):
            return top + 1
    return top


def _reads_as_data(names: Row, below: Sequence[Row]) -> bool:
    """Whether every column of numbers has a number on top (a run such as 1, 2, 3 are names)."""
    numeric = []
    for k in sorted({k for row in below for k in row.cells}):
        cells = [row.cells[k] for row in below if k in row.cells]
        numeric += [k] if sum(map(is_number, cells)) >= NUMERIC * len(cells) else []
    run = [value for k in numeric if (value := number(names.cells.get(k))) is not None]
    if not run or len(run) < len(numeric):
        return False
    counted = len(run) > 1 and run == [run[0] + k for k in range(len(run))]
    return not (counted and len(run) < len(names.cells))


def _refuse_misfits(grid: Grid, names: Row, rows: Sequence[Row]) -> None:
    """Rows of a text with too few or too many cells, and lines of sums and means."""
    width = max(names.cells) + 1
    wrong = [
        f"{grid.place(row.line, 0)}: {row.width} cells for {width} columns"
        for row in rows
        if grid.sheet is None and (row.width < width or max(row.cells) >= width)
    ]
    if wrong:
        more = f"\n  and {len(wrong) - SHOWN} more such lines" * (len(wrong) > SHOWN)
        advice = "; a separator or quote is missing there, or one too many"
        raise ValueError("\n  ".join(wrong[:SHOWN]) + more + advice)
    usual = median(len(row.cells) for row in rows) if rows else 0
    for row in rows:
        k, first = min(row.cells.items())
        total = isinstance(first, str) and TOTALS.fullmatch(first.casefold())
        if total and len(row.cells) < usual:
            raise ValueError(
                f"{grid.place(row.line, k)}: {first!r} looks like a line of totals; delete that "
                "line, or fill its gaps if it is data"
            )


def _names(grid: Grid, top: int, columns: Sequence[int]) -> dict[str, int]:
    """The column of each name; nameless ones are named by their place."""
    own, found = grid.rows[top], dict[str, int]()
    for k in columns:
        name = " ".join((written(own.cells.get(k)) or f"column {grid.column(k)}").split())
        if found.setdefault(name, k) != k:
            both = f"{grid.column(found[name])} and {grid.column(k)}"
            raise ValueError(
                f"{grid.place(own.line, 0)}: two columns {name!r} ({both}); rename one of them"
            )
    return found


FilePath = str | os.PathLike[str]


def read(
    path: FilePath,
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
    data = content(Path(name), "table")
    if workbooks.is_packed(data):
        return _table(workbooks.grid(data, name, sheet), header, decimal)
    if sheet is not None:
        raise ValueError(f"{name} is no workbook, so it has no sheet {sheet!r}")
    if len(data) > MOST:
        raise ValueError(
            f"{name} has more than {MOST >> 20} MB; keep only the table of people in it"
        )
    text, words = decoded(data, name, encoding)
    grid = text_grid(text, name, words, separator)
    return _table(grid, header, decimal or (None if "semicolons" in grid.said[1] else "."))


def sheets(path: FilePath) -> list[str]:
    """The sheets of a workbook that may hold a table; none for other files."""
    data = content(path, "table")
    return workbooks.sheets(data, os.fspath(path)) if workbooks.is_packed(data) else []


def _whole(cells: list[Cell]) -> list[Cell]:
    """Without the .0 that programs which know gaps put behind all whole numbers of a column."""
    whole = [isinstance(cell, str) and POINT_ZERO.fullmatch(cell) is not None for cell in cells]
    if any(is_number(cell) for cell, own in zip(cells, whole, strict=True) if not own):
        return cells
    return [str(cell)[:-2] if own else cell for cell, own in zip(cells, whole, strict=True)]


def _table(grid: Grid, header: int | None, decimal: Decimal | None) -> Table:
    """The names and data of a grid; ``header`` is the line of names, where it is told."""
    if not grid.rows:
        raise ValueError(f"{grid.path} is empty; expected a line of column names")
    top = _top(grid, header)
    names, below = grid.rows[top], grid.rows[top + 1 :]
    rows = [row for row in below if row.cells != names.cells]
    _refuse_misfits(grid, names, rows)
    used = sorted({k for row in (names, *rows) for k in row.cells})
    columns = _names(grid, top, used)
    cells = {name: [row.cells.get(k) for row in rows] for name, k in columns.items()}
    cells = {name: _whole(column) for name, column in cells.items()}
    read = {name: frames.typed(name, column, decimal) for name, column in cells.items()}
    said = [*grid.said, f"names in {'row' if grid.sheet else 'line'} {names.line}"]
    said += [f"{top} line{'s' * (top > 1)} above it left out"] if top else []
    said += [f"{len(below) - len(rows)} lines that repeat it left out"] * (len(rows) < len(below))
    said += [
        f"a column without a name called {n!r}" for n, k in columns.items() if k not in names.cells
    ]
    said += [doubt for _, doubt in read.values() if doubt]
    sheet = {name: letters(k) for name, k in columns.items()} if grid.sheet else {}
    return Table(
        {name: column for name, (column, _) in read.items()},
        {
            name: frames.as_cells(column, [*map(written, cells[name])])
            for name, (column, _) in read.items()
        },
        frames.Places(grid.path, [row.line for row in rows], grid.sheet, sheet),
        decimal,
        (f"{grid.path}: {len(rows)} rows; {', '.join(said)}",),
    )
