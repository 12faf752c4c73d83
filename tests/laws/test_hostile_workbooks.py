"""Hostile and odd files: read as the clean table or refused by name, soon and in little memory."""

from __future__ import annotations

import datetime
import io
import json
import re
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from mlestruct import RoommateModel
from mlestruct.roommates import workbooks
from mlestruct.tables import read, sheets

pytest.importorskip("openpyxl")

SECONDS = 2.0  # of processor time, for any of these files
MEGABYTES = 400  # beside what the interpreter and its modules take

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
KIN = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACK = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
RELATED = f'<Relationships xmlns="{PACK}/relationships">{{}}</Relationships>'
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><fonts><font/></fonts><fills><fill><patternFill/></fill></fills>'
    "<borders><border/></borders><cellStyleXfs><xf/></cellStyleXfs>"
    f"<cellXfs>{'<xf/>' * 10}</cellXfs></styleSheet>"
)
SST = f'<sst xmlns="{MAIN}">{{}}</sst>'
NAMES = ["id", "year", "q1", "q2", "note"]
PEOPLE = [[f"p{k}", 2023 + k % 2, k % 5, k % 3, f"café <{k}>"] for k in range(12)]


def cell(value, place="", style=""):
    where = (f' r="{place}"' if place else "") + style
    if isinstance(value, str):
        text = value.replace("&", "&amp;").replace("<", "&lt;")
        return f'<c{where} t="inlineStr"><is><t>{text}</t></is></c>'
    return f"<c{where}><v>{value}</v></c>"


def row(number, values, told=True):
    cells = (
        cell(value, f"{workbooks.letters(k)}{number}" if told else "")
        for k, value in enumerate(values)
    )
    return f'<row r="{number}">{"".join(cells)}</row>' if told else f"<row>{''.join(cells)}</row>"


ROWS = [row(k, values) for k, values in enumerate([NAMES, *PEOPLE], 1)]


def sheet(rows=ROWS, before="", after="", head=""):
    return (
        f'{head}<worksheet xmlns="{MAIN}">{before}<sheetData>{"".join(rows)}</sheetData>{after}'
        "</worksheet>"
    )


def book(pages=None, strings="", styles=STYLES, parts=(), names="", absolute=False, method=8):
    """A workbook of these sheets' XML, by name."""
    pages = {"People": sheet()} if pages is None else pages
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        kinds = {"workbook": "sheet.main", "sharedStrings": "sharedStrings", "styles": "styles"}
        types = "".join(
            f'<Override PartName="/xl/{n}.xml" ContentType="{TYPE}.{kind}+xml"/>'
            for n, kind in kinds.items()
            if strings or n != "sharedStrings"
        )
        archive.writestr(
            "[Content_Types].xml", f'<Types xmlns="{PACK}/content-types">{types}</Types>'
        )
        office = f'<Relationship Id="r" Type="{KIN}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", RELATED.format(office))
        folder = "/xl/" if absolute else ""
        links = [
            f'<Relationship Id="s{k}" Type="{KIN}/worksheet" Target="{folder}worksheets/{k}.xml"/>'
            for k in range(len(pages))
        ]
        for kind, text in (("sharedStrings", strings), ("styles", styles)):
            if text:
                links.append(f'<Relationship Id="{kind}" Type="{KIN}/{kind}" Target="{kind}.xml"/>')
                archive.writestr(f"xl/{kind}.xml", text)
        archive.writestr("xl/_rels/workbook.xml.rels", RELATED.format("".join(links)))
        listed = "".join(
            f'<sheet name="{n}" sheetId="{k + 1}" r:id="s{k}"/>' for k, n in enumerate(pages)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{KIN}"><sheets>{listed}</sheets>{names}</workbook>',
        )
        for k, text in enumerate(pages.values()):
            archive.writestr(f"xl/worksheets/{k}.xml", text)
        for name, data in parts:
            archive.writestr(name, data)
    return out.getvalue()


def of(*rows, **more):
    return book({"People": sheet([*ROWS, *rows], **more)})


def merged(*ranges):
    listed = "".join(f'<mergeCell ref="{told}"/>' for told in ranges)
    return f"<mergeCells>{listed}</mergeCells>"


def stray(place, inside=""):
    number = re.sub("[^0-9]", "", place)
    return f'<row r="{number}"><c r="{place}" s="1">{inside}</c></row>'


def prefixed():
    return re.sub(r"<(/?)(\w)", r"<\1x:\2", sheet()).replace("xmlns=", "xmlns:x=")


def shared():
    texts = list(dict.fromkeys(v for values in [NAMES, *PEOPLE] for v in values if type(v) is str))
    items = [
        f"<si><r><t>{t.replace('<', '&lt;')}</t></r><rPh sb='0' eb='1'><t>said</t></rPh></si>"
        for t in texts
    ]
    rows = []
    for k, values in enumerate([NAMES, *PEOPLE], 1):
        places = [f"{workbooks.letters(j)}{k}" for j in range(len(values))]
        cells = [
            f'<c r="{p}" t="s"><v>{texts.index(v)}</v></c>' if type(v) is str else cell(v, p)
            for v, p in zip(values, places, strict=True)
        ]
        rows.append(f'<row r="{k}">{"".join(cells)}</row>')
    more = "<si><t>nobody's</t></si>" * 20_000
    return book(
        {"People": sheet(rows)},
        strings=f"<sst xmlns='{MAIN}'>{''.join(items)}{more}</sst>",
    )


MIB = 1 << 20
EMPTY = '<c s="1"/>'
LAST = 1 << 20  # rows of a sheet
RIGHT = {  # read as the clean table
    "plain": lambda: book(),
    "a stray empty cell far down": lambda: of(stray(f"T{LAST}")),
    "an empty cell in the last corner": lambda: of(stray(f"XFD{LAST}")),
    "a stray blank far down": lambda: of(
        f'<row r="{LAST}"><c r="T{LAST}" t="inlineStr"><is><t> \t</t></is></c></row>'
    ),
    "an empty text far right": lambda: of(stray("XFD20", "<v></v>")),
    "a dimension too large": lambda: of(before=f'<dimension ref="A1:XFD{LAST}"/>'),
    "a dimension too small": lambda: of(before='<dimension ref="A1"/>'),
    "a dimension that is none": lambda: of(before='<dimension ref="here"/>'),
    "a blank column merged": lambda: of(after=merged(f"G1:G{LAST}")),
    "every blank column merged": lambda: of(
        after=merged(*(f"{k}1:{k}{LAST}" for k in map(workbooks.letters, range(5, 2000))))
    ),
    "the blank rest merged": lambda: of(after=merged(f"G1:XFD{LAST}", f"A14:F{LAST}")),
    "merged over each other, all blank": lambda: of(after=merged(*[f"G1:XFD{LAST}"] * 60_000)),
    "a merged end of a column": lambda: of(after=merged(f"E13:E{LAST}")),
    "100,000 rows with a format": lambda: of(f'<row s="1" ht="3">{EMPTY * 5}</row>' * 100_000),
    "a million empty rows": lambda: of("<row/>" * 1_000_000),
    "a row with a format to its end": lambda: of(f'<row r="15">{EMPTY * (1 << 14)}</row>'),
    "rows from below": lambda: book({"People": sheet(ROWS[::-1])}),
    "names with a prefix": lambda: book({"People": prefixed()}),
    "UTF-16": lambda: book({"People": sheet(head='<?xml version="1.0"?>').encode("utf-16")}),
    "comments": lambda: of("<!-- <c r='Z9'><v>1</v></c> -->", "<?php 1 ?>"),
    "shared strings": shared,
    "20,000 files": lambda: book(parts=[(f"xl/{k}", b"") for k in range(20_000)]),
    "absolute targets": lambda: book(absolute=True),
    "stored, not packed": lambda: book(method=0),
    "10,000 defined names": lambda: book(
        names=f"<definedNames>{'<definedName>A1</definedName>' * 10_000}</definedNames>"
    ),
    "a picture of 64 MB": lambda: book(parts=[("xl/media/a.png", b"\0" * (64 * MIB))]),
    "100 empty sheets beside": lambda: book(
        {"People": sheet(), **{f"S{k}": sheet([]) for k in range(100)}}
    ),
    "20,000 conditional formats": lambda: of(
        after='<conditionalFormatting sqref="A1:XFD9"><cfRule/></conditionalFormatting>' * 20_000
    ),
}  # fmt: skip

LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
LONG = "x" * 32_000
WRONG = {  # refused, with the place
    "formats without end": (
        lambda: of(f"<row>{EMPTY * 100}</row>" * 30_000),
        r"sheet 'People': .*delete rows",
    ),
    "one long number": (
        lambda: of(row(2, ["p", 2023]).replace("2023", "7" * (16 * MIB))),
        r"a tag or a text of its XML has no end",
    ),
    "one long text": (
        lambda: of(row(2, ["p" * (16 * MIB), 2023])),
        r"a tag or a text of its XML has no end",
    ),
    "one long shared text": (
        lambda: book(strings=SST.format(f"<si><t>{'p' * (16 * MIB)}</t></si>")),
        r"a tag or a text of its XML has no end",
    ),
    "a bomb of blanks": (lambda: of(" " * (300 * MIB)), r"sheet 'People': unpacks to more than"),
    "a tag without end": (lambda: of(f'<row a="{"x" * (3 * MIB)}"/>'), r"sheet 'People': a tag"),
    "nested too deeply": (lambda: of("<a>" * 500_000), r"sheet 'People' does not open"),
    "a billion laughs": (
        lambda: of(f'<row r="20">{cell("a").replace("<t>a", "<t>&i;")}</row>', head=LAUGHS + "]>"),
        r"sheet 'People': .*declares entities",
    ),
    "laughs in shared strings": (
        lambda: book(strings=LAUGHS + "]><sst><si><t>&i;</t></si></sst>"), r"declares entities",
    ),
    "an entity from a file": (
        lambda: of(head='<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]>'),
        r"sheet 'People': .*declares entities",
    ),
    "merged over each other": (
        lambda: of(*(row(k, ["a"]) for k in range(14, 2000)), after=merged(*["A1:A2000"] * 9000)),
        r"sheet 'People'(, cell A2)?: .*undo the merging",
    ),
    "too many merged ranges": (
        lambda: of(after=merged(*(f"G{k}:H{k}" for k in range(1, 70_000)))),
        r"more than 65,536 merged ranges",
    ),
    "a merged range that hides people": (
        lambda: of(after=merged(f"A2:A{LAST}")), r"cell A3: .*hides 'p1'; undo the merging",
    ),
    **{
        f"merged {told}": (lambda told=told: of(after=merged(told)), r"sheet 'People'.*no range")
        for told in ("", "A", "A0:A3", "B2:A1", "A1:XFE1", "A1:A1048577", "A1:A9999999", "1:1")
    },
    **{
        f"a cell at {place!r}": (
            lambda place=place: of(f'<row r="20"><c r="{place}"><v>1</v></c></row>'),
            r"sheet 'People', cell .*no such cell",
        )
        for place in ("A0", "A1048577", "XFE1", "ZZZZ1", "1", "A", "?3", "é3")
    },
    **{
        f"the value {value!r}": (
            lambda value=value: of(f'<row r="20"><c r="A20"><v>{value}</v></c></row>'),
            r"sheet 'People', cell A20: .*no value",
        )
        for value in ("nan", "inf", "1e999", "abc", "9" * 400, "1 2")
    },
    **{
        f"the shared text {value}": (
            lambda value=value: of(f'<row r="20"><c r="A20" t="s"><v>{value}</v></c></row>'),
            r"sheet 'People', cell A20: .*no value",
        )
        for value in ("0", "-1", "x", "9" * 30)
    },
    "a text too long": (lambda: of(row(20, ["x" * 40_000])), r"cell A20: more than 32,767"),
    "one long text in many cells": (
        lambda: book(
            {"People": sheet([*ROWS, *(f'<row r="{k}"><c r="A{k}" t="s"><v>0</v></c></row>'
                                       for k in range(14, 2000))])},
            strings=f"<sst xmlns='{MAIN}'><si><t>{LONG}</t></si></sst>",
        ),
        r"cell A\d+: more than 32 MB of text",
    ),
    "too much shared text": (
        lambda: book(strings=SST.format(f"<si><t>{LONG}</t></si>" * 1200)),
        r"more than 32 MB of text",
    ),
    "300 sheets": (lambda: book({f"S{k}": sheet() for k in range(300)}), "several sheets"),
    "no places told": (
        lambda: book({"People": sheet([row(0, NAMES, told=False)])}), r"cell without a place: ",
    ),
    "an error": (
        lambda: of('<row r="20"><c r="C20" t="e"><v>#N/A</v></c></row>'), r"cell C20 is an error",
    ),
    "a formula never counted": (
        lambda: of('<row r="20"><c r="C20"><f>1+1</f></c></row>'), r"cell C20: the formula",
    ),
    "cut short": (lambda: book()[:-40], r"does not open as a workbook"),
    "XML cut short": (lambda: book({"People": sheet()[:-30]}), r"sheet 'People' does not open"),
    "no sheet": (lambda: book({}), r"no sheet"),
    "an undefined entity": (
        lambda: of('<row r="20"><c r="A20"><v>&a;</v></c></row>'), r"sheet 'People' does not open",
    ),
}  # fmt: skip

CSV = {
    "one enormous line": (lambda: b"id,q1\n1,2\n" + b"a" * (40 * MIB), r"more than 16 MB"),
    "only commas": (lambda: b"," * (40 * MIB), r"more than 16 MB"),
    "lines of commas": (lambda: b"id,q1\n" + b",,,,\n" * (2 * MIB), r"more than 4,194,304 cells"),
    "line ends": (lambda: b"id,q1\n1,2" + b"\n" * (15 * MIB), r"more than 4,194,304 cells or"),
    "old line ends": (lambda: b"id,q1\r1,2" + b"\r" * (15 * MIB), r"more than 4,194,304 cells or"),
    "a quote never closed": (lambda: b'id,q1\n1,"2\n' + b"a,b\n" * (MIB // 2), r"line 2: a"),
    "zeros": (lambda: b"\0" * (15 * MIB), r"line 1: a zero byte"),
    "bytes of no encoding": (lambda: b"id,q1\n" + b"\x81\xe9" * (7 * MIB), r"no UTF-8"),
}  # fmt: skip
CASES = {name: (made, None) for name, made in RIGHT.items()} | WRONG | CSV


def table(data, folder, name):
    path = folder / name
    path.write_bytes(data)
    before = time.process_time()
    try:
        found = read(path)
        return {n: [*map(str, found.listed(n))] for n in found.names}, ""
    except ValueError as error:
        return None, str(error)
    finally:
        assert time.process_time() - before < SECONDS


CLEAN = {name: [str(values[k]) for values in PEOPLE] for k, name in enumerate(NAMES)}


SLOW = ["a bomb of blanks", "formats without end", "a million empty rows"]  # to make, not to read


def some(cases, slow):
    """The cases, of which some are left to the night."""
    return [pytest.param(c, marks=pytest.mark.nightly) if slow(c) else c for c in cases]


@pytest.mark.parametrize("case", some(CASES, SLOW.__contains__))
def test_a_hostile_or_odd_file_is_the_clean_table_or_refused_by_name(case, tmp_path):
    made, why = CASES[case]
    name = "people.csv" if case in CSV else "people.xlsx"
    found, said = table(made(), tmp_path, name)
    if why is None:
        assert found == CLEAN, said
        return
    assert found is None
    assert re.search(why, said), said
    assert name in said


STRAY = {  # one person too many, of whom nothing is known but this cell; or a column too many
    "far down": (lambda: of(stray(f"T{LAST}", "<v>1</v>")), r"cell A1048576 has no 'id'"),
    "far right": (lambda: of(stray("XFD20", "<v>1</v>")), r"cell A20 has no 'id'"),
    "all end far right": (
        lambda: of(
            *(f'<row r="{k}"><c r="AHA{k}"><v>1</v></c></row>' for k in range(20, 10_000))
        ),
        r"cell A20 has no 'id'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STRAY)
def test_values_that_stand_far_away_are_refused_by_name_in_a_fit(case, tmp_path):
    made, why = STRAY[case]
    path = tmp_path / "people.xlsx"
    path.write_bytes(made())
    before = time.process_time()
    with pytest.raises(ValueError, match=r"people\.xlsx, sheet 'People', " + why):
        RoommateModel(ordinal="q1").fit(path, [("p0", "p2"), ("p1", "p3")])
    assert time.process_time() - before < SECONDS


def test_limits_hold_while_a_sheet_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(workbooks, "LARGEST", MIB)
    monkeypatch.setattr(workbooks, "ELEMENTS", 10_000)
    for made, why in (
        (lambda: of(" " * MIB), r"people\.xlsx, sheet 'People': unpacks to more than 1 MB"),
        (lambda: of(f"<row>{EMPTY * 100}</row>" * 100), r"people\.xlsx, sheet 'People': .*10,000"),
        (lambda: of("<row/>" * 10_000), r"people\.xlsx, sheet 'People': .*10,000"),
        (
            lambda: book(strings=f"<sst xmlns='{MAIN}'>{'<si/>' * 10_000}</sst>"),
            r"people\.xlsx: .*10,000",
        ),
        (lambda: book(styles=f"<a>{'<xf/>' * 10_000}</a>"), r"people\.xlsx: .*10,000"),
        (lambda: book(names="<a/>" * 10_000), r"people\.xlsx: .*10,000"),
    ):
        found, said = table(made(), tmp_path, "people.xlsx")
        assert found is None
        assert re.search(why, said), said


@pytest.mark.parametrize("case", some(RIGHT, SLOW.__contains__))
def test_sheets_to_choose_from_are_found_soon(case, tmp_path):
    path = tmp_path / "people.xlsx"
    path.write_bytes(RIGHT[case]())
    before = time.process_time()
    assert sheets(path) == ["People"]
    assert time.process_time() - before < SECONDS


HEAVY = [
    "a stray empty cell far down", "the blank rest merged", "merged over each other",
    "nested too deeply", "line ends",
]  # fmt: skip

CHILD = """
import importlib.util, json, pathlib, resource, sys
spec = importlib.util.spec_from_file_location("hostile", sys.argv[1])
hostile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hostile)
path = pathlib.Path(sys.argv[2])
hostile.read(path.with_name("clean.xlsx"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    hostile.read(path)
except ValueError:
    pass
print(json.dumps((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))
"""


@pytest.mark.parametrize("case", some(CASES, lambda case: case not in HEAVY))
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in kB there")
def test_memory_is_bounded(case, tmp_path):
    path = tmp_path / ("people.csv" if case in CSV else "people.xlsx")
    path.write_bytes(CASES[case][0]())
    (tmp_path / "clean.xlsx").write_bytes(book())
    command = [sys.executable, "-c", CHILD, __file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) < MEGABYTES


def drawn(draws):
    """A workbook whose sheet is odd in several ways at once, none of which changes the table."""
    rows, before, after, ranges = list(ROWS), "", "", []
    if draws.random() < 0.5:
        before = f'<dimension ref="A1:{draws.choice(["A1", "B2", f"XFD{LAST}", "C99999"])}"/>'
    for _ in range(draws.integers(0, 5)):
        place = workbooks.letters(int(draws.integers(0, 1 << 14)))
        rows.append(
            stray(f"{place}{draws.integers(20, LAST)}", draws.choice(["", "<v/>", "<v></v>"]))
        )
    for _ in range(draws.integers(0, 5)):
        left = workbooks.letters(int(draws.integers(5, 1 << 14)))
        ranges.append(f"{left}{draws.integers(1, 99)}:XFD{draws.integers(100, LAST)}")
    if draws.random() < 0.3:
        rows += [f'<row r="{k}" s="3"><c s="1"/><c s="2"/></row>' for k in range(50, 5_000)]
    if draws.random() < 0.5:
        draws.shuffle(rows)
    if ranges:
        after = merged(*ranges)
    if draws.random() < 0.3:
        after += "<hyperlinks>" + '<hyperlink ref="A1"/>' * 1000 + "</hyperlinks>"
    text = sheet(rows, before, after)
    return book({"People": text.encode(draws.choice(["utf-8", "utf-16"]))})


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.nightly)])
def test_odd_sheets_drawn_at_random_are_the_clean_table(count, tmp_path):
    draws = np.random.default_rng(128)
    for _ in range(count):
        found, said = table(drawn(draws), tmp_path, "people.xlsx")
        assert found == CLEAN, said


@pytest.mark.parametrize("count", [150, pytest.param(5_000, marks=pytest.mark.nightly)])
def test_damaged_sheets_are_read_or_refused_and_raise_nothing_else(count, tmp_path):
    """Characters of the XML are exchanged, doubled and lost; only a ValueError may come of it."""
    draws = np.random.default_rng(129)
    whole = sheet(before='<dimension ref="A1:E13"/>', after=merged("G1:G9"))
    signs = [*"<>/=\"'& 0123456789ArcvtsfE.-", "<f>", "<v>", "</c>", ' t="s"', ' t="d"', ' s="9"']
    for _ in range(count):
        text = list(whole)
        for _ in range(draws.integers(1, 6)):
            place = draws.integers(len(text))
            text[place] = str(draws.choice(signs)) if draws.random() < 0.7 else text[place] * 2
        found, said = table(book({"People": "".join(text)}), tmp_path, "people.xlsx")
        assert found is not None or "people.xlsx" in said


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_damaged_archives_are_read_or_refused_and_raise_nothing_else(count, tmp_path):
    draws = np.random.default_rng(130)
    whole = book()
    for _ in range(count):
        data = bytearray(whole)
        for place in draws.integers(4, len(data), size=draws.integers(1, 8)):
            data[place] = draws.integers(256)
        found, said = table(bytes(data), tmp_path, "people.xlsx")
        assert found is not None or "people.xlsx" in said


@pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.nightly)])
def test_cells_are_as_openpyxl_wrote_them(count, tmp_path):
    """Texts, numbers, truths, dates and times, formats with zeros: by what went into the file."""
    import openpyxl

    draws = np.random.default_rng(131)
    kinds = (
        lambda: (v := "".join(draws.choice(list("aé&<>\"' ü漢\n_x"), 6)) + "z", v, None),
        lambda: (v := int(draws.integers(-(10**12), 10**12)), v, None),
        lambda: (v := float(f"{draws.normal() * 10.0 ** draws.integers(-20, 20):.9g}"), v, None),
        lambda: (v := bool(draws.integers(2)), str(v).upper(), None),
        lambda: (v := int(draws.integers(0, 99)), f"{v:04d}", "0000"),
        lambda: (
            v := datetime.date(1950, 1, 1) + datetime.timedelta(int(draws.integers(40_000))),
            v.isoformat(),
            None,
        ),
        lambda: (
            v := datetime.datetime(2020, 2, 28, 23, 5)
            + datetime.timedelta(seconds=int(draws.integers(10**8))),
            v.isoformat(),
            None,
        ),
        lambda: (v := datetime.time(*map(int, draws.integers(1, 24, 3))), v.isoformat(), None),
        lambda: (None, None, None),
    )
    for number in range(count):
        made, expected = openpyxl.Workbook(), []
        made.epoch = openpyxl.utils.datetime.MAC_EPOCH if number % 3 == 2 else made.epoch
        for k in range(1, 15):
            values = [kinds[draws.integers(len(kinds))]() for _ in range(8)]
            for j, (value, _, shown) in enumerate(values, 1):
                own = made.active.cell(k, j, value)
                own.number_format = shown or own.number_format
            expected.append((k, [read_as for _, read_as, _ in values]))
        made.save(tmp_path / "book.xlsx")
        found = workbooks.grid((tmp_path / "book.xlsx").read_bytes(), "book.xlsx", None)
        rows = {row.line: row.cells for row in found.rows}
        expected = {
            k: {
                j: v.strip() if isinstance(v, str) else v
                for j, v in enumerate(values)
                if v is not None
            }
            for k, values in expected
        }
        assert rows == {k: cells for k, cells in expected.items() if cells}
