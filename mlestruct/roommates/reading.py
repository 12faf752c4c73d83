"""Files as tables: CSV of any separator and encoding, Excel workbooks.

How a file was read is kept in ``Table.said``, and every part of it can be told instead. What may
mean two things is left as text, or refused with its place.

UTF-8, UTF-16 and UTF-32 are recognised; Windows-1252 is what remains. Each candidate for separator
and quotes reads the whole text. The one under which most rows have the same number of cells
wins, then the one that leaves fewest other separators inside cells. Rows that still do not fit are
refused with their line: a cell too many or too few means that answers moved to another question.

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
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.roommates import frames, workbooks
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
from mlestruct.storage.files import content, fresh

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with a byte-order mark"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
OTHERS = (  # what begins so is no table as text
    (rb"\xd0\xcf\x11\xe0", "an old Excel file (.xls), or one with a password"),
    (rb"%PDF", "a PDF"),
    (rb"PAR1", "a Parquet file"),
    (rb"\x1f\x8b", "packed (.gz)"),
    (rb"Rar!|7z\xbc\xaf", "packed (.rar or .7z)"),
    (rb"\{\\rtf", "a text with formatting (RTF)"),
    (rb"\x89PNG|\xff\xd8\xff", "a picture"),
    (rb"(?:\xef\xbb\xbf)?\s*[\[{]\s*[\"\[{]", "JSON"),
    (
        rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|\?xml|table|meta)",
        "a web page or XML, whatever its name says",
    ),
)
STRANGE = re.compile(  # letters of other encodings as Windows-1252 would show them
    "[À-ÖØ-öø-ÿ]{3}|[a-z][ŠŸŽŒÐÞ][a-z]|[a-z]Ÿ|£[a-zà-ÿ]|[B-DF-HJ-NP-TV-Zb-df-hj-np-tv-z]š[b-df-hj-np-tv-z]|[A-Za-z][‚ƒ„…†‡ˆ‰‹‘“”•˜™›¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿×÷][a-z]"
)
MANY = 0.2  # share of NULs at odd or even places that only UTF-16 has
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
STRONG = frozenset(";\t|")  # seldom within a cell; a comma often is
SAMPLE = 100_000  # characters that dialects are compared on
LONGEST = 1 << 20  # characters of a line
CELLS = 1 << 22  # of a file, blank ones among them
COLUMNS = 1 << 14  # as a spreadsheet has
BLANK = 1_000  # blank lines one after the other that are kept
BROKEN = {  # words of errors, and what they mean
    "unexpected end": "a quote is opened here and never closed",
    "expected after": "a quote ends within a cell",
    "field limit": f"a cell of more than {csv.field_size_limit()} signs",
}
QUOTE = '"'
QUOTED = re.compile(r"\s*+(['\"]).*\1\s*\Z", re.S)
ENDS = re.compile(r'[,;|"\s]')


def decoded(data: bytes, place: str, encoding: str | None = None) -> tuple[str, str]:
    """The text of a file and its encoding in words; a ValueError names the line.

    The encoding is the one that is told, or that a mark or zero bytes show, or UTF-8, or else
    Windows-1252.
    """
    for start, words in OTHERS:
        if re.match(start, data):
            raise ValueError(f"{place} is {words}; save it as .xlsx or as CSV in UTF-8")
    found = next(((name, words) for mark, name, words in MARKS if data.startswith(mark)), None)
    if encoding is not None:
        found = encoding, encoding
    elif found is None and (wide := _without_mark(data)):
        found = wide, f"{wide.upper()} without a mark"
    if found is not None:
        return _by(data, found[0], place), found[1]
    try:
        text, words = data.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError as error:
        text, words = _as_windows(data, error, place), "Windows-1252"
    if "\0" in text:
        line = 1 + text[: text.index("\0")].count("\n")
        raise ValueError(f"{place}, line {line}: a zero byte, so this is no table as text")
    return text, words


def _by(data: bytes, encoding: str, place: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise ValueError(
            f"encoding {encoding!r} is unknown; try utf-8, cp1252 or mac_roman"
        ) from error
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = 1 + data[:start].count(b"\n")
        raise ValueError(f"{place}, line {line}: not {encoding} ({error})") from error


def _without_mark(data: bytes) -> str | None:
    """UTF-16 whose every other byte is mostly zero."""
    sample = data[:4000]
    if len(sample) < 4 or len(data) % 2:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) < MANY * len(sample) / 2 or min(even, odd) > 0:
        return None
    return "utf-16-le" if odd else "utf-16-be"


def _as_windows(data: bytes, error: UnicodeDecodeError, place: str) -> str:
    """Windows-1252 unless that would make no words; a file of two encodings is refused."""
    line = 1 + data[: error.start].count(b"\n")
    here = f"{place}, line {line}: byte 0x{data[error.start]:02x} is no UTF-8"
    good = data.decode("utf-8", "ignore")
    wide = len(good) - len(good.encode("ascii", "ignore"))
    broken = data.decode("utf-8", "replace").count("\ufffd")
    if wide >= broken:
        raise ValueError(
            f"{here}, although the rest of the file is; put that line right, or save the file anew "
            "as UTF-8"
        )
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = ""
    odd = STRANGE.search(text)
    if not text or odd:
        shown = f", and as Windows-1252 it would read {odd.group()!r}" if odd else ""
        raise ValueError(
            f"{here}{shown}; save the file as UTF-8, or name its encoding, such as cp850, "
            "mac_roman or cp1250: encoding="
        )
    return text


Dialect = dict[str, Any]
"""How cells are parted and quoted, as :func:`csv.reader` is told."""


def text_grid(text: str, path: str, words: str, separator: str | None = None) -> Grid:
    """The rows of a text, with the line that each begins in."""
    first, blank = 1, 0
    head, _, rest = text.partition("\n")
    if separator is None and head.strip().lower().startswith("sep=") and len(head.strip()) == 5:
        separator, text, first = head.strip()[4], rest, 2  # Excel's own way to say it
    _refuse_longest(text, path, first)
    dialect = _dialect(text, separator)
    if max(text.count(sign) for sign in (dialect["delimiter"], "\n", "\r")) > CELLS:
        raise ValueError(f"{path} has more than {CELLS:,} cells or lines; is it a table of people?")
    rows: list[list[Cell]] = []
    lines: list[int] = []
    try:
        for start, row in _rows(text, dialect):
            blank = 0 if any(row) else blank + 1
            if len(row) > COLUMNS:
                raise ValueError(
                    f"{path}, line {start + first - 1}: {len(row):,} cells, and a table has at "
                    f"most {COLUMNS:,} columns; write one line for each person"
                )
            if blank <= BLANK:
                rows.append([*row])
                lines.append(start + first - 1)
    except csv.Error as error:
        start, why = error.args
        why = next((words for part, words in BROKEN.items() if part in why), why)
        raise ValueError(
            f"{path}, line {start + first - 1}: {why}; put the quotes of that line right"
        ) from error
    if any(len(row) > 1 for row in rows):
        sign = dialect["delimiter"]
        parted = SEPARATORS.get(sign, repr(sign))
        parted += " and single quotes" if dialect["quotechar"] == "'" else ""
        parted += "" if dialect["doublequote"] else ", quotes after a backslash"
        return Grid(path, lines, rows=rows, said=(words, parted))
    if separator is None and _wrapped(rows):
        raise ValueError(
            f"{path}, line {first}: every line is one cell, in quotes with the separators in it; "
            "take the quotes around the lines away"
        )
    return Grid(path, lines, rows=rows, said=(words, "one column"))


def _refuse_longest(text: str, path: str, first: int) -> None:
    """A line that never ends is no row of a table."""
    start = 0
    while len(text) - start > LONGEST:
        end = max(text.rfind(sign, start, start + LONGEST) for sign in "\n\r")
        if end < 0:
            line = first + len(text[:start].splitlines())
            raise ValueError(
                f"{path}, line {line}: more than {LONGEST:,} characters in one line; save the "
                "table as CSV with one line for each person"
            )
        start = end + 1


def _wrapped(rows: list[list[Cell]]) -> bool:
    """Whether all cells of a single column hold as many separators, two at least."""
    cells = [str(cell) for row in rows for cell in row if cell]
    counts = ({cell.count(sign) for cell in cells} for sign in SEPARATORS)
    return len(cells) > 1 and any(len(each) == 1 and min(each) > 1 for each in counts)


def _dialect(text: str, separator: str | None) -> Dialect:
    """The dialect whose rows are most even, or else the first; commas for a single column."""
    sample = text
    if len(text) > SAMPLE:
        ends = (max(text.rfind(sign, 0, size) for sign in "\n\r") for size in (SAMPLE, LONGEST))
        sample = text[: next((end + 1 for end in ends if end >= 0), None)]
    signs = [separator] if separator else list(SEPARATORS)
    quotes = ['"', "'"] if "'" in sample else ['"']
    escapes = [None, "\\"] if '\\"' in sample else [None]
    tried = [
        {"delimiter": sign, "quotechar": quote, "skipinitialspace": padded}
        | {"doublequote": escape is None, "escapechar": escape}
        for escape, padded, quote, sign in product(escapes, (False, True), quotes, signs)
    ]
    best = max(tried, key=lambda dialect: _evenness(sample, dialect))
    return best if separator or _evenness(sample, best)[0] else tried[0]


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
    others = (STRONG | {dialect["quotechar"]}) - {dialect["delimiter"]}
    odd = sum(not others.isdisjoint(cell) or QUOTED.match(cell) is not None for cell in cells)
    clean = (len(cells) - odd) / len(cells)
    return round(count / len(rows), 2), clean, width


def _rows(text: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """(line that it begins in, cells) of every row; an error has the line and what is wrong."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, **dialect)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(line, str(error)) from error


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
        grid = text_grid(text, name, words, separator)
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
