"""Excel workbooks as grids, by openpyxl: cells by their real types, merged ones in every row."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Collection, Iterator
from typing import Any

from mlestruct.tables.cells import Cell
from mlestruct.tables.grids import Grid, filled, letters

LARGEST = 1 << 29  # bytes that a workbook may unpack to
KINDS = {"xl/": "xlsx", "content.xml": "an OpenDocument sheet (.ods)", "Index/": "a Numbers sheet"}


def is_packed(data: bytes) -> bool:
    """Whether a file is a zip archive, as workbooks are."""
    return data.startswith(b"PK\x03\x04")


def grid(data: bytes, path: str, sheet: str | None, wanted: Collection[str]) -> Grid:
    """One sheet: the named one, else the only one that has rows, or the ``wanted`` names."""
    book = _opened(data, path, False)
    page = _page(book, path, sheet, wanted)
    if any(cell.data_type == "f" for row in page.iter_rows() for cell in row):
        formulas = page
        page = _opened(data, path, True)[page.title]
        _refuse_uncounted(formulas, page, path)
    return _cells(page, path, len(book.sheetnames) > 1)


def sheets(data: bytes, path: str) -> list[str]:
    """The names of the sheets to choose from."""
    return [page.title for page in _having(_opened(data, path, False))]


def _refuse_other_archives(data: bytes, path: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is a damaged workbook or archive ({error})") from error
    if sum(entry.file_size for entry in listed) > LARGEST:
        raise ValueError(f"{path} unpacks to more than {LARGEST >> 20} MB; is it a table?")
    kind = next((k for s, k in KINDS.items() if any(e.filename.startswith(s) for e in listed)), "")
    if kind != "xlsx" or any(e.filename.endswith("workbook.bin") for e in listed):
        words = "a binary workbook (.xlsb)" if kind == "xlsx" else kind or "a packed archive (.zip)"
        raise ValueError(f"{path} is {words}; save the table as .xlsx or as CSV in UTF-8")


def _opened(data: bytes, path: str, values: bool) -> Any:
    import warnings

    _refuse_other_archives(data, path)
    try:
        import openpyxl
    except ImportError as error:
        raise ValueError(
            f"{path} is a workbook, which needs the extra mlestruct[office]: "
            "pip install 'mlestruct[office]', or save the sheet as CSV in UTF-8"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that have no cells
            return openpyxl.load_workbook(io.BytesIO(data), data_only=values)
    except Exception as error:  # whatever a damaged file breaks inside
        raise ValueError(
            f"{path} does not open as a workbook ({type(error).__name__}); open it in your "
            "spreadsheet and save it again as .xlsx"
        ) from error


def _page(book: Any, path: str, sheet: str | None, wanted: Collection[str]) -> Any:
    """The sheet to read."""
    pages = {page.title: page for page in book.worksheets}
    if sheet is not None:
        if sheet not in pages:
            raise ValueError(f"{path} has no sheet {sheet!r}; it has {', '.join(pages)}")
        return pages[sheet]
    having = _having(book)
    fitting = [page for page in having if wanted and _has_names(page, wanted)]
    chosen = fitting or having
    if len(chosen) > 1:
        names = ", ".join(repr(page.title) for page in chosen)
        raise ValueError(
            f"{path} has several sheets: {names}; say which, such as {path}#{chosen[0].title}"
        )
    if not chosen:
        raise ValueError(f"{path} has no sheet of cells, only charts")
    return chosen[0]


def _having(book: Any) -> list[Any]:
    """The visible sheets that have rows; all where there are none."""
    shown = [page for page in book.worksheets if page.sheet_state == "visible"]
    return [page for page in shown if _rows_of(page) > 1] or shown or list(book.worksheets)


def _rows_of(page: Any) -> int:
    """Rows of two cells or more, up to two."""
    count = 0
    for row in page.iter_rows(values_only=True):
        count += sum(value is not None for value in row) > 1
        if count > 1:
            break
    return count


def _has_names(page: Any, wanted: Collection[str]) -> bool:
    rows = page.iter_rows(max_row=30, values_only=True)
    return any(set(wanted) <= {str(v).strip() for v in row if v is not None} for row in rows)


def _refuse_uncounted(formulas: Any, values: Any, path: str) -> None:
    """Formulas that no spreadsheet has evaluated have no value to read."""
    for row in formulas.iter_rows():
        for cell in row:
            if cell.data_type == "f" and values[cell.coordinate].value is None:
                raise ValueError(
                    f"{path}, sheet {formulas.title!r}, cell {cell.coordinate}: the formula has no "
                    "stored value; open the file in your spreadsheet and save it again"
                )


def _cells(page: Any, path: str, several: bool) -> Grid:
    """All rows of a sheet; a merged range has its value in each of its rows."""
    rows: list[list[Cell]] = []
    faults: list[str] = []
    for row in page.iter_rows():
        rows.append([_cell(cell, faults) for cell in row])
    if faults:
        shown = ", ".join(faults[:5]) + (" and more" if len(faults) > 5 else "")
        raise ValueError(f"{path}, sheet {page.title!r}: {shown}; put these cells right")
    said = [f"sheet {page.title!r}"] if several else []
    lines = list(range(page.min_row, page.min_row + len(rows)))
    rows = [[None] * (page.min_column - 1) + row for row in rows]
    said += _unmerged(page, rows)
    hidden = [r for r, size in page.row_dimensions.items() if size.hidden]
    hidden = [r for r in hidden if r - page.min_row < len(rows) and filled(rows[r - page.min_row])]
    said += [f"{len(hidden)} hidden rows are read too"] if hidden else []
    return Grid(rows, lines, path, page.title, tuple(said))


def _unmerged(page: Any, rows: list[list[Cell]]) -> Iterator[str]:
    """Fill ranges merged over several rows of one column; say so."""
    for merged in page.merged_cells.ranges:
        value = rows[merged.min_row - page.min_row][merged.min_col - 1]
        if (
            merged.max_row > merged.min_row
            and merged.max_col == merged.min_col
            and value is not None
        ):
            for line in range(merged.min_row, merged.max_row + 1):
                rows[line - page.min_row][merged.min_col - 1] = value
            yield f"merged cells {merged.coord} have {value!r} in each row"


def _cell(cell: Any, faults: list[str]) -> Cell:
    """Numbers as numbers, or with the zeros that their format shows; dates by year, month, day."""
    value = cell.value
    if value is None or isinstance(value, str):
        if cell.data_type == "e":
            faults.append(f"cell {letters(cell.column - 1)}{cell.row} is an error, {value}")
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        zeros = re.fullmatch(r"0{2,}", cell.number_format or "")
        whole = float(value).is_integer()
        if zeros and whole and value >= 0:
            return str(int(value)).zfill(len(zeros.group()))
        return int(value) if whole and abs(value) < 1e15 else value
    return _when(value)


def _when(value: Any) -> str:
    """A date without its midnight, a time, or whatever else a cell holds."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
