"""Excel workbooks as grids: cells by their real types, merged ones in every row.

The XML of a workbook is read as a stream and nothing is made of a cell that holds nothing, so a
sheet costs what it holds and not the rectangle around it. Every count that a file could drive up
(bytes, elements, cells, text, merged ranges, sheets) has a limit, and a file beyond one is refused
when the limit is reached. openpyxl is asked for dates and formats only.
"""

from __future__ import annotations

import datetime
import io
import math
import re
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from mlestruct.roommates.cells import Cell, Grid, letters, written

LARGEST = 1 << 28  # bytes that the parts of a workbook that are read may unpack to
ELEMENTS = 5 << 19  # of XML, empty cells among them
CELLS = 1 << 20  # that hold something, in one sheet
TEXT = 1 << 25  # characters of all cells of a sheet, and of all shared strings
LONGEST = 32_767  # characters of one cell, as in Excel
MERGED = 1 << 16  # ranges of one sheet
SHEETS, PARTS, DEEP = 256, 10_000, 100  # sheets, files in the archive, levels of XML
ROWS, COLUMNS = 1 << 20, 1 << 14  # of any sheet
GAP, GAP_ACROSS = 10_000, 1_000  # blank rows and columns within a table
AREA = 1 << 22  # cells of all rows, the blank ones before a filled one included
TOP = 30  # rows in which names are looked for
PIECE = 1 << 16  # bytes that are parsed at a time
TOKEN = 1 << 20  # bytes of one tag; text comes in pieces

KINDS = {"xl/": "xlsx", "content.xml": "an OpenDocument sheet (.ods)", "Index/": "a Numbers sheet"}
AGAIN = "open it in your spreadsheet and save it again as .xlsx"
SMALLER = "keep only the table in it, or save the sheet as CSV in UTF-8"
DAMAGED = (  # RuntimeError: encrypted, or packed in a way of later archives
    EOFError, LookupError, OSError, OverflowError, RuntimeError, ValueError, expat.ExpatError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
RANGE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Z]{1,3})\$?([0-9]{1,7}))?")


def is_packed(data: bytes) -> bool:
    """Whether a file is a zip archive, as workbooks are."""
    return data.startswith(b"PK\x03\x04")


def grid(data: bytes, path: str, sheet: str | None, wanted: Collection[str]) -> Grid:
    """One sheet: the named one, else the only one that has rows, or the ``wanted`` names."""
    book = _opened(data, path)
    chosen = _chosen(book, sheet, wanted)
    return _grid(book.sheet(chosen), len(book.pages) > 1)


def sheets(data: bytes, path: str) -> list[str]:
    """The names of the sheets to choose from."""
    book = _opened(data, path)
    return _having(book, {page.name: book.top(page) for page in book.pages})


class Page(NamedTuple):
    """A sheet: its name, the file in the archive that holds it, whether it is shown."""

    name: str
    part: str
    visible: bool


class Style(NamedTuple):
    """What a cell's format says of its number."""

    zeros: int = 0  # digits that are shown at least
    date: bool = False
    elapsed: bool = False


class _Enough(Exception):
    """No more of a part is needed."""


class _Refused(ValueError):
    """A refusal in words, which is passed on; other errors come from a damaged file."""


@dataclass
class Sheet:
    """What the cells of a sheet hold, by row and column (from 1)."""

    name: str
    path: str
    rows: dict[int, dict[int, Cell]] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    uncounted: str | None = None
    last: int = 0
    full: int = 0  # rows of two cells or more
    cells: int = 0
    text: int = 0

    def refuse(self, why: str, cell: str | None = None) -> NoReturn:
        """A ValueError that names the file, the sheet and the cell."""
        where = f", cell {cell}" if cell else ""
        raise _Refused(f"{self.path}, sheet {self.name!r}{where}: {why}")


class Book:
    """A workbook whose sheets are read one by one, all within the same limits."""

    def __init__(self, archive: zipfile.ZipFile, path: str) -> None:
        self.archive, self.path = archive, path
        self.names = {name.lower(): name for name in archive.namelist()}
        self.bytes = self.elements = 0
        self.pages: list[Page] = []
        self.since_1904 = False
        main = _target(self._relations("_rels/.rels", ""), "/officeDocument") or "xl/workbook.xml"
        folder, _, name = main.rpartition("/")
        self._related = self._relations(f"{folder}/_rels/{name}.rels", folder)
        self._list_pages(main)
        self.styles = self._read_styles(_target(self._related, "/styles"))
        self.strings = self._read_strings(_target(self._related, "/sharedStrings"))

    def parse(
        self,
        part: str,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None] = lambda _: None,
        text: Callable[[str], None] = lambda _: None,
        what: str | None = None,
    ) -> None:
        """Read a part, if it is there, as a stream.

        Its own entities are refused, so text cannot multiply.
        """
        if part.lower() not in self.names:
            return
        parser = expat.ParserCreate()
        depth = 0
        where = f"{self.path}{f', sheet {what!r}' if what else ''}"

        def opened(name: str, given: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            self.elements += 1
            if self.elements > ELEMENTS:
                raise _Refused(
                    f"{where}: it has more than {ELEMENTS:,} elements; delete rows and columns "
                    "that are empty but have a format, or save the sheet as CSV in UTF-8"
                )
            if depth > DEEP:
                raise _Refused(f"{where}: its XML is nested too deeply; {AGAIN}")
            start(name.rpartition(":")[2] if ":" in name else name, given)

        def closed(name: str) -> None:
            nonlocal depth
            depth -= 1
            end(name.rpartition(":")[2] if ":" in name else name)

        def declared(*_: object) -> None:
            raise _Refused(f"{where}: its XML declares entities, as no spreadsheet does; {AGAIN}")

        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = opened, closed
        parser.StartDoctypeDeclHandler, parser.CharacterDataHandler = declared, text
        with suppress(_Enough):
            try:
                self._feed(parser, part, where)
            except _Refused:
                raise
            except DAMAGED as error:
                why = f"{type(error).__name__} in {part}"
                raise _Refused(f"{where} does not open as a workbook ({why}); {AGAIN}") from error

    def _feed(self, parser: expat.XMLParserType, part: str, where: str) -> None:
        with self.archive.open(self.names[part.lower()]) as file:
            given = 0
            while piece := file.read(PIECE):
                self.bytes += len(piece)
                given += len(piece)
                if self.bytes > LARGEST:
                    raise _Refused(f"{where} unpacks to more than {LARGEST >> 20} MB; {SMALLER}")
                parser.Parse(piece)
                if given - parser.CurrentByteIndex > TOKEN:
                    raise _Refused(f"{where}: a tag of its XML has no end; {AGAIN}")
            parser.Parse(b"", True)

    def _relations(self, part: str, folder: str) -> dict[str, tuple[str, str]]:
        """By id, what a related part is and its name in the archive."""
        found: dict[str, tuple[str, str]] = {}

        def start(name: str, given: dict[str, str]) -> None:
            if name == "Relationship" and given.get("TargetMode") != "External":
                target = given["Target"]
                target = target[1:] if target.startswith("/") else f"{folder}/{target}"
                found[given["Id"]] = given["Type"], target.removeprefix("/").replace("/./", "/")

        self.parse(part, start)
        return found

    def _list_pages(self, part: str) -> None:
        def start(name: str, given: dict[str, str]) -> None:
            if name == "workbookPr":
                self.since_1904 = given.get("date1904") in ("1", "true")
            if name != "sheet":
                return
            link = next((v for k, v in given.items() if k.rpartition(":")[2] == "id"), "")
            kind, target = self._related.get(link, ("", ""))
            if kind.endswith("/worksheet"):
                visible = given.get("state", "visible") == "visible"
                self.pages.append(Page(given["name"], target, visible))
            if len(self.pages) > SHEETS:
                raise _Refused(f"{self.path} has more than {SHEETS} sheets; {SMALLER}")

        self.parse(part, start)

    def _read_styles(self, part: str) -> list[Style]:
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        codes: dict[str, str] = {str(k): code for k, code in BUILTIN_FORMATS.items()}
        numbers: list[str] = []

        def start(name: str, given: dict[str, str]) -> None:
            if name == "numFmt":
                codes[given["numFmtId"]] = given["formatCode"][:LONGEST]
            elif name == "cellXfs":
                numbers.clear()  # those before it are of named styles
            elif name == "xf":
                numbers.append(given.get("numFmtId", "0"))

        self.parse(part, start)
        styles = {number: _style(codes.get(number, "")) for number in set(numbers)}
        return [styles[number] for number in numbers]

    def _read_strings(self, part: str) -> list[str]:
        found: list[str] = []
        words, size = Words(), 0

        def start(name: str, _: dict[str, str]) -> None:
            words.start(name)
            if name == "si":
                words.pieces = []

        def end(name: str) -> None:
            words.end(name)
            if name == "si":
                found.append("".join(words.pieces).replace("x005F_", ""))

        def text(more: str) -> None:
            nonlocal size
            size += len(more)
            if size > TEXT:
                raise _Refused(f"{self.path} has more than {TEXT >> 20} MB of text; {SMALLER}")
            words.text(more)

        self.parse(part, start, end, text)
        return found

    def sheet(self, page: Page, until: Callable[[Sheet], bool] = lambda _: False) -> Sheet:
        """What a sheet holds; ``until`` is asked at the end of a row, and ends the reading."""
        found = Sheet(page.name, self.path)
        reader = _Cells(self, found, until)
        self.parse(page.part, reader.begin, reader.end, reader.text, page.name)
        return found

    def top(self, page: Page) -> Sheet:
        """The first rows of a sheet, and more where these do not tell whether it has rows."""
        return self.sheet(page, lambda sheet: sheet.last >= TOP and sheet.full > 1)


def _target(related: dict[str, tuple[str, str]], kind: str) -> str:
    """The part of a kind; nothing where there is none."""
    return next((target for own, target in related.values() if own.endswith(kind)), "")


def _style(code: str) -> Style:
    from openpyxl.styles.numbers import is_date_format, is_timedelta_format

    zeros = len(code) if re.fullmatch(r"0{2,40}", code) else 0
    date = is_date_format(code)
    return Style(zeros, date, date and is_timedelta_format(code))


class Words:
    """The text of a cell, without how it is spoken (rPh)."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.reading = self.spoken = False

    def start(self, name: str) -> None:
        self.spoken = self.spoken or name == "rPh"
        self.reading = name == "v" or (name == "t" and not self.spoken)

    def end(self, name: str) -> None:
        self.spoken = self.spoken and name != "rPh"
        self.reading = False

    def text(self, more: str) -> None:
        if self.reading:
            self.pieces.append(more)


class _Cells(Words):
    """Handlers for the XML of a sheet."""

    def __init__(self, book: Book, sheet: Sheet, until: Callable[[Sheet], bool]) -> None:
        super().__init__()
        self.book, self.sheet, self.until = book, sheet, until
        self.row = self.column = self.style = 0
        self.kind, self.formula, self.valued = "n", False, False
        self.told: str | None = None
        self.given: dict[str, str] = {}
        self.columns: dict[str, int] = {}

    def begin(self, name: str, given: dict[str, str]) -> None:
        if name == "c":
            told = given.get("r")
            if told is None:
                self._place()
                self.column += 1
            self.told, self.given = told, given
            self.formula = self.valued = False
            self.pieces = []
            return
        self.start(name)
        self.valued = self.valued or self.reading
        if name == "f":
            self.formula = True
        elif name == "row":
            self.row, self.column, self.told = int(given.get("r", self.row + 1)), 0, None
            if given.get("hidden") in ("1", "true"):
                self.sheet.hidden.add(self.row)
        elif name == "mergeCell":
            self._merge(given["ref"])

    def end(self, name: str) -> None:
        if name == "c":
            if self.valued or self.formula:
                self._keep()
            return
        super().end(name)
        if name == "row" and self.until(self.sheet):
            raise _Enough

    def _place(self) -> None:
        """Where a cell stands; one that does not say it stands behind the last one."""
        told = self.told
        if told is not None:
            name = told.rstrip("0123456789")
            if name not in self.columns:
                self.columns[name] = _column(name)
            self.column = self.columns[name]
            self.row, self.told = int(told[len(name) :] or 0), None

    def _at(self) -> str:
        return f"{letters(self.column - 1)}{self.row}"

    def _merge(self, told: str) -> None:
        found = RANGE.fullmatch(told)
        if found is None:
            self.sheet.refuse(f"{told[:40]!r} is no range of merged cells; {AGAIN}")
        a, b, c, d = found.groups()
        left, top = _column(a), int(b)
        right, bottom = (_column(c), int(d)) if c else (left, top)
        if not (0 < top <= bottom <= ROWS and 0 < left <= right <= COLUMNS):
            self.sheet.refuse(f"{told!r} is no range of merged cells; {AGAIN}", f"{a}{b}")
        if len(self.sheet.merged) == MERGED:
            self.sheet.refuse(
                f"more than {MERGED:,} merged ranges; take the merging away", f"{a}{b}"
            )
        self.sheet.merged.append((left, top, right, bottom))

    def _keep(self) -> None:
        """The value of a cell, where it holds one."""
        sheet, text = self.sheet, "".join(self.pieces)
        self._place()
        if not (0 < self.row <= ROWS and 0 < self.column <= COLUMNS):
            sheet.refuse(f"a sheet has no such cell; {AGAIN}", self.given.get("r", "of a row")[:40])
        self.kind, self.style = self.given.get("t", "n"), int(self.given.get("s", 0))
        if self.formula and not text and not (self.valued and self.kind == "str"):
            sheet.uncounted = sheet.uncounted or self._at()
        try:
            value = self._value(text) if text else None
        except (ValueError, OverflowError, IndexError):
            sheet.refuse(f"{text[:40]!r} is no value of a cell; {AGAIN}", self._at())
        if value is None or (isinstance(value, str) and not value.strip()):
            return
        if isinstance(value, str):
            sheet.text += len(value)
            if len(value) > LONGEST:
                sheet.refuse(f"more than {LONGEST:,} characters; shorten it", self._at())
        sheet.cells += 1
        if sheet.cells > CELLS or sheet.text > TEXT:
            much = f"{CELLS:,} filled cells" if sheet.cells > CELLS else f"{TEXT >> 20} MB of text"
            sheet.refuse(f"more than {much} up to here; {SMALLER}", self._at())
        row = sheet.rows.setdefault(self.row, {})
        row[self.column] = value
        sheet.last = self.row
        sheet.full += len(row) == 2

    def _value(self, text: str) -> Cell:
        """Numbers as numbers, or with the zeros that their format shows; dates as ISO 8601."""
        kind = self.kind
        if kind == "s":
            place = int(text)
            if place < 0:
                raise IndexError(text)
            return self.book.strings[place]
        if kind in ("str", "inlineStr"):
            return text.replace("x005F_", "")
        if kind == "b":
            return "TRUE" if int(text) else "FALSE"
        if kind == "e":
            self.sheet.faults.append(f"cell {self._at()} is an error, {text[:40]}")
            return text
        if kind == "d":
            from openpyxl.utils.datetime import from_ISO8601

            return _when(from_ISO8601(text))
        number = _number(text)
        styles = self.book.styles
        style = styles[self.style] if 0 <= self.style < len(styles) else Style()
        if style.date:
            return self._date(number, style.elapsed)
        whole = isinstance(number, int) or number.is_integer()
        if style.zeros and whole and number >= 0:
            return str(int(number)).zfill(style.zeros)
        return int(number) if whole and abs(number) < 1e15 else number

    def _date(self, number: float, elapsed: bool) -> str:
        from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel

        epoch = MAC_EPOCH if self.book.since_1904 else WINDOWS_EPOCH
        try:
            return _when(from_excel(number, epoch, timedelta=elapsed))
        except (OverflowError, ValueError):
            self.sheet.faults.append(f"cell {self._at()} is an error, #VALUE!")
            return "#VALUE!"


def _number(text: str) -> int | float:
    with suppress(ValueError):
        if len(text) < 20:
            return int(text)
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(text)
    return found


def _when(value: Any) -> str:
    """A date without its midnight, a time, or whatever else a cell holds."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _column(name: str) -> int:
    """A column's number by its letters, from 1; 0 where these are none."""
    number = 0
    for letter in name.replace("$", "").upper()[:4]:
        number = number * 26 + ord(letter) - 64 if "A" <= letter <= "Z" else COLUMNS + 1
    return number


def _opened(data: bytes, path: str) -> Book:
    """A workbook; any other archive, and any that is damaged, is refused by name."""
    if data.count(b"PK\x01\x02") > PARTS:
        raise ValueError(f"{path} is an archive of more than {PARTS:,} files; is it a table?")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(f"{path} is a damaged workbook or archive ({error})") from error
    listed = archive.namelist()
    kind = next((k for s, k in KINDS.items() if any(name.startswith(s) for name in listed)), "")
    if kind != "xlsx" or any(name.endswith("workbook.bin") for name in listed):
        words = "a binary workbook (.xlsb)" if kind == "xlsx" else kind or "a packed archive (.zip)"
        raise ValueError(f"{path} is {words}; save the table as .xlsx or as CSV in UTF-8")
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"{path} is a workbook, which needs the extra mlestruct[office]: "
            "pip install 'mlestruct[office]', or save the sheet as CSV in UTF-8"
        ) from error
    return Book(archive, path)


def _chosen(book: Book, sheet: str | None, wanted: Collection[str]) -> Page:
    """The sheet to read."""
    pages = {page.name: page for page in book.pages}
    if sheet is not None:
        if sheet not in pages:
            raise ValueError(f"{book.path} has no sheet {sheet!r}; it has {', '.join(pages)}")
        return pages[sheet]
    if len(pages) == 1:
        return book.pages[0]
    tops = {name: book.top(page) for name, page in pages.items()}
    having = _having(book, tops)
    chosen = [name for name in having if wanted and _has_names(tops[name], wanted)] or having
    if len(chosen) > 1:
        names = ", ".join(map(repr, chosen))
        raise ValueError(
            f"{book.path} has several sheets: {names}; say which, such as {book.path}#{chosen[0]}"
        )
    if not chosen:
        raise ValueError(f"{book.path} has no sheet of cells, only charts")
    return pages[chosen[0]]


def _having(book: Book, tops: dict[str, Sheet]) -> list[str]:
    """The visible sheets that have rows; all where there are none."""
    shown = [page.name for page in book.pages if page.visible]
    return [name for name in shown if tops[name].full > 1] or shown or list(tops)


def _has_names(sheet: Sheet, wanted: Collection[str]) -> bool:
    rows = (row.values() for number, row in sheet.rows.items() if number <= TOP)
    return any(set(wanted) <= {str(written(cell)).strip() for cell in row} for row in rows)


def _grid(sheet: Sheet, several: bool) -> Grid:
    """All rows of a sheet down to the last that holds something."""
    if sheet.uncounted:
        sheet.refuse(
            "the formula has no stored value; open the file in your spreadsheet and save it again",
            sheet.uncounted,
        )
    if sheet.faults:
        shown = ", ".join(sheet.faults[:5]) + (" and more" if len(sheet.faults) > 5 else "")
        sheet.refuse(f"{shown}; put these cells right")
    said = [f"sheet {sheet.name!r}"] if several else []
    _refuse_gaps(sheet)
    said += _unmerged(sheet)
    hidden = len(sheet.hidden & sheet.rows.keys())
    said += [f"{hidden} hidden rows are read too"] if hidden else []
    lines = list(range(min(sheet.rows), max(sheet.rows) + 1)) if sheet.rows else []
    rows = []
    for line in lines:
        cells = sheet.rows.get(line, {})
        rows.append([cells.get(k) for k in range(1, max(cells, default=0) + 1)])
    return Grid(rows, lines, sheet.path, sheet.name, tuple(said))


def _unmerged(sheet: Sheet) -> Iterator[str]:
    """Fill ranges merged over several rows of one column; say so.

    A range ends with the last row that holds something of its own: what is merged down to the end
    of the sheet makes no rows. Values that a merged cell hides are refused.
    """
    known, visits = sorted(sheet.rows), 0
    for left, top, right, bottom in sheet.merged:
        place = f"{letters(left - 1)}{top}:{letters(right - 1)}{bottom}"
        value = sheet.rows.get(top, {}).get(left)
        lines = known[bisect_left(known, top) : bisect_right(known, bottom)]
        fills = left == right and bottom > top and value is not None
        bottom = min(bottom, known[-1]) if known else 0
        visits += bottom - top + 1 if fills else sum(len(sheet.rows[line]) for line in lines)
        if visits > AREA:
            sheet.refuse(f"merged ranges lie over each other, such as {place}; undo the merging")
        for line in lines:
            row = sheet.rows[line]
            for column in [k for k in row if left <= k <= right and (line, k) != (top, left)]:
                hidden = row.pop(column)
                if bottom > top and hidden != value:
                    cell = f"{letters(column - 1)}{line}"
                    sheet.refuse(f"{place} is merged and hides {hidden!r}; undo the merging", cell)
        if fills and bottom > top:
            for line in range(top, bottom + 1):
                sheet.rows.setdefault(line, {})[left] = value
            yield f"merged cells {place} have {value!r} in each row"


def _refuse_gaps(sheet: Sheet) -> None:
    """Cells that stand far away from the table, each of which would be a column or a person."""
    lines = {line: f"{letters(min(row) - 1)}{line}" for line, row in sheet.rows.items()}
    first = {k: line for line in sorted(sheet.rows, reverse=True) for k in sheet.rows[line]}
    columns = {k: f"{letters(k - 1)}{line}" for k, line in first.items()}
    for most, what, places in (
        (GAP, "rows below", lines),
        (GAP_ACROSS, "columns beside", columns),
    ):
        for before, here in pairwise(sorted(places)):
            if here - before > most:
                gap = f"{here - before - 1:,} blank {what} the table"
                sheet.refuse(f"it stands {gap}; delete it, or those", places[here])
    area = 0
    for line, row in sheet.rows.items():
        area += max(row, default=0)
        if area > AREA:
            sheet.refuse(
                f"more than {AREA:,} cells up to here, most of them blank; {SMALLER}",
                f"{letters(max(row) - 1)}{line}",
            )
