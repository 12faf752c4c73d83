"""Tables of any make as named NumPy columns, and back to the user's make."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

EXACT = 1 << 53  # beyond it floats skip integers
Column = NDArray[Any]
Columns = dict[str, Column]


@dataclass(frozen=True)
class Table:
    """Columns of one length: integers, floats (NaN: missing), booleans or text (None: missing).

    ``back`` turns columns into the kind of table this one was made of.
    """

    columns: Columns
    back: Callable[[Columns], Any]

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(self.columns)}")
        return self.columns[name]

    def rows(self, chosen: ArrayLike) -> Table:
        """These rows, by number or by mask, in this order."""
        index = np.arange(len(self))[np.asarray(chosen)]
        return Table({name: column[index] for name, column in self.columns.items()}, self.back)

    def native(self) -> Any:
        """The same rows in the user's kind of table."""
        return self.back(self.columns)


def table(given: Any) -> Table:
    """A table from columns by name, a list of dicts, a CSV path, or a pandas or polars frame.

    In CSV files an empty cell is missing, and a column is a number only if every other cell is one
    that reads back as written (so 007 stays text). Frames need the extra ``mlestruct[tables]``.

    >>> people = table([{"id": 7, "age": 20}, {"id": 8, "age": None}])
    >>> people["age"].tolist(), people.rows([0]).native()
    ([20.0, nan], [{'id': 7, 'age': 20.0}])
    """
    if isinstance(given, Table):
        return given
    if isinstance(given, (str, os.PathLike)):
        return _checked(_read(Path(given)), dict)
    if isinstance(given, Mapping):
        return _checked(_of_columns(given), dict)
    if isinstance(given, Sequence):
        return _checked(_of_rows(given), _to_rows)
    return _of_frame(given)


def missing(column: Column) -> NDArray[np.bool_]:
    """Where a column has no answer."""
    if column.dtype.kind == "O":
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Columns as UTF-8 CSV; missing answers are empty cells."""
    arrays = [np.asarray(column) for column in columns.values()]
    listed = [
        ["" if absent else value for value, absent in zip(a.tolist(), missing(a), strict=True)]
        for a in arrays
    ]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)  # ends lines by \r\n, else a \r inside a cell stays unquoted
        writer.writerow(columns)
        writer.writerows(zip(*listed, strict=True))


def _checked(lists: Mapping[str, list[Any]], back: Callable[[Columns], Any]) -> Table:
    if not lists:
        raise ValueError("a table needs a column, this has none")
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns have different lengths: {lengths}")
    return Table({name: _column(name, values) for name, values in lists.items()}, back)


def _column(name: str, values: list[Any]) -> Column:
    """The one type that all present values share."""
    absent = [_absent(value) for value in values]
    present = [value for value, gone in zip(values, absent, strict=True) if not gone]
    kinds = _kinds(name, values, absent)
    if kinds.keys() <= {"text"}:
        column = np.empty(len(values), dtype=object)
        column[:] = [None if gone else str(v) for v, gone in zip(values, absent, strict=True)]
        return column
    if "text" in kinds:
        row = kinds["text"]
        raise ValueError(f"column {name!r} mixes numbers and text: row {row} is {values[row]!r}")
    if len(present) == len(values) and kinds.keys() == {"boolean"}:
        return np.array(values, dtype=bool)
    if len(present) == len(values) and "float" not in kinds:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError as error:
            raise ValueError(f"column {name!r} holds integers beyond 64 bits") from error
    long = next((v for v in present if _kind(v) == "integer" and abs(v) > EXACT), None)
    if long is not None:
        raise ValueError(f"column {name!r} has gaps or fractions, and {long} would lose digits")
    numbers = zip(values, absent, strict=True)
    return np.array([np.nan if gone else float(v) for v, gone in numbers])


def _kinds(name: str, values: list[Any], absent: list[bool]) -> dict[str, int]:
    """The kinds of values there are, with the last row of each."""
    kinds = {}
    for row, value in enumerate(values):
        if not absent[row]:
            try:
                kinds[_kind(value)] = row
            except ValueError as error:
                raise ValueError(f"column {name!r}, row {row}: {error}") from error
    return kinds


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, np.integer)):
        return "integer"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, str) or hasattr(value, "isoformat"):
        return "text"
    raise ValueError(f"{value!r} is no number, text or date")


def _of_columns(given: Mapping[Any, Any]) -> dict[str, list[Any]]:
    for name, values in given.items():
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise ValueError(f"column {name!r} is {values!r}; expected a list of values")
    columns = {str(name): list(values) for name, values in given.items()}
    if len(columns) < len(given):
        raise ValueError(f"two columns have one name, as text, among {list(given)}")
    return columns


def _of_rows(rows: Sequence[Any]) -> dict[str, list[Any]]:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"row {number} is {row!r}; a list of rows holds dicts")
    names = dict.fromkeys(str(name) for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _to_rows(columns: Columns) -> list[dict[str, Any]]:
    listed = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*listed, strict=True)]


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8; save it as such ({error})") from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        names, *rows = list(reader) or [[]]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    if not names:
        raise ValueError(f"{path} is empty; expected a line of column names")
    if len(names) == 1 and set(names[0]) & set(";\t"):
        raise ValueError(f"{path}: columns are separated by commas; its first line is {names[0]!r}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path} has two columns {twice!r}")
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(f"{path}, row {number}: {len(row)} cells for {len(names)} columns")
    return {name: _parsed([row[k] for row in rows]) for k, name in enumerate(names)}


def _parsed(cells: list[str]) -> list[Any]:
    """Integers, else floats, else the text itself; None for an empty cell."""
    for parse in (_integer, _float):
        try:
            return [None if cell == "" else parse(cell) for cell in cells]
        except ValueError:
            continue
    return [None if cell == "" else cell for cell in cells]


def _integer(cell: str) -> int:
    number = int(cell)
    if str(number) != cell or abs(number) >= 1 << 63:
        raise ValueError(f"{cell!r} would not read back as written")
    return number


def _float(cell: str) -> float:
    digits = cell.lstrip("-")
    longest = 1 if digits[:1] == "0" else 15  # leading zeros and long numbers are names
    if "_" in cell or len(digits.partition(".")[0]) > longest:
        raise ValueError(f"{cell!r} would not read back as written")
    return float(cell)


def _of_frame(given: Any) -> Table:
    try:
        import narwhals as nw
    except ImportError as error:
        raise ValueError(
            f"a {type(given).__name__} needs the extra mlestruct[tables]; without it a table is "
            "columns by name, a list of dicts or the path of a CSV file"
        ) from error
    try:
        frame = nw.from_native(given, eager_only=True)
    except TypeError as error:
        raise ValueError(
            f"a table is columns by name, a list of dicts, a CSV path, or a pandas or polars "
            f"frame, not a {type(given).__name__}"
        ) from error
    lists = {str(name): _listed(frame[name]) for name in frame.columns}

    def back(columns: Columns) -> Any:
        listed = {name: column.tolist() for name, column in columns.items()}
        return nw.from_dict(listed, backend=frame.implementation).to_native()

    return _checked(lists, back)


def _listed(series: Any) -> list[Any]:
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return [None if gone else value for value, gone in pairs]
