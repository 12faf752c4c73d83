"""Files of text as grids: their encoding, then the separator and quotes that make even rows.

UTF-8, UTF-16 and UTF-32 are recognised; Windows-1252 is what remains. Each candidate for separator
and quotes reads the whole text. The one under which most rows have the same number of cells
wins, then the one that leaves fewest other separators inside cells. Rows that still do not fit are
refused with their line: a cell too many or too few means that answers moved to another question.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.roommates.frames import Cell, Grid, missing
from mlestruct.storage.files import fresh

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


def grid(text: str, path: str, words: str, separator: str | None = None) -> Grid:
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
    arrays = [np.asarray(column) for column in columns.values()]
    listed = [
        ["" if absent else value for value, absent in zip(a.tolist(), missing(a), strict=True)]
        for a in arrays
    ]
    with fresh(Path(path), private) as file:
        for row in ([*columns], *zip(*listed, strict=True)):
            file.write(f"{','.join(map(_cell, row))}\r\n".encode())


def _cell(value: object) -> str:
    """Quoted wherever some program may see an end of the cell: commas are not the only ones."""
    text = repr(value) if isinstance(value, float) else str(value)
    return f'"{text.replace(QUOTE, QUOTE + QUOTE)}"' if ENDS.search(text) else text
