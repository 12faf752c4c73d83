"""Tables: cells as they are written, the numbers that they spell, columns, and what is in them.

Nothing is read that is not sure.
"""

from __future__ import annotations

import decimal
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from reprlib import repr as short
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import absent

Decimal = Literal[".", ","]
Cell = str | int | float | None
"""Text as written, a number that a workbook or frame holds as one, or None for a blank cell."""

INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"  # zero-width characters, which str.strip() leaves
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
SIGN = re.compile("[\u2212\u2012\u2013](?=[0-9])")  # minus signs and dashes in front of a digit
APART = "'\u2019\u00a0\u2009\u202f"  # part thousands and never are decimal marks: 1'234.5
NUMBERS = {  # 1234,5e6 or ,5; 1.234,5, which has both marks, so it can be read in one way; 1'234,5
    mark: re.compile(
        rf"-?(?:(?:0|[1-9][0-9]{{0,14}})(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][-+]?[0-9]+)?"
        rf"|-?[1-9][0-9]{{0,2}}(?:[{other}][0-9]{{3}})+[{mark}][0-9]+"
        rf"|-?[1-9][0-9]{{0,2}}([{APART}])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:[{mark}][0-9]+)?"
    )
    for mark, other in (".,", ",.")
}
THOUSANDS = {mark: re.compile(rf"-?[1-9][0-9]{{0,2}}(?:[{mark}][0-9]{{3}})+") for mark in ".,"}


def bare_text(text: str) -> str:
    """Without blanks of any kind at its ends, and with letters and their accents in one piece."""
    text = unicodedata.normalize("NFC", text).strip()
    while text and (text[0] in INVISIBLE or text[-1] in INVISIBLE):
        text = text.strip(INVISIBLE).strip()
    return text


def written(cell: Cell) -> str | None:
    """What a cell shows: 7 and 7.0 are both "7"."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return None if cell is None else str(cell)


def number(cell: Cell, decimal: Decimal = ".") -> float | None:
    """The number that a cell spells in ASCII digits, with this decimal mark; else None.

    It is an integer where it reads back as written. Leading zeros make a name, such as 007, and so
    do more than eighteen digits, or fifteen with a fraction.
    """
    if not isinstance(cell, str):
        return cell
    plain = SIGN.sub("-", cell, count=1)
    if WHOLE.fullmatch(cell) and cell != "-0":
        return int(cell)
    if not NUMBERS[decimal].fullmatch(plain):
        return None
    kept = re.sub(f"[{APART}{',' if decimal == '.' else '.'}]", "", plain)
    return float(kept.replace(",", "."))


def is_number(cell: Cell) -> bool:
    """Whether a cell spells a number with either decimal mark."""
    return number(cell) is not None or number(cell, ",") is not None


def marks(cells: Iterable[Cell]) -> set[Decimal]:
    """The decimal marks with which every cell of a column is a number."""
    held = {*cells} - {None}
    shapes: tuple[Decimal, ...] = (".", ",")
    return {mark for mark in shapes if all(number(cell, mark) is not None for cell in held)}


def unsure(cells: Sequence[Cell], mark: Decimal) -> bool:
    """Whether all cells with this mark could as well be in thousands: 1,234 but not 1,23."""
    marked = [cell for cell in cells if isinstance(cell, str) and mark in cell]
    return bool(marked) and all(map(THOUSANDS[mark].fullmatch, marked))


@dataclass(frozen=True)
class Places:
    """Where rows and columns of a table stand in its file, for messages a person can follow.

    ``lines`` count from 1 as an editor or a spreadsheet does; ``columns`` are a sheet's letters
    by name, and empty for text files.
    """

    path: str
    lines: Sequence[int] = field(repr=False)
    sheet: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def file(self) -> str:
        return self.path if self.sheet is None else f"{self.path}, sheet {self.sheet!r}"

    def at(self, row: int, column: str | None = None) -> str:
        """``people.csv, line 12`` or ``people.xlsx, sheet 'Students', cell D12``."""
        return place(self.path, self.sheet, self.lines[row], self.columns.get(column or ""))


def place(path: str, sheet: str | None, line: int, letter: str | None) -> str:
    """Where a cell or a row stands in a file."""
    if sheet is None:
        return f"{path}, line {line}"
    return f"{path}, sheet {sheet!r}, {f'cell {letter}' if letter else 'row '}{line}"


class Row(NamedTuple):
    """A line of a file that holds something: its number, its cells by column, how many it has."""

    line: int
    cells: Mapping[int, Cell]
    width: int


class Grid(NamedTuple):
    """The rows of a file or a sheet, and in words how they were read."""

    path: str
    sheet: str | None
    rows: list[Row]
    said: list[str]

    def column(self, column: int) -> str:
        """A column's letters in a sheet, its number in a text."""
        return letters(column) if self.sheet else str(column + 1)

    def place(self, line: int, column: int) -> str:
        """Where a cell stands."""
        return place(self.path, self.sheet, line, self.sheet and letters(column))


def letters(column: int) -> str:
    """A sheet's name for its column: 0 is A, 26 is AA."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(column + 1))


Column = NDArray[Any]
Columns = dict[str, Column]


@dataclass(frozen=True)
class Table:
    """Columns of one length: integers, floats (NaN: missing), booleans or text (None: missing).

    ``cells`` are the same columns as they are written, with None for a blank cell: in a file 1.1
    and 1.10, or 1e3 and 1000, are two houses. A table from a file knows the ``places`` of its
    cells, and has ``said`` how the file was read.
    """

    columns: Columns
    cells: Columns = field(repr=False)
    places: Places | None = field(default=None, repr=False)
    decimal: Decimal | None = None
    said: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            names = ", ".join(self.columns)
            raise ValueError(f"{self.file}there is no column {name!r}; there are {names}")
        return self.columns[name]

    def listed(self, name: str) -> list[Any]:
        """A column of ids, groups or answers as it is written; None for blank cells."""
        _ = self[name]
        return list(self.cells[name].tolist())

    def as_levels(self, name: str) -> Column:
        """A column of answers without an order: numbers only if none is spelled in two ways."""
        column = self[name]
        spellings = {*self.listed(name)} - {None} if column.dtype.kind == "f" else ()
        return self.cells[name] if len(spellings) > len(shown(column)) else column

    def at(self, row: int, column: str | None = None) -> str:
        """Where a row or a cell stands: its line in the file, or its number, counted from 0."""
        return f"row {row}" if self.places is None else self.places.at(row, column)

    def beside(self, row: int, column: str, more: str = "") -> str:
        """The same in brackets, for a table from a file."""
        return f" ({self.places.at(row, column)}{more})" if self.places else ""

    @property
    def file(self) -> str:
        """The name in front of a message about a table from a file, as in "people.csv: …"."""
        return "" if self.places is None else f"{self.places.file}: "

    def rows(self, chosen: ArrayLike) -> Table:
        """These rows, by number or by mask, in this order."""
        index = np.arange(len(self))[np.asarray(chosen)]
        return replace(
            self,
            columns={name: column[index] for name, column in self.columns.items()},
            cells={name: column[index] for name, column in self.cells.items()},
            places=self.places
            and replace(self.places, lines=[self.places.lines[k] for k in index.tolist()]),
        )

    def without_rows_of(self, names: Sequence[str], values: Collection[Any]) -> Table:
        """The rows in which none of these columns holds one of the values, compared as text."""
        gone = {written(value) for value in values}
        listed = zip(*(map(written, self.listed(name)) for name in names), strict=True)
        return self.rows(np.array([gone.isdisjoint(cells) for cells in listed], dtype=bool))

    def respelled(self, spelled: Mapping[str, Mapping[str, str | None] | Sequence[Any]]) -> Table:
        """With other words in place of these, by column, as written; None for a blank cell.

        A list holds codes for "no answer", which become blank cells.
        """
        columns, cells = dict(self.columns), dict(self.cells)
        for name in [name for name in spelled if name in columns and spelled[name]]:
            told = spelled[name]
            if not isinstance(told, Mapping):
                told = {str(written(value)): None for value in told}
            listed = [told.get(str(written(cell)), cell) for cell in cells[name].tolist()]
            columns[name], _ = typed(name, listed, self.decimal)
            cells[name] = as_cells(columns[name], listed)
        return replace(self, columns=columns, cells=cells)


def as_cells(column: Column, given: Sequence[Any]) -> Column:
    """The cells that a column was made of, as they are listed; whole numbers are themselves."""
    return column if column.dtype.kind == "i" else objects(given)


def objects(values: Sequence[Any]) -> Column:
    """A column of these values as they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def missing(column: Column) -> NDArray[np.bool_]:
    """Where a column has no answer."""
    if column.dtype.kind == "O":
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def typed(name: str, cells: Sequence[Cell], decimal: Decimal | None) -> tuple[Column, str]:
    """A file's column as numbers if every cell is one, else as text; and what is in doubt.

    ``decimal`` is the file's own mark where it is known; cells such as ``1,234`` are numbers only
    then, since the mark may part thousands too.
    """
    held = [cell for cell in cells if cell is not None]
    if not all(isinstance(cell, (str, int, float)) for cell in held):
        return column_of(cells), ""
    if held and all(isinstance(cell, str) and cell.endswith("%") for cell in held):
        bare = [None if cell is None else bare_text(str(cell)[:-1]) for cell in cells]
        column, doubt = typed(name, bare, decimal)
        if column.dtype.kind != "O":
            return column, doubt
    fits, doubt = marks(held), ""
    mark: Decimal = "," if fits == {","} else "."
    if len(fits) == 1 and unsure(held, mark) and mark != decimal:
        some = next(str(cell) for cell in held if mark in str(cell))
        doubt = f"{some!r} in column {name!r} may have decimals or thousands, so it stays text"
    elif fits:
        read: dict[Cell, Any] = {cell: number(cell, mark) for cell in {*cells}}
        column = column_of([read[cell] for cell in cells])
        if column.dtype.kind != "O":
            return column, ""
    elif marks({str(cell).replace(",", ".") for cell in held}):
        doubt = f"column {name!r} has decimal commas and points, so it stays text"
    return objects([written(cell) for cell in cells]), doubt


def column_of(cells: Sequence[Any]) -> Column:
    """One type that all present cells share: whole numbers, numbers, yes and no; else text.

    Whole numbers that would lose digits, beyond 2^63 or beside gaps, are text too.
    """
    held = [cell for cell in cells if cell is not None]
    types, full = {*map(type, held)}, len(held) == len(cells)
    whole = full and types <= {int, bool}
    numeric = bool(held) and all(issubclass(one, (Real, decimal.Decimal)) for one in types)
    most = 1 << 63 if whole else 1 << 53
    if not numeric or any(isinstance(cell, int) and abs(cell) >= most for cell in held):
        return objects([None if cell is None else str(written(cell)) for cell in cells])
    if whole:
        return np.array(cells, dtype=bool if types == {bool} else np.int64)
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def plain(value: Any) -> Any:
    """A cell as a plain value: text without blanks around it, dates as text, None for no value."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return bare_text(value) or None
    if type(value) not in (int, bool) and absent(value):
        return None
    return str(value) if hasattr(value, "isoformat") else value


def table(given: Any, wanted: Collection[str] = ()) -> Table:
    """A table from columns by name, a list of dicts, a file, or a pandas or polars frame.

    Files are read as :func:`mlestruct.roommates.reading.read` does it. ``wanted`` columns may be
    levels of a frame's index.

    >>> table([{"id": 7, "age": 20}, {"id": 8, "age": None}])["age"].tolist()
    [20.0, nan]
    """
    if isinstance(given, Table):
        return given
    if isinstance(given, (str, os.PathLike)):
        from mlestruct.roommates.reading import read

        return read(given)
    if isinstance(given, Mapping):
        for name, values in given.items():
            if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
                raise ValueError(f"column {name!r} is {short(values)}; expected a list of values")
        named = {name: list(values) for name, values in given.items()}
    elif isinstance(given, Sequence) and not isinstance(given, (bytes, bytearray, memoryview)):
        strange = next((k for k, row in enumerate(given) if not isinstance(row, Mapping)), None)
        if strange is not None:
            row = short(given[strange])
            raise ValueError(f"row {strange} is {row}; a list of rows holds dicts")
        names = dict.fromkeys(name for row in given for name in row)
        named = {name: [row.get(name) for row in given] for name in names}
    else:
        named = of_frame(given, wanted)
    texts = {str(name): values for name, values in named.items()}
    if len(texts) < len(named):
        raise ValueError(
            f"two columns have one name, as text, among {[*named]}; rename one of them"
        )
    lengths = {name: len(values) for name, values in texts.items()}
    if not texts:
        raise ValueError("a table needs a column, this has none")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns have different lengths: {lengths}")
    cells = {name: [*map(plain, values)] for name, values in texts.items()}
    columns = {name: column_of(given) for name, given in cells.items()}
    return Table(columns, {n: as_cells(columns[n], own) for n, own in cells.items()})


def of_frame(given: Any, wanted: Collection[str]) -> dict[Any, list[Any]]:
    """The columns of a pandas or polars frame, and levels of its index that are ``wanted``."""
    names = list(getattr(given, "columns", ()))
    if not names or not hasattr(given, "shape"):
        raise ValueError(
            "a table is columns by name, a list of dicts, a CSV path, or a pandas or polars frame, "
            f"not a {type(given).__name__}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have one name among {names}; rename one of them")
    levels = getattr(getattr(given, "index", None), "names", None) or ()
    named = [name for name in levels if name in wanted and name not in names]
    given = given.reset_index(named) if named else given
    return {name: given[name].to_list() for name in given.columns}


PHRASES = frozenset(
    """
    -|--|---|—|–|.|..|...|…|/|//|?|??|xxx|#|#n/a|#nv|n/a|na|n.a.|n. a.|nan|null|(blank)|missing
    unknown|undefined|refused|declined|no answer|no response|not answered|no data|not applicable
    not available|not stated|don't know|dont know|do not know|prefer not to say|rather not say
    prefer not to answer|keine angabe|keine angaben|keine antwort|keine aussage|ohne angabe|k.a.
    k. a.|ka|k.a|k/a|weiß nicht|weiss nicht|nicht beantwortet|nicht zutreffend|entfällt|verweigert
    fehlt|unbekannt|leer|(leer)|sans réponse|pas de réponse|non renseigné|nsp|ne sait pas|inconnu
    sin respuesta|no contesta|no sabe|ns/nc|nessuna risposta|non so|geen antwoord|weet niet|n.v.t.
    ingen svar|vet inte|brak odpowiedzi|brak danych|nie wiem|bez odpovědi
    """.strip()
    .replace("\n    ", "|")
    .split("|")
)
CODE = re.compile(r"-?([7-9])\1*|-?[6-9][6-9]|9+[678]|-[1-9]")  # 9, 99, 97, 88, -1, -9, 998
MOST_LEVELS = 40  # of one question; its weights grow with their square
EACH = 5  # faults of one kind in one message
FEW = 60  # more different numbers than that are no scale with a code beside it


def shown(column: Column) -> Counter[str]:
    """How often each answer was given, as it is written."""
    return Counter(str(written(value)) for value in column[~missing(column)].tolist())


def suspects(column: Column) -> dict[str, int]:
    """Values that are probably no answers, the most frequent first, and how many gave each.

    Words are known by a list. Numbers are made of 7, 8 and 9, or are below 0 where no other is,
    and stand apart from the others: 9 is one beside 1 to 5, and none beside 0 to 10.
    """
    counts = shown(column)
    found = [value for value in counts if value.casefold() in PHRASES]
    scale = {value: n for value in counts if (n := number(value)) is not None}
    values = sorted(set(scale.values())) if len(scale) <= FEW else []
    coded = [CODE.fullmatch(str(written(abs(value)))) is not None for value in values]
    apart: set[float] = set()
    for own, codes in ((values, coded), (values[::-1], coded[::-1])):
        steps = np.abs(np.diff(own))
        for k in range(len(steps) - 1, 0, -1):
            if all(codes[k + 1 :]) and steps[k] >= max(2 * steps[:k].max(), 2):
                apart.update(own[k + 1 :])
                break
    below = [value for value in values if value < 0]
    if len(below) == 1 and len(values) > 2 and CODE.fullmatch(str(written(below[0]))):
        apart.add(below[0])
    found += [value for value, n in scale.items() if n in apart]
    return {value: counts[value] for value in sorted(found, key=lambda v: (-counts[v], v))}


def variants(column: Column) -> list[list[str]]:
    """Sets of answers that differ only in case, accents, blanks or signs between words."""
    alike: dict[str, set[str]] = defaultdict(set)
    if column.dtype.kind == "O":
        for value in set(column[~missing(column)].tolist()):
            alike[folded(value)].add(value)
    return sorted(sorted(spellings) for spellings in alike.values() if len(spellings) > 1)


def folded(text: str) -> str:
    """A text by its letters and digits alone; signs where there are no others, and of numbers."""
    if number(text) is not None:
        return text
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(ch for ch in plain if ch.isalnum())
    return kept or plain


KINDS = {"i": "whole numbers", "f": "numbers", "b": "yes/no", "O": "text"}
VALUES = 5  # different ones of a column that are shown


class Surveyed(NamedTuple):
    """One column: its type, gaps, different values, and the first and last of them."""

    column: str
    type: str
    missing: int
    different: int
    values: str


def survey(table: Table) -> list[Surveyed]:
    """Every column in the table's order: all of few values, else the first and the last."""
    found = []
    for name, column in table.columns.items():
        gone = missing(column)
        seen = np.unique(column[~gone].astype(str) if column.dtype.kind == "O" else column[~gone])
        told = [" ".join(str(written(value)).split()) for value in seen.tolist()]
        words = [word if len(word) <= 16 else f"{word[:15]}…" for word in told]
        span = ", ".join(words) if len(words) <= VALUES else f"{words[0]} … {words[-1]}"
        found.append(Surveyed(name, KINDS[column.dtype.kind], int(gone.sum()), len(seen), span))
    return found
