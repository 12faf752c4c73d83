"""Forty more tables as offices have them: read right, or stopped with file, place and remedy.

Each is the same small year of people and its successor, written in another way. ``check`` reads it,
the command that it prints is run as printed, and a plan is made where it can be: nobody shares with
somebody of another gender, or of the year that shares already, without a word.
"""

import csv
import io
import json
import re
import shlex
import tomllib

import numpy as np
import pytest

from mlestruct.cli import main

SIZE = 24  # people of a year; half of them women
NAMES = ["id", "year", "gender", "tidy", "noise", "bedtime", "smokes", "diet"]
WORDS = {"fish": "рыба", "meat": "мясо", "none": "нет", "f": "a woman", "m": "a man"}
SPELLED = {"f": ("f", "F", "female", "w", "weiblich"), "m": ("m", "M", "male", "Mann", "man")}
SCALES = {
    "English": ("never", "rarely", "sometimes", "often", "always"),
    "Spanish": ("nunca", "pocas veces", "a veces", "muchas veces", "siempre"),
}


def clean():
    """People of two years, and the pairs of the first; rows of cells, names first."""
    rng, people, pairs = np.random.default_rng(38), [NAMES], [["id_a", "id_b"]]
    for who in (*range(100, 100 + SIZE), *range(200, 200 + SIZE)):
        answers, smokes, diet = rng.integers(1, 6, 3).tolist(), rng.integers(2), rng.integers(3)
        kinds = ("no", "yes")[smokes], ("fish", "meat", "none")[diet]
        people.append([who, 2022 + who // 100, "fm"[who % 2], *answers, *kinds])
    pairs += [[who, who + 2] for who in range(100, 100 + SIZE) if who % 4 < 2]
    return people, pairs


def partner(who):
    """Who shares with whom: ids two apart in fours."""
    return (who + 2 if who % 4 < 2 else who - 2) if who < 200 else None


HEADERS = {  # other names, of the column of gender among them
    "French": "Numéro|Année|Sexe|Ordre|Bruit|Coucher|Fume|Régime",
    "Polish": "Lp.|Rok|Płeć|Porządek|Hałas|Sen|Pali|Dieta",
    "Japanese": "番号|年|性別|整頓|音|就寝|喫煙|食事",
    "Arabic": "رقم|سنة|جنس|ترتيب|ضجيج|نوم|تدخين|طعام",
    "German": "Nr.|Jg.|Geschl.|Ordn.|Lärm|Bett|Rauch.|Ess.",
    "questions": 'id|year|I am …|How tidy? (1=not, 5=very)|How "loud", then?|Bed\ntime|a, b|c; d',
}
IDS = {  # other ids in both tables
    "addresses": lambda who: f"p.{who}@uni.example",
    "long keys": lambda who: f"{who * 7919:032x}"[::-1],
    "a letter": lambda who: f"{who:07}X",
    "telephone numbers": lambda who: f"+44 20 {who:04}",
}
CELLS = {  # another cell in a column, by the old one and the row
    "a year's two halves": ("year", lambda cell, n: f"{cell}/{cell % 100 + 1}"),
    "years as dates": ("year", lambda cell, n: f"{cell}-09-01"),
    "percent": ("tidy", lambda cell, n: f"{20 * cell}%"),
    "decimal commas": ("noise", lambda cell, n: f"{cell / 2:.1f}".replace(".", ",")),
    "English words": ("tidy", lambda cell, n: SCALES["English"][cell - 1]),
    "Spanish words": ("tidy", lambda cell, n: SCALES["Spanish"][cell - 1]),
    "truths": ("smokes", lambda cell, n: str(cell == "yes").upper()),
    "blanks around": ("diet", lambda cell, n: f" {cell}\u00a0"),
    "Cyrillic letters": ("diet", lambda cell, n: WORDS[cell]),
    "Cyrillic letters of Windows": ("diet", lambda cell, n: WORDS[cell]),
    "gender in a sentence": ("gender", lambda cell, n: f"I am {WORDS[cell]}, yes"),
    "spellings of gender": ("gender", lambda cell, n: SPELLED[cell][n // 2 % 5]),
    "a gender unknown": ("gender", lambda cell, n: "" if n == 30 else cell),
    "codes of three kinds": ("tidy", lambda cell, n: (99, -1, "n/a")[n % 3] if n % 8 < 1 else cell),
}
MORE = {  # a further column, by person and row
    "dates of birth": ("born", lambda who, n: f"{n % 28 + 1}.{n % 12 + 1}.{1990 + n % 9}"),
    "times of a form": ("Timestamp", lambda who, n: f"2024/09/{n % 28 + 1} 10:0{n % 9}:11"),
    "free text": ("remarks", lambda who, n: f'likes "tea", {n} cups\nand quiet'),
    "several answers in a cell": ("hobbies", lambda who, n: ";".join("abcdef"[n % 6 :])),
    "somebody withdrew": ("status", lambda who, n: "withdrawn" if n % 12 < 1 else "here"),
    "partners by id": ("with", lambda who, n: partner(who)),
    "partners by name": ("wish", lambda who, n: partner(who) and f"Ann {partner(who)}"),
    "a partner who is nobody": ("with", lambda who, n: 999 if who == 100 else partner(who)),
    "rooms among people": ("Zimmer", lambda who, n: partner(who) and min(who, partner(who))),
}
TABLES = {  # other tables of people and pairs
    "ids with points": lambda p, r: (p, [r[0], *([f"{a}.0", b] for a, b in r[1:])]),
    "beds of rooms": lambda p, r: (
        p,
        [["room", "bed 1", "bed 2", "bed 3"], *(["R", a, "", b] for a, b in r[1:])],
    ),
    "pairs both ways": lambda p, r: (p, [*r, *([b, a] for a, b in r[1:])]),
    "pairs in one cell": lambda p, r: (p, [["who"], *([f"{a} & {b}"] for a, b in r[1:])]),
    "people in columns": lambda p, r: (list(map(list, zip(*p, strict=True))), r),
    "nobody has an id": lambda p, r: ([row[1:] for row in p], r),
    "a footer": lambda p, r: ([*p, ["Printed on 1.9.2024", *[""] * 7]], r),
    "everybody twice": lambda p, r: ([*p, *p[1:]], r),
    "titles above": lambda p, r: ([["Residents"], [], ["confidential"], *p], r),
    "colons": lambda p, r: (p, r),
    "lines of JSON": lambda p, r: (p, r),
    "a sheet a year": lambda p, r: (p, r),
    "names over two lines": lambda p, r: ([["", "", "", "Questions"], *p], r),
}
ENDS = {  # how ``check`` ends and what it says, where something is to be put right
    "somebody withdrew": (0, r"4 people are 'withdrawn'"),
    "spellings of gender": (1, r"column 'gender': .*mean the same: is that a rule"),
    "a gender unknown": (1, r"people\.csv, line 32 has no 'gender'"),
    "codes of three kinds": (1, r"'tidy': '\S+', \d times, the first in people\.csv, line \d+"),
    "a partner who is nobody": (1, r"people\.csv, line 2: nobody has id '999'"),
    "a footer": (1, r"people\.csv, line 50"),
    "everybody twice": (1, r"id 100 is in people\.csv, line 2 and people\.csv, line 50"),
    "pairs in one cell": (3, r"who shares; name them"),
    "people in columns": (3, r"do people stand in columns"),
    "nobody has an id": (3, r"ids of people; name one"),
    "colons": (3, r"ids of people; name one"),
    "Cyrillic letters of Windows": (2, r"people\.csv, line 2: byte .*save the file as UTF-8"),
    "lines of JSON": (2, r"people\.csv is no table as text, but JSON, .*save it"),
    "a sheet a year": (2, r"book\.xlsx: it has several sheets: '2023', '2024'.*one sheet, with"),
}
CASES = [*HEADERS, *IDS, *CELLS, *MORE, *TABLES]


def made(name):
    """The rows of both tables."""
    people, pairs = clean()
    rows = people[1:]
    if name in HEADERS:
        return [HEADERS[name].split("|"), *rows], pairs
    if name in IDS:
        own = IDS[name]
        people = [people[0], *([own(row[0]), *row[1:]] for row in rows)]
        return people, [pairs[0], *([own(a), own(b)] for a, b in pairs[1:])]
    if name in CELLS:
        (column, cell), changed = CELLS[name], [list(row) for row in rows]
        k = NAMES.index(column)
        for n, row in enumerate(changed):
            row[k] = cell(row[k], n)
        return [people[0], *changed], pairs
    if name in MORE:
        column, cell = MORE[name]
        names = ["name"] if column == "wish" else []
        said = [[*(f"Ann {row[0]}" for _ in names), cell(row[0], n)] for n, row in enumerate(rows)]
        wider = [[*row, *own] for row, own in zip(rows, said, strict=True)]
        shared = None if column in ("with", "wish", "Zimmer") else pairs
        return [[*people[0], *names, column], *wider], shared
    return TABLES[name](people, pairs)


def written(name, folder):
    """The files' names, as they are given to ``check``."""
    people, pairs = made(name)
    if name in ("a sheet a year", "names over two lines"):
        book = pytest.importorskip("openpyxl").Workbook()
        book.remove(book.active)
        parts = {"people": people, "pairs": pairs}
        if name == "a sheet a year":
            parts = {str(y): [NAMES, *(r for r in people if r[1] == y)] for y in (2023, 2024)}
        for title, rows in parts.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        book.save(folder / "book.xlsx")
        return ["book.xlsx#people", "book.xlsx#pairs"] if "people" in parts else ["book.xlsx"]
    tables = {"people.csv": people} | ({} if pairs is None else {"pairs.csv": pairs})
    for file, rows in tables.items():
        text = io.StringIO(newline="")
        signs = {"colons": ":", "decimal commas": ";"}
        csv.writer(text, delimiter=signs.get(name, ",")).writerows(rows)
        shown = text.getvalue()
        if name == "lines of JSON":
            shown = "".join(json.dumps(line.split(",")) + "\n" for line in shown.splitlines())
        encoding = "cp1251" if name.endswith("Windows") else "utf-8"
        (folder / file).write_bytes(shown.encode(encoding))
    return list(tables)


@pytest.mark.parametrize("name", CASES)
def test_files_are_read_right_or_stopped_with_place_and_remedy(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    expected, says = ENDS.get(name, (0, "no faults found"))

    def run(*words):
        return main(list(words)), *capsys.readouterr()

    code, out, err = run("check", *written(name, tmp_path))
    assert code == expected, out + err
    assert re.search(says, out + err), out + err
    if code == 2:
        return
    command = [line for line in out.splitlines() if line.startswith("  mlestruct ")]
    assert len(command) == 1
    code, out, err = run(*shlex.split(command[0])[1:])
    if expected == 3 or code == 2:  # as puzzled as before, or stopped by what check has named
        assert code == 3 or (expected == 1 and re.search(r"people\.csv|column '", err)), err
        return
    assert code == 0
    columns = tomllib.loads((tmp_path / "roommates.toml").read_text())["columns"]
    assert sum(told.get("role") != "ignore" for told in columns.values()) >= 5
    assert f"from {SIZE // 2} pairs" in out or "No answer is surely of influence" in out
    code, out, err = run("roommates", "assign", "--json", "--out", "out")
    if code == 2:  # a plan across what all pairs agree in
        assert re.search("'gender'.* planned pairs do not|line 32 has no 'gender'", err), err
        return
    people = [[str(cell) for cell in row] for row in made(name)[0] if len(row) > 4][-2 * SIZE :]
    rows = {cell: n for n, row in enumerate(people) for cell in row}
    plan = [(rows[str(pair["a"])], rows[str(pair["b"])]) for pair in json.loads(out)["pairs"]]
    assert plan
    for one, other in plan:
        assert one % 2 == other % 2  # nobody across a group
        assert min(one, other) >= SIZE  # nor of the year that shares already
