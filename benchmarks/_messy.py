"""Tables as offices send them: ways to spoil a clean one, each with what is to come of it.

Every case writes files into a folder and says how a person would ask for them. ``says`` is empty
where they are to be read, with the clean table's weights; else a pattern of what the refusal says:
the file, the line or cell, and what to do. :func:`cases` makes them from generated students, with
names and towns that need an alphabet, halves of hours that need decimals, and free text.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlestruct import RoommateModel, data

Row = list[Any]
SETTINGS: dict[str, Any] = {"cohort": "year", "same": ["gender"], "ordinal": ["q*", "hours"]}
WESTERN = ("Köln", "Zürich", "Münster", "Tübingen", "São Paulo", "Orléans")
NOTES = ("", "likes tea, and quiet", 'says "maybe"', "up late;\nsleeps in")


@dataclass(frozen=True)
class Clean:
    """People and pairs as rows of cells, the names first."""

    people: list[Row]
    pairs: list[Row]

    def column(self, name: str) -> int:
        return int(self.people[0].index(name))

    def partner(self) -> dict[Any, Any]:
        both = [(a, b) for a, b, _ in self.pairs[1:]]
        return {**dict(both), **{b: a for a, b in both}}


@dataclass(frozen=True)
class Given:
    """What to give to ``fit``: paths, and settings beside the usual ones."""

    people: str
    pairs: str | None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A way to spoil tables; ``says``: what the refusal must match; ``blank``: cells to blank."""

    name: str
    write: Callable[[Path, Clean], Given]
    says: str = ""
    like: str = "clean"
    needs: str = ""


def clean(n: int = 40, years: int = 2, seed: int = 3) -> Clean:
    """The tables that the others are to be read as."""
    people, pairs, _ = data.roommates(n, years, seed)
    names = ["id", "name", "town", "year", "gender", "note", *list(people)[3:10], "hours"]
    rows: list[Row] = [names]
    for k, who in enumerate(people["id"].tolist()):
        answers = [people[q][k].item() for q in list(people)[3:10]]
        hours = 0.5 + people["q9"][k].item() / 2
        where = WESTERN[k % len(WESTERN)]
        first = [who, f"Person {who}", where, people["year"][k].item(), people["gender"][k].item()]
        rows.append([*first, NOTES[k % len(NOTES)], *answers, hours])
    listed = zip(*(column.tolist() for column in pairs.values()), strict=True)
    return Clean(rows, [list(pairs), *map(list, listed)])


def blanked(given: Clean) -> Clean:
    """Without the first answer of every seventh person."""
    q = given.column("q1")
    rows = [
        row if k % 7 or not k else [*row[:q], None, *row[q + 1 :]]
        for k, row in enumerate(given.people)
    ]
    return Clean(rows, given.pairs)


def fitted(given: Given, folder: Path) -> RoommateModel:
    """The model of a case's files."""
    settings = {**SETTINGS, "ignore": [], **given.settings}
    paths = [None if p is None else _inside(folder, p) for p in (given.people, given.pairs)]
    return RoommateModel(**settings).fit(*paths)


def _inside(folder: Path, name: str) -> str:
    return str(folder / name)


def as_text(
    rows: Sequence[Row],
    separator: str = ",",
    decimal: str = ".",
    end: str = "\n",
    **how: Any,
) -> str:
    """Rows as CSV."""
    shown = [
        [
            str(c).replace(".", decimal) if isinstance(c, float) else "" if c is None else c
            for c in row
        ]
        for row in rows
    ]
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator, lineterminator=end, **how).writerows(shown)
    return file.getvalue()


def plain(
    encoding: str = "utf-8",
    change: Callable[[list[Row]], list[Row]] = list,
    spoil: Callable[[str], str] = str,
    more: dict[str, Any] | None = None,
    **how: Any,
) -> Callable[[Path, Clean], Given]:
    """A spoiled CSV of people, and pairs in the same style."""

    def write(folder: Path, given: Clean) -> Given:
        rows = change([list(row) for row in given.people])
        (folder / "people.csv").write_bytes(spoil(as_text(rows, **how)).encode(encoding))
        (folder / "pairs.csv").write_bytes(as_text(given.pairs, **how).encode(encoding))
        return Given("people.csv", "pairs.csv", more or {})

    return write


def pairs_of(
    change: Callable[[Clean], list[Row]], name: str | None = "pairs.csv", **more: Any
) -> Callable[[Path, Clean], Given]:
    """Clean people, and another table of who shares."""

    def write(folder: Path, given: Clean) -> Given:
        (folder / "people.csv").write_text(as_text(given.people), encoding="utf-8")
        (folder / "pairs.csv").write_text(as_text(change(given)), encoding="utf-8")
        return Given("people.csv", name, more)

    return write


def among_people(
    name: str, told: Callable[[Clean], dict[Any, Any]], **more: Any
) -> Callable[[Path, Clean], Given]:
    """A further column of people says who shares; there is no table of pairs."""

    def write(folder: Path, given: Clean) -> Given:
        cells = told(given)
        head, *rows = given.people
        wider = [[*head, name], *([*row, cells.get(row[0])] for row in rows)]
        (folder / "people.csv").write_text(as_text(wider, ";", ","), encoding="utf-8")
        return Given("people.csv", None, more)

    return write


def book(
    change: Callable[[Any, Clean], None], people: str = "book.xlsx#people", **more: Any
) -> Callable[[Path, Clean], Given]:
    """A workbook with the sheets people and pairs, spoiled."""

    def write(folder: Path, given: Clean) -> Given:
        import openpyxl

        made = openpyxl.Workbook()
        made.active.title = "people"
        made.create_sheet("pairs")
        for title, rows in (("people", given.people), ("pairs", given.pairs)):
            for row in rows:
                made[title].append([None if cell == "" else cell for cell in row])
        change(made, given)
        made.save(folder / "book.xlsx")
        return Given(people, more.pop("pairs", "book.xlsx#pairs"), more)

    return write


def raw(name: str, content: bytes) -> Callable[[Path, Clean], Given]:
    """A file that is no table."""

    def write(folder: Path, given: Clean) -> Given:
        (folder / name).write_bytes(content)
        (folder / "pairs.csv").write_text(as_text(given.pairs), encoding="utf-8")
        return Given(name, "pairs.csv")

    return write


def cell(name: str, row: int, value: Any) -> Callable[[list[Row]], list[Row]]:
    """Another value in one cell, or in every ``-row``-th."""

    def change(rows: list[Row]) -> list[Row]:
        k = rows[0].index(name)
        for number in [row] if row > 0 else range(-row, len(rows), -row):
            rows[number][k] = value
        return rows

    return change


def column(name: str, value: Callable[[Any], Any]) -> Callable[[list[Row]], list[Row]]:
    """Every cell of a column through a function."""

    def change(rows: list[Row]) -> list[Row]:
        k = rows[0].index(name)
        return [rows[0], *([*row[:k], value(row[k]), *row[k + 1 :]] for row in rows[1:])]

    return change


def everything(value: Callable[[Any], Any]) -> Callable[[list[Row]], list[Row]]:
    """Every cell through a function."""
    return lambda rows: [[value(cell) for cell in row] for row in rows]


def padded(cell: Any) -> Any:
    return f" {cell}\u00a0 " if cell not in ("", None) else "  "


def above(*rows: Row) -> Callable[[list[Row]], list[Row]]:
    """Rows in front of the names."""
    return lambda given: [*rows, *given]


def at(place: int, *rows: Row) -> Callable[[list[Row]], list[Row]]:
    """Rows in the middle."""
    return lambda given: [*given[:place], *rows, *given[place:]]


def rooms(given: Clean) -> dict[Any, Any]:
    """Rooms by person; the same names every year."""
    found: dict[Any, Any] = {}
    number: dict[Any, int] = {}
    for a, b, year in given.pairs[1:]:
        number[year] = number.get(year, 0) + 1
        found[a] = found[b] = f"{100 + number[year]} a"
    return found


def cases() -> Iterator[Case]:
    """All of them."""
    yield from texts()
    yield from together()
    yield from workbooks()
    yield from broken()
    yield from odd_texts()
    yield from odd_books()


def texts() -> Iterator[Case]:
    """CSV that is to be read."""
    yield Case("as it is", plain())
    yield Case("semicolons", plain(separator=";"))
    yield Case("semicolons and decimal commas", plain(separator=";", decimal=","))
    yield Case("decimal commas in quotes", plain(decimal=","))
    yield Case("tabs in UTF-16", plain("utf-16", separator="\t"))
    yield Case(
        "UTF-16 without a mark",
        plain("utf-16-be", separator=";"),
        r"line 1: a zero byte; .* encoding=",
    )
    yield Case("bars", plain(separator="|"))
    yield Case("byte-order mark and Windows lines", plain("utf-8-sig", separator=";", end="\r\n"))
    yield Case("Windows-1252", plain("cp1252", separator=";", decimal=","))
    yield Case(
        "old Mac lines", plain(end="\r", change=column("note", lambda c: c.replace("\n", " ")))
    )
    yield Case("everything in quotes", plain(quoting=csv.QUOTE_ALL))
    yield Case("single quotes", plain(quoting=csv.QUOTE_ALL, quotechar="'", separator=";"))
    yield Case("quotes after blanks", plain(spoil=lambda t: t.replace(',"', ', "')))
    yield Case("quotes after backslashes", plain(doublequote=False, escapechar="\\"))
    yield Case("blanks of all kinds", plain(separator=";", change=everything(padded)))
    yield Case(
        "blanks in groups", plain(change=cell("gender", -9, None), spoil=str), "has no 'gender'"
    )
    yield Case("blank after some answers", plain(change=column("gender", lambda c: f"{c} ")))
    yield Case("title above", plain(change=above(["Wohnheim, Stand 1.9."], [])))
    width = 14
    yield Case(
        "title of full width", plain(separator=";", change=above(["Liste", *[""] * (width - 1)]))
    )
    yield Case("two title lines", plain(change=above(["Liste"], ["Stand:", "1.9.2024"], [])))
    yield Case("groups of questions above", plain(change=above(["Person", *[""] * 5, "Fragen"])))
    yield Case("blank lines", plain(change=at(7, [], [""] * width, [])))
    yield Case(
        "blank lines at the end", plain(spoil=lambda t: t + "\n\n" + "," * (width - 1) + "\n")
    )
    yield Case("names again in the middle", plain(change=lambda rows: at(30, rows[0])(rows)))
    explained = ["Nr.", "Name", "Ort", "Jahr", "m/w", "frei", *(f"Frage {k}" for k in range(8))]
    yield Case(
        "names explained below",
        plain(separator=";", change=at(1, explained)),
        r"'Frage 0' \(.*line 2\)",
    )
    yield Case("sep= in front", plain(separator=";", spoil=lambda t: "sep=;\n" + t))
    yield Case("a column of row numbers", plain(change=_numbered))
    yield Case(
        "separators at the end",
        plain(spoil=lambda t: t, change=lambda r: [[*row, ""] for row in r]),
    )
    yield Case("blanks in names", plain(change=lambda r: [[f" {n}  " for n in r[0]], *r[1:]]))
    yield Case("ids with zeros", _zeros)
    yield Case("a decimal point everywhere", plain(change=column("q2", lambda c: f"{c}.0")))
    yield Case("codes told", plain(change=cell("q1", -7, 99), more=_codes(99)), like="blanked")
    yield Case(
        "words told", plain(change=cell("q1", -7, "k.A."), more=_codes("k.A.")), like="blanked"
    )
    yield Case("blank answers", plain(change=cell("q1", -7, None), more=_codes()), like="blanked")
    yield Case(
        "minus signs",
        plain(change=cell("q1", -7, "\u22129"), more=_codes("\u22129")),
        like="blanked",
    )
    yield Case("years as text", plain(change=column("year", lambda c: c)))


def together() -> Iterator[Case]:
    """Who shares, in other words."""
    pairs = pairs_of
    yield Case(
        "pairs both ways", pairs(lambda g: [*g.pairs, *([b, a, y] for a, b, y in g.pairs[1:])])
    )
    yield Case("pairs and singles", pairs(lambda g: [*g.pairs, [g.people[1][0] * 0, None, 9]]))
    yield Case(
        "a row for each room",
        pairs(
            lambda g: [
                ["room", "bed 1", "bed 2"],
                *([f"R{k}", a, b] for k, (a, b, _) in enumerate(g.pairs[1:])),
            ],
            partners=("bed 1", "bed 2"),
        ),
    )
    yield Case(
        "a row for each person and room",
        pairs(
            lambda g: [["id", "room"], *([who, room] for who, room in rooms(g).items())],
            room="room",
        ),
    )
    yield Case("rooms among people", among_people("room", rooms, room="room"))
    yield Case("partners among people", among_people("with", Clean.partner, partner="with"))
    yield Case(
        "partners one way",
        among_people("with", lambda g: {a: b for a, b, _ in g.pairs[1:]}, partner="with"),
    )
    yield Case(
        "rooms of four",
        pairs(
            lambda g: [["id", "room"], *([r[0], k // 4] for k, r in enumerate(g.people[1:]))],
            room="room",
        ),
        r"pairs\.csv, line 2: 4 people share \(1, 2, 3, 4\); .*larger=leave_out",
    )
    yield Case(
        "partners who disagree",
        among_people(
            "with", lambda g: {**g.partner(), g.pairs[1][0]: g.pairs[2][0]}, partner="with"
        ),
        r"people\.csv, line.*is in another pair too, in .*people\.csv, line",
    )
    yield Case(
        "somebody unknown",
        pairs(lambda g: [*g.pairs, [901, 902, 1]]),
        r"pairs\.csv, line 42: nobody has id 901",
    )
    yield Case(
        "pairs across years",
        pairs(lambda g: [g.pairs[0][:2], [g.pairs[1][0], g.pairs[-1][0]]]),
        r"pairs\.csv, line 2: .*\(year 1, gender [FM]\) and .*\(year 2, gender [FM]\) are",
    )


def workbooks() -> Iterator[Case]:
    """Excel's own files."""
    for case in (
        Case("a workbook", book(lambda b, g: None)),
        Case("two lines of names under a merged title", book(_two_lines)),
        Case("a table that begins at C4", book(_moved)),
        Case("numbers kept as text", book(_texts)),
        Case("zeros by format", book(_formats)),
        Case("dates beside answers", book(_dates)),
        Case("a hidden sheet", book(_hidden, "book.xlsx", pairs="book.xlsx#pairs")),
        Case("merged rooms", book(_merged, pairs=None, room="room")),
        Case(
            "groups of names that repeat",
            book(_repeated),
            r"cell A2: two columns 'Wort' \(B and C\); rename",
        ),
        Case(
            "a formula never counted", book(_formula), r"cell G5: the formula has no stored value"
        ),
        Case("an error in a cell", book(_error), r"sheet 'people': cell G6 is an error, #N/A"),
        Case(
            "several sheets",
            book(_twice, "book.xlsx"),
            r"several sheets: 'people', 'pairs', 'copy'; .*#people",
        ),
        Case("a word among numbers", book(_word), r"such as 'k\.A\.' .*cell G8\); .*no_answer="),
    ):
        yield Case(case.name, case.write, case.says, case.like, "openpyxl")


def broken() -> Iterator[Case]:
    """What is refused, with its place and what to do."""
    yield Case(
        "an id twice",
        plain(change=cell("id", 9, 3)),
        r"id 3 is in .*people\.csv, line 4 and .*line 12",
    )
    yield Case(
        "a cell too few",
        plain(spoil=lambda t: t.replace("\n2,", "\n", 1)),
        r"line 3: 13 cells for 14 columns",
    )
    yield Case(
        "a quote left open",
        plain(spoil=lambda t: t.replace("\n5,", '\n"5,', 1)),
        r"line \d+: a quote",
    )
    yield Case(
        "no names",
        plain(change=lambda rows: [[r[0], *r[3:5], *r[6:]] for r in rows[1:]]),
        r"line 1: .* looks like data",
    )
    yield Case("two encodings", _two_encodings, r"people\.csv, line \d+: byte 0xfc is no UTF-8")
    yield Case("DOS letters", plain("cp850"), r"people\.csv, line \d+: byte .* encoding=")
    yield Case(
        "decimals or thousands",
        plain(separator=";", change=cell("hours", -1, "1.234")),
        r"'hours'.*1\.234",
    )
    yield Case(
        "a word among numbers",
        plain(change=cell("q1", 6, "often")),
        r"'often' \(.*people\.csv, line 8\)",
    )
    yield Case(
        "blank answers",
        plain(change=cell("q1", 6, None)),
        r"person 6 \(.*line 8\).*missing='neutral'",
    )
    yield Case(
        "a column twice",
        plain(change=lambda r: [[*r[0][:-1], "q1"], *r[1:]]),
        r"line 1: two columns 'q1' \(7 and 14\)",
    )
    yield Case(
        "a group missing",
        plain(change=cell("gender", 4, None)),
        r"line 5 has no 'gender'",
    )
    yield Case(
        "an old workbook",
        raw("people.xls", b"\xd0\xcf\x11\xe0" + bytes(99)),
        r"people\.xls is no table .* an old Excel file",
    )
    yield Case(
        "a web page", raw("people.xls", b"<html><table><tr><td>1"), r"web page.*save it as \.xlsx"
    )
    yield Case(
        "a packed table",
        raw("people.csv", b"\x1f\x8b\x08" + bytes(9)),
        r"packed, or the like; save",
    )
    yield Case(
        "two faults at once",
        plain(change=lambda r: cell("q1", 6, "often")(cell("q2", 8, None)(r))),
        r"2 faults:\n.*often.*\n.*person 8",
    )


def odd_texts() -> Iterator[Case]:
    """Neighbours of the others, as CSV: found by trying some two hundred such files."""
    yield Case("letters in two pieces", plain(change=_in_pieces("town")))
    yield Case("ids in two pieces in one table", ids_as(lambda k: f"Jürgen {k}", _taken_apart))
    yield Case("ids like dates", ids_as(lambda k: f"{k % 28 + 1}.{k % 12 + 1}.{2000 + k}"))
    yield Case("ids like houses", ids_as(lambda k: f"{k // 10 + 1}.{k % 10}0"))
    yield Case("ids of eighteen digits", ids_as(lambda k: f"49000000000000{k:04}"))
    yield Case("ids with .0 in one table", ids_as(str, lambda text: f"{text}.0"))
    yield Case(
        "ids with zeros in one table",
        ids_as(lambda k: f"{k:04}", lambda text: str(int(text))),
        r"pairs\.csv, line 2: nobody has id 1; there is '0001'",
    )
    yield Case("thousands by apostrophes", plain(change=_in_thousands("'", ".")))
    yield Case("thousands by narrow blanks", plain(change=_in_thousands("\u202f", ",")))
    yield Case("thousands by points", plain(separator=";", change=_in_thousands(".", ",")))
    yield Case(
        "beds of rooms in three columns",
        pairs_of(
            lambda g: [
                ["room", "bed 1", "bed 2", "bed 3"],
                *([k, *((a, None, b) if k % 2 else (None, a, b))]
                  for k, (a, b, _) in enumerate(g.pairs[1:])),
            ],
            partners=("bed 1", "bed 2", "bed 3"),
        ),
    )  # fmt: skip
    yield Case(
        "ticks and blanks",
        plain(change=_ticked("x"), more={"binary": ["smokes"]}),
        r"'smokes': 53 people have 'x', 27 nothing \(the first .*line 2\); if a blank means no",
    )
    yield Case(
        "ones and blanks",
        plain(change=_ticked(1), more={"binary": ["smokes"], "missing": "neutral"}),
        r"'smokes': 53 people have '1', 27 nothing",
    )
    for word in ("Summe", "Total:", "Ø", "Durchschnitt"):
        row = [word, *[None] * 5, *[99] * 8]
        yield Case(
            f"a line that begins with {word}",
            plain(change=lambda rows, row=row: [*rows, row], more={"missing": "neutral"}),
            rf"line 102: '{word}' looks like a line of totals; delete",
        )
    yield Case(
        "a unit in every cell",
        plain(change=column("hours", lambda c: f"{c} h")),
        r"'hours' holds text such as '\d.*h' \(.*line 2\)",
    )
    yield Case("percent in every cell", plain(change=column("hours", lambda c: f"{c:g} %")))
    yield Case(
        "Mac letters",
        plain("mac_roman", separator=";"),
        r"people\.csv, line \d+: byte .* encoding=",
    )
    yield Case(
        "Polish letters",
        plain("cp1250", change=column("town", lambda c: "Łódź")),
        r"people\.csv, line 2: byte .* encoding=",
    )
    yield Case(
        "a remark among the lines",
        plain(change=at(9, ["# new"])),
        r"people\.csv, line 1[12]: 1 cells for 14 columns",
    )
    yield Case(
        "pairs in one cell",
        pairs_of(lambda g: [["a", "b"], *([f"{a} + {b}", None] for a, b, _ in g.pairs[1:])],
                 partners=("a", "b")),
        r"pairs\.csv, line 2|nothing to learn from",
    )  # fmt: skip


def odd_books() -> Iterator[Case]:
    """The same as workbooks."""
    for name, change, says in (
        ("names in two lines merged both ways", _crossed, ""),
        ("a chart on a sheet of its own", _chart, ""),
        ("a hidden column, and rows hidden by a filter", _filtered, ""),
        ("groups merged over people", _merged_groups, ""),
        ("a legend beside the table", _legend, ""),
        ("years as dates", _dated, ""),
        ("a unit by format", _unit, ""),
        ("a line of totals", _totals, r"cell A82: 'Summe' looks like a line of totals"),
        ("a count below a gap", _count, r"cell B84: 'Anzahl' looks like a line of totals"),
        ("lines that part cohorts", _sections, r"person 'Jahrgang 1' \(.*cell [A-Z]2\)"),
        ("another table below", _below, r"person 'Zimmer' \(.*cell [A-Z]84\)"),
        ("two columns of ids", _two_ids, r"cell A1: two columns 'id' \(A and B\); rename"),
    ):
        yield Case(name, book(change), says, needs="openpyxl")


def ids_as(
    made: Callable[[int], str], other: Callable[[str], str] = str
) -> Callable[[Path, Clean], Given]:
    """Other ids in both tables, spelled in another way in the pairs."""

    def write(folder: Path, given: Clean) -> Given:
        people = column("id", made)(given.people)
        rows = [[other(made(a)), other(made(b)), year] for a, b, year in given.pairs[1:]]
        for name, table in (("people.csv", people), ("pairs.csv", [given.pairs[0], *rows])):
            (folder / name).write_text(as_text(table, ";"), encoding="utf-8")
        return Given("people.csv", "pairs.csv")

    return write


def _taken_apart(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def _in_pieces(name: str) -> Callable[[list[Row]], list[Row]]:
    return column(name, lambda cell: _taken_apart(cell))


def _in_thousands(apart: str, decimal: str) -> Callable[[list[Row]], list[Row]]:
    """Hours beyond a thousand, so that differences stay."""

    def spelled(cell: Any) -> str:
        return f"{1000 + cell:,.1f}".replace(".", "|").replace(",", apart).replace("|", decimal)

    return column("hours", spelled)


def _ticked(mark: Any) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [
        [*rows[0], "smokes"],
        *([*row, mark if k % 3 else None] for k, row in enumerate(rows[1:])),
    ]


def _codes(*values: Any) -> dict[str, Any]:
    return {"no_answer": list(values), "missing": "neutral"}


def _numbered(rows: list[Row]) -> list[Row]:
    return [["", *rows[0]], *([k, *row] for k, row in enumerate(rows[1:]))]


def _zeros(folder: Path, given: Clean) -> Given:
    """Ids of four digits, in both tables."""
    people = column("id", lambda c: f"{c:04}")(given.people)
    pairs = [given.pairs[0], *([f"{a:04}", f"{b:04}", y] for a, b, y in given.pairs[1:])]
    for name, rows in (("people.csv", people), ("pairs.csv", pairs)):
        (folder / name).write_text(as_text(rows, ";"), encoding="utf-8")
    return Given("people.csv", "pairs.csv")


def _two_encodings(folder: Path, given: Clean) -> Given:
    made = plain()(folder, given)
    path = folder / "people.csv"
    path.write_bytes(path.read_bytes().replace("Münster".encode(), "Münster".encode("cp1252"), 1))
    return made


def _two_lines(made: Any, given: Clean) -> None:
    sheet = made["people"]
    sheet.insert_rows(1, 3)
    sheet["A1"] = "Studierende im Wohnheim"
    sheet.merge_cells("A1:N1")
    sheet["A3"], sheet["G3"] = "Person", "Fragen"
    sheet.merge_cells("A3:F3")
    sheet.merge_cells("G3:N3")


def _moved(made: Any, given: Clean) -> None:
    sheet = made["people"]
    sheet.insert_rows(1, 3)
    sheet.insert_cols(1, 2)


def _texts(made: Any, given: Clean) -> None:
    for name in ("q1", "q3", "hours", "year"):
        k = given.column(name) + 1
        for row in range(2, len(given.people) + 1, 2):
            told = made["people"].cell(row, k)
            told.value = str(told.value).replace(".", ",")


def _formats(made: Any, given: Clean) -> None:
    """Ids shown as 0007 by a format in one sheet, and written so in the other."""
    for row in range(2, len(given.people) + 1):
        made["people"].cell(row, 1).number_format = "0000"
    for row in range(2, len(given.pairs) + 1):
        for k in (1, 2):
            made["pairs"].cell(row, k).value = f"{made['pairs'].cell(row, k).value:04}"


def _dates(made: Any, given: Clean) -> None:
    import datetime

    k = len(given.people[0]) + 1
    made["people"].cell(1, k).value = "moved in"
    for row in range(2, len(given.people) + 1):
        made["people"].cell(row, k).value = datetime.datetime(2024, 9, 1 + row % 28)


def _hidden(made: Any, given: Clean) -> None:
    made["pairs"].sheet_state = "hidden"
    for row in (["old", "list"], [1, 2], [3, 4]):
        made.create_sheet("old").append(row)
    for page in made.worksheets[2:]:
        page.sheet_state = "hidden"


def _merged(made: Any, given: Clean) -> None:
    """People sorted by room, the room's cell merged over both."""
    sheet, home = made["people"], rooms(given)
    head, *rows = given.people
    place = {row[0]: k for k, row in enumerate(rows)}
    sheet.cell(1, len(head) + 1).value = "room"
    for who, room in home.items():
        sheet.cell(place[who] + 2, len(head) + 1).value = room
    made.remove(made["pairs"])


def _repeated(made: Any, given: Clean) -> None:
    """Two columns called the same, told apart by the line above."""
    sheet = made["people"]
    sheet.insert_rows(1, 1)
    sheet["B1"], sheet["C1"] = "ihr", "Heimat"
    sheet["B2"] = sheet["C2"] = "Wort"


def _formula(made: Any, given: Clean) -> None:
    made["people"]["G5"] = "=1+2"


def _error(made: Any, given: Clean) -> None:
    made["people"]["G6"] = "#N/A"
    made["people"]["G6"].data_type = "e"


def _word(made: Any, given: Clean) -> None:
    made["people"]["G8"] = "k.A."


def _twice(made: Any, given: Clean) -> None:
    made.copy_worksheet(made["people"]).title = "copy"


def _crossed(made: Any, given: Clean) -> None:
    """Names of people merged over two lines, those of questions under a title of their own."""
    sheet, first = made["people"], given.column("q1") + 1
    sheet.insert_rows(2)
    for k in range(1, first):
        sheet.merge_cells(start_row=1, end_row=2, start_column=k, end_column=k)
    for k in range(first, len(given.people[0]) + 1):
        sheet.cell(2, k).value, sheet.cell(1, k).value = sheet.cell(1, k).value, None
    sheet.cell(1, first).value = "Fragen"


def _chart(made: Any, given: Clean) -> None:
    from openpyxl.chart import BarChart, Reference

    chart = BarChart()
    chart.add_data(Reference(made["people"], min_col=7, min_row=1, max_row=20))
    made.create_chartsheet("Diagramm").add_chart(chart)


def _filtered(made: Any, given: Clean) -> None:
    made["people"].column_dimensions["C"].hidden = True
    for row in range(5, 10):
        made["people"].row_dimensions[row].hidden = True


def _merged_groups(made: Any, given: Clean) -> None:
    """People sorted by gender, whose cell is merged over them."""
    sheet, k = made["people"], given.column("gender")
    rows = sorted(given.people[1:], key=lambda row: str(row[k]))
    for line, row in enumerate(rows, 2):
        for place, cell in enumerate(row, 1):
            sheet.cell(line, place).value = cell
    second = 2 + sum(row[k] == rows[0][k] for row in rows)
    for top, end in ((2, second - 1), (second, len(rows) + 1)):
        sheet.merge_cells(start_row=top, end_row=end, start_column=k + 1, end_column=k + 1)


def _legend(made: Any, given: Clean) -> None:
    for line, text in enumerate(("Legende", "1 = nie", "5 = immer"), 1):
        made["people"].cell(line, len(given.people[0]) + 2).value = text


def _dated(made: Any, given: Clean) -> None:
    """The first of September instead of the year, in both sheets."""
    import datetime

    for name, k in (("people", given.column("year") + 1), ("pairs", 3)):
        for row in range(2, made[name].max_row + 1):
            cell = made[name].cell(row, k)
            cell.value = datetime.date(2020 + cell.value, 9, 1)


def _unit(made: Any, given: Clean) -> None:
    for row in range(2, len(given.people) + 1):
        made["people"].cell(row, given.column("hours") + 1).number_format = '0.0" h"'


def _totals(made: Any, given: Clean) -> None:
    made["people"]["A82"], made["people"]["G82"] = "Summe", 240


def _count(made: Any, given: Clean) -> None:
    made["people"]["B84"], made["people"]["C84"] = "Anzahl", 80


def _sections(made: Any, given: Clean) -> None:
    made["people"].insert_rows(2)
    made["people"]["A2"] = "Jahrgang 1"
    for name in ("year", "gender"):
        made["people"].cell(2, given.column(name) + 1).value = given.people[1][given.column(name)]


def _below(made: Any, given: Clean) -> None:
    for line, row in enumerate((["Zimmer", "Größe"], ["R1", 2], ["R2", 2]), 84):
        for k, cell in enumerate(row, 1):
            made["people"].cell(line, k).value = cell


def _two_ids(made: Any, given: Clean) -> None:
    made["people"].insert_cols(1)
    made["people"]["A1"] = "id"
    for row in range(2, len(given.people) + 1):
        made["people"].cell(row, 1).value = 500 + row


def at_random(number: int) -> Case:
    """A random mixture of styles, each of which alone is to be read."""
    rng = np.random.default_rng(number)
    how: dict[str, Any] = {
        "separator": ",;\t|"[rng.integers(4)],
        "end": ("\n", "\r\n")[rng.integers(2)],
    }
    how["quoting"] = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)[rng.integers(3)]
    how["decimal"] = ".,"[rng.integers(2)]
    encoding = ("utf-8", "utf-8-sig", "cp1252", "utf-16")[rng.integers(4)]
    changes = [  # in this order: names stay what they are until cells are padded
        column("gender", lambda c: f"{c}\t"),
        column("q2", lambda c: f"{c}{how['decimal']}0"),
        everything(padded),
        _numbered,
        lambda rows: at(20, rows[0])(rows),
        at(9, [], [""]),
        above([""] * 3),
        above(["Liste, Stand 1.9."], [], ["(vertraulich)"]),
    ]
    chosen = [change for change in changes if rng.random() < 0.35]

    def change(rows: list[Row]) -> list[Row]:
        for one in chosen:
            rows = one(rows)
        return rows

    return Case(f"mixture {number}", plain(encoding, change, **how))
