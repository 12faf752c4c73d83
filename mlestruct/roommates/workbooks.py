"""Excel workbooks as grids: cells by their real types, merged ones in every row.

The XML of a workbook is read as a stream and nothing is kept of a cell that holds nothing, so a
sheet costs what it holds and not the rectangle around it. Every count that a file could drive up
(bytes, elements, text, merged ranges, sheets) has a limit, and a file beyond one is refused when
the limit is reached. openpyxl is asked for places, dates and formats only.
"""

from __future__ import annotations

import io
import math
import posixpath
import re
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, TypeVar
from xml.parsers import expat

from mlestruct.roommates.frames import Cell, Grid, Row, bare_text, letters

LARGEST = 1 << 28  # bytes that the parts of a workbook that are read may unpack to
ELEMENTS = 3 << 19  # of XML, empty cells among them
TEXT = 1 << 25  # characters of all cells of a sheet, and of all shared strings
LONGEST = 32_767  # characters of one cell, as in Excel
MERGED = 1 << 16  # ranges of one sheet
ROWS, COLUMNS = 1 << 20, 1 << 14  # of any sheet
AREA = 1 << 22  # cells and rows that merged ranges lie over
TOP = 30  # rows in which names are looked for
PIECE = 1 << 16  # bytes that are parsed at a time
TOKEN = 1 << 20  # bytes of one tag or of one element's text, which comes in pieces
# cellStyleXfs: the formats in it are of named styles
UNITS = {"Relationship", "workbookPr", "sheet", "numFmt", "cellStyleXfs", "xf", "si", "row"}
UNITS |= {"mergeCell"}
AGAIN = "open it in your spreadsheet and save it again as .xlsx"
SMALLER = "keep only the table in it, or save the sheet as CSV in UTF-8"
DAMAGED = (  # RuntimeError: encrypted, or packed in a way of later archives
    EOFError, LookupError, OSError, OverflowError, RuntimeError, ValueError, expat.ExpatError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Answer = TypeVar("Answer")
Unit = list[Any]
"""An element and all inside it, in their order: name, attributes, text, name, attributes, …"""


def is_packed(data: bytes) -> bool:
    """Whether a file is a zip archive, as workbooks are."""
    return data.startswith(b"PK\x03\x04")


def grid(data: bytes, path: str, sheet: str | None) -> Grid:
    """One sheet: the named one, else the only one that has rows."""
    return _asked(data, path, lambda book: book.grid(sheet))


def sheets(data: bytes, path: str) -> list[str]:
    """The names of the sheets to choose from."""
    return _asked(data, path, Book.having)


def _asked(data: bytes, path: str, ask: Callable[[Book], Answer]) -> Answer:
    """What a workbook answers; any other archive, and any that is damaged, is refused by name."""
    book = Book(path)
    try:
        book.open(data)
        return ask(book)
    except _Refused:
        raise
    except ImportError as error:
        raise ValueError(
            f"{path} is a workbook, which needs the extra mlestruct[office]: "
            "pip install 'mlestruct[office]', or save the sheet as CSV in UTF-8"
        ) from error
    except DAMAGED as error:
        why = f"{type(error).__name__}: {str(error)[:80]}"
        raise ValueError(f"{book.where} does not open as a workbook ({why}); {AGAIN}") from error


class Page(NamedTuple):
    """A sheet: its name, the file in the archive that holds it, whether it is shown."""

    name: str
    part: str
    visible: bool


class _Refused(ValueError):
    """A refusal in words, which is passed on; other errors come from a damaged file."""


@dataclass
class Sheet:
    """What the cells of a sheet hold, by row and column (from 1)."""

    rows: dict[int, dict[int, Cell]] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    text: int = 0

    @property
    def has_rows(self) -> bool:
        """Whether two rows have two cells or more."""
        return sum(len(row) > 1 for row in self.rows.values()) > 1


class Book:
    """A workbook whose sheets are read one by one, all within the same limits."""

    def __init__(self, path: str) -> None:
        self.path, self.where = path, path
        self.bytes = self.elements = 0
        self.pages: list[Page] = []
        self.since_1904 = False
        self.styles: list[tuple[int, bool]] = []  # digits that are shown, whether it is a date
        self.strings: list[str] = []

    def refuse(self, why: str, cell: str = "") -> NoReturn:
        """A ValueError that names the file, the sheet and the cell."""
        raise _Refused(f"{self.where}{cell and f', cell {cell}'}: {why}")

    def units(self, part: str) -> Iterator[Unit]:
        """Every element of a part, if it is there, that is one of ``UNITS``, with those inside it.

        Entities are refused, so text cannot multiply.
        """
        if part.lower() not in self.names:
            return
        parser, done, unit = expat.ParserCreate(), list[Unit](), list[Any]()
        levels = inside = given = 0
        count, reading = self.elements, False

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal levels, inside, reading, count, unit
            levels, count = levels + 1, count + 1
            if count > ELEMENTS:
                self.refuse(
                    f"it has more than {ELEMENTS:,} elements; delete rows and columns that are "
                    "empty but have a format, or save the sheet as CSV in UTF-8"
                )
            name = name if name in UNITS else name.rpartition(":")[2]
            if inside or name in UNITS:
                unit += (name, attributes, "")
                inside, reading = inside or levels, True

        def end(_: str) -> None:
            nonlocal levels, inside, reading, unit
            levels, reading = levels - 1, False
            if levels < inside:
                done.append(unit)
                inside, unit = 0, []

        def text(more: str) -> None:
            if reading:
                unit[-1] += more

        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = text
        entities = f"its XML declares entities, as no spreadsheet does; {AGAIN}"
        parser.StartDoctypeDeclHandler = lambda *_: self.refuse(entities)
        with self.archive.open(self.names[part.lower()]) as file:
            while piece := file.read(PIECE):
                self.bytes, given = self.bytes + len(piece), given + len(piece)
                if self.bytes > LARGEST:
                    self.refuse(f"unpacks to more than {LARGEST >> 20} MB; {SMALLER}")
                parser.Parse(piece)
                if max(given - parser.CurrentByteIndex, *map(len, unit[-1:]), 0) > TOKEN:
                    self.refuse(f"a tag or a text of its XML has no end; {AGAIN}")
                self.elements = count
                yield from done
                done.clear()
        parser.Parse(b"", True)

    def open(self, data: bytes) -> None:
        """Read the list of sheets, the formats of cells and the shared texts."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        self.archive = zipfile.ZipFile(io.BytesIO(data))
        self.names = {name.lower(): name for name in self.archive.namelist()}
        if "xl/workbook.bin" in self.names or not any(n.startswith("xl/") for n in self.names):
            self.refuse(
                "no .xlsx workbook, but perhaps .ods, .xlsb, .numbers or a packed archive; save "
                "the table as .xlsx or as CSV in UTF-8"
            )
        root = self._related("")
        main = next((part for kind, part in root.values() if kind.endswith("/officeDocument")), "")
        related = self._related(main)
        for name, own, *_ in self.units(main):
            if name == "workbookPr":
                self.since_1904 = own.get("date1904") in ("1", "true")
            elif name == "sheet":
                link = next((v for k, v in own.items() if k.rpartition(":")[2] == "id"), "")
                kind, part = related.get(link, ("", ""))
                if kind.endswith("/worksheet"):
                    shown = own.get("state", "visible") == "visible"
                    self.pages.append(Page(own["name"], part, shown))
        codes: dict[str, str] = {str(k): code for k, code in BUILTIN_FORMATS.items()}
        size = 0
        for kind, part in related.values():
            wanted = kind.endswith(("/styles", "/sharedStrings"))
            for unit in self.units(part) if wanted else ():
                name, own, *_ = unit
                if name == "numFmt":
                    codes[own["numFmtId"]] = own["formatCode"][:LONGEST]
                elif name == "xf":
                    self.styles.append(_style(codes.get(own.get("numFmtId", "0"), "")))
                elif name == "si":
                    self.strings.append(_text(unit).replace("x005F_", ""))
                    size += len(self.strings[-1])
                    if size > TEXT:
                        self.refuse(f"more than {TEXT >> 20} MB of text; {SMALLER}")

    def _related(self, part: str) -> dict[str, tuple[str, str]]:
        """By id, what a related part is and its name in the archive."""
        folder, name = posixpath.split(part)
        found = {}
        for kind, own, *_ in self.units(posixpath.join(folder, "_rels", f"{name}.rels")):
            if kind == "Relationship" and own.get("TargetMode") != "External":
                target = posixpath.join("/", folder, own["Target"])
                found[own["Id"]] = own["Type"], posixpath.normpath(target)[1:]
        return found

    def sheet(self, page: Page, most: int = ROWS) -> Sheet:
        """What a sheet holds; ``most`` rows, and more until it is seen to have some."""
        self.where = f"{self.path}, sheet {page.name!r}"
        found, line = Sheet(), 0
        for unit in self.units(page.part):
            if unit[0] == "mergeCell":
                found.merged.append(self._range(unit[1].get("ref", "")))
                if len(found.merged) > MERGED:
                    self.refuse(f"more than {MERGED:,} merged ranges; take the merging away")
            if unit[0] != "row" or len(unit) == 3:
                continue
            if unit[1].get("hidden") in ("1", "true"):
                found.hidden.add(int(unit[1].get("r", 0)))
            cells = [3 * k for k, name in enumerate(unit[::3]) if name == "c"]
            for k, end in pairwise([*cells, len(unit)]):
                if end == k + 3:
                    continue
                place = unit[k + 1].get("r", "")
                line, column = _place(place)
                if not (0 < line <= ROWS and 0 < column <= COLUMNS):
                    self.refuse(
                        f"a sheet has no such cell; {AGAIN}", place[:40] or "without a place"
                    )
                value = self._value(found, unit[k:end], place)
                if value is not None:
                    found.rows.setdefault(line, {})[column] = value
            if line >= most and found.has_rows:
                break
        return found

    def _value(self, sheet: Sheet, cell: Unit, place: str) -> Cell:
        """What a cell holds; None for blanks."""
        kind, text = cell[1].get("t", "n"), _text(cell)
        if not text and "f" in cell[::3] and not (kind == "str" and "v" in cell[::3]):
            sheet.faults.append(
                f"cell {place}: the formula has no stored value (open the file in your "
                "spreadsheet and save it again)"
            )
        try:
            value = self._read(kind, text, int(cell[1].get("s", 0))) if text else None
        except (ValueError, OverflowError, IndexError):
            self.refuse(f"{text[:40]!r} is no value of a cell; {AGAIN}", place)
        if not isinstance(value, str):
            return value
        if kind == "e" or value == "#VALUE!":
            sheet.faults.append(f"cell {place} is an error, {value[:40]}")
        sheet.text += len(value)
        if len(value) > LONGEST:
            self.refuse(f"more than {LONGEST:,} characters; shorten it", place)
        if sheet.text > TEXT:
            self.refuse(f"more than {TEXT >> 20} MB of text up to here; {SMALLER}", place)
        return bare_text(value) or None

    def _read(self, kind: str, text: str, format_: int) -> Cell:
        """Numbers as numbers, or with the zeros that their format shows; dates as ISO 8601."""
        if kind == "s":
            return self.strings[int(text) if int(text) >= 0 else len(self.strings)]
        if kind == "b":
            return "TRUE" if int(text) else "FALSE"
        if kind != "n":
            return text.removesuffix("T00:00:00") if kind == "d" else text.replace("x005F_", "")
        number = int(text) if len(text) < 20 and text.lstrip("-").isdecimal() else float(text)
        if not math.isfinite(number):
            raise ValueError(text)
        zeros, date = self.styles[format_] if 0 <= format_ < len(self.styles) else (0, False)
        if date:
            from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel

            epoch = MAC_EPOCH if self.since_1904 else WINDOWS_EPOCH
            with suppress(OverflowError, ValueError):
                return str(from_excel(number, epoch).isoformat()).removesuffix("T00:00:00")
            return "#VALUE!"
        whole = isinstance(number, int) or number.is_integer()
        if zeros and whole and number >= 0:
            return str(int(number)).zfill(zeros)
        return int(number) if whole and abs(number) < 1e15 else number

    def _range(self, told: str) -> tuple[int, int, int, int]:
        """The ends of a merged range: left, top, right and bottom."""
        first, _, last = told.partition(":")
        (top, left), (bottom, right) = _place(first), _place(last or first)
        if not (0 < top <= bottom <= ROWS and 0 < left <= right <= COLUMNS):
            self.refuse(f"{told[:40]!r} is no range of merged cells; {AGAIN}")
        return left, top, right, bottom

    def grid(self, named: str | None) -> Grid:
        """All rows of a sheet that hold something: of the named one, or of the only one."""
        pages = {page.name: page for page in self.pages}
        chosen = [named] if named is not None else [*pages] if len(pages) == 1 else self.having()
        self.where = self.path
        if len(chosen) > 1:
            self.refuse(
                f"it has several sheets: {', '.join(map(repr, chosen))}; say which, such as "
                f"{self.path}#{chosen[0]}, or put people of several years into one sheet, with a "
                "column for the year"
            )
        if not chosen or chosen[0] not in pages:
            self.refuse(f"it has no sheet {named or 'of cells'!r}; it has {[*pages]}")
        page = pages[chosen[0]]
        sheet = self.sheet(page)
        if sheet.faults:
            shown = ", ".join(sheet.faults[:5]) + (" and more" if len(sheet.faults) > 5 else "")
            self.refuse(f"{shown}; put these cells right")
        said = [f"sheet {page.name!r}"] if len(self.pages) > 1 else []
        said += self._unmerged(sheet)
        hidden = len(sheet.hidden & sheet.rows.keys())
        said += [f"{hidden} hidden rows are read too"] if hidden else []
        rows = [
            Row(line, {k - 1: cell for k, cell in sorted(row.items())}, 0)
            for line, row in sorted(sheet.rows.items())
        ]
        return Grid(self.path, page.name, rows, said)

    def _unmerged(self, sheet: Sheet) -> Iterator[str]:
        """Fill ranges merged over several rows of one column, where rows hold something; say so.

        Values that a merged cell hides are refused.
        """
        known, visits = sorted(sheet.rows), 0
        for left, top, right, bottom in sheet.merged:
            place = f"{_at(top, left)}:{_at(bottom, right)}"
            value = sheet.rows.get(top, {}).get(left)
            lines = known[bisect_left(known, top) : bisect_right(known, bottom)]
            visits += sum(len(sheet.rows[line]) for line in lines)
            if visits > AREA:
                self.refuse(f"merged ranges lie over each other, such as {place}; undo the merging")
            for line in lines:
                row = sheet.rows[line]
                for column in [k for k in row if left <= k <= right and row[k] != value]:
                    why = f"{place} is merged and hides {row[column]!r}; undo the merging"
                    self.refuse(why, _at(line, column))
                if left == right and value is not None:
                    row[left] = value
            if left == right and value is not None and len(lines) > 1:
                yield f"merged cells {place} have {value!r} in each row"

    def having(self) -> list[str]:
        """The visible sheets that have rows; all where there are none."""
        shown = [page for page in self.pages if page.visible] or self.pages
        return [page.name for page in [p for p in shown if self.sheet(p, TOP).has_rows] or shown]


@cache
def _style(code: str) -> tuple[int, bool]:
    from openpyxl.styles.numbers import is_date_format

    return len(code) if re.fullmatch(r"0{2,40}", code) else 0, is_date_format(code)


def _text(unit: Unit) -> str:
    """The text of a cell or shared string, in pieces or not, without how it is spoken (rPh)."""
    texts = zip(unit[::3], unit[3::3], unit[5::3], strict=False)
    return "".join(
        text for before, name, text in texts if name == "v" or (name == "t" and before != "rPh")
    )


def _at(line: int, column: int) -> str:
    return f"{letters(column - 1)}{line}"


def _place(told: str) -> tuple[int, int]:
    """The row and column of a cell by its name, from 1; zeros for what names none."""
    column = told.rstrip("0123456789")
    return int(told[len(column) :] or 0), _column(column)


@cache
def _column(name: str) -> int:
    from openpyxl.utils import column_index_from_string

    with suppress(ValueError):
        return int(column_index_from_string(name.replace("$", "")))
    return 0
