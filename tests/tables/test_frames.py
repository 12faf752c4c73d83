"""Tables: every make gives the same columns, goes back to its make, and misuse has a place."""

import numpy as np
import pytest

from mlestruct.tables import missing, read, table, write_csv

COLUMNS = {
    "id": [7, 8, 9],
    "age": [20.5, None, 22.0],
    "name": ["Ann", None, "Ćiril, jr."],
    "early": [True, False, True],
}


def rows():
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def nullable_frame():
    return pytest.importorskip("pandas").DataFrame(COLUMNS).convert_dtypes()


def polars_frame():
    return pytest.importorskip("polars").DataFrame(COLUMNS)


MAKES = {
    "columns": lambda: COLUMNS,
    "arrays": lambda: {n: np.array(v, dtype=object) for n, v in COLUMNS.items()},
    "rows": rows,
    "pandas": pandas_frame,
    "nullable": nullable_frame,
    "polars": polars_frame,
}


@pytest.mark.parametrize("make", MAKES)
def test_every_make_gives_the_same_columns(make):
    """Numbers with missing answers are floats with NaN, text has None, and nothing else changes."""
    found = table(MAKES[make]())
    assert found.names == list(COLUMNS)
    assert len(found) == 3
    assert found["id"].dtype == np.int64
    assert found["early"].dtype == bool
    np.testing.assert_array_equal(found["age"], [20.5, np.nan, 22.0])
    assert found["name"].tolist() == ["Ann", None, "Ćiril, jr."]
    assert [missing(found[n]).tolist() for n in found.names] == [
        [False] * 3,
        [False, True, False],
        [False, True, False],
        [False] * 3,
    ]


def test_csv_round_trip(tmp_path):
    path = tmp_path / "people.csv"
    write_csv(path, table({n: COLUMNS[n] for n in ("id", "age", "name")}).columns)
    assert path.read_text(encoding="utf-8").splitlines()[2] == "8,,"
    found = table(path)
    assert found["id"].tolist() == [7, 8, 9]
    np.testing.assert_array_equal(found["age"], [20.5, np.nan, 22.0])
    assert found["name"].tolist() == ["Ann", None, "Ćiril, jr."]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2"], [1, -2]),
        (["1", "2.5"], [1.0, 2.5]),
        (["007", "8"], ["007", "8"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["9007199254740993"], [9007199254740993]),
        (["90071992547409930000", "1"], ["90071992547409930000", "1"]),
        (["0.5", "-0.25"], [0.5, -0.25]),
        (["1e-3", "2"], [0.001, 2.0]),
        (["yes", "2"], ["yes", "2"]),
    ],
)
def test_csv_cells_are_numbers_only_if_nothing_is_lost(tmp_path, cells, expected):
    """Leading zeros and numbers too long for a float stay text."""
    path = tmp_path / "one.csv"
    path.write_text("\ufeffx\n" + "\n".join(cells) + "\n", encoding="utf-8")
    found = table(path)["x"].tolist()
    assert found == expected
    assert [type(v) for v in found] == [type(v) for v in expected]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": [1, 2], "b": [1]}, "columns have different lengths: {'a': 2, 'b': 1}"),
        ([{"a": 1}, 5], "row 1 is 5; a list of rows holds dicts"),
        (5, "not a int"),
    ],
)
def test_misuse_names_the_column_or_row(given, message):
    with pytest.raises(ValueError, match=message):
        table(given)["a"]
    with pytest.raises(ValueError, match=r"there is no column 'c'; there are a, b"):
        table({"a": [1], "b": [2]})["c"]


KINDS = {
    "columns": dict,
    "rows": lambda columns: [dict(zip(columns, row)) for row in zip(*columns.values())],  # noqa: B905
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_numbers_and_text_is_text_until_codes_are_taken_out(kind):
    """As in files; the others are as ever."""
    columns = {"id": [1, 2, 3], "q": [4, "n/a", 5], "note": ["x", 1, None], "long": [1 << 70] * 3}
    found = table(KINDS[kind](columns))
    assert found["id"].tolist() == [1, 2, 3]
    assert found["q"].tolist() == ["4", "n/a", "5"]
    assert found["note"].tolist() == ["x", "1", None]
    assert found["long"].tolist() == [str(1 << 70)] * 3
    coded = found.rows([0, 1, 2]).respelled({"q": ["n/a"], "id": []})
    np.testing.assert_array_equal(coded["q"], [4, np.nan, 5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a line of column names"),
        ("a,a\n1,2\n", "line 1: two columns 'a' .1 and 2.; rename"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells for 2 columns"),
        pytest.param(
            "a" * 200_000 + "\n1\n", "line 1: .* a cell has more than 131072 signs", id="endless"
        ),
    ],
)
def test_broken_csv_is_refused_with_the_row(tmp_path, text, message):
    path = tmp_path / "broken.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        table(path)


@pytest.mark.parametrize(
    ("cells", "told", "expected"),
    [
        (["1,5", "2,0"], None, [1.5, 2.0]),
        (["1.234,5", "7,0"], None, [1234.5, 7.0]),
        (["1,234.5", "7.0"], None, [1234.5, 7.0]),
        (["1.234", "2.345"], None, ["1.234", "2.345"]),
        (["1.234", "2.345"], ".", [1.234, 2.345]),
        (["1,234", "2,345"], ",", [1.234, 2.345]),
        (["1,5", "1.5"], None, ["1,5", "1.5"]),
        (["\u22121,5", "2"], None, [-1.5, 2.0]),
        (["١٢", "3"], None, ["١٢", "3"]),
        (["1 234", "2"], None, ["1 234", "2"]),
    ],
)
def test_decimal_marks_are_found_or_left_alone(tmp_path, cells, told, expected):
    """A number is read where it can be read in one way only, or where the mark is told."""
    path = tmp_path / "one.csv"
    path.write_text("x;y\n" + "".join(f"{cell};a\n" for cell in cells), encoding="utf-8")
    assert read(path, decimal=told)["x"].tolist() == expected


@pytest.mark.parametrize("encoding", ["mac_roman", "cp850"])
def test_other_alphabets_are_refused_not_misread(tmp_path, encoding):
    path = tmp_path / "one.csv"
    path.write_bytes("name;x\nMüller;1\nSchäfer;2\n".encode(encoding))
    with pytest.raises(ValueError, match=r"one\.csv, line 2: byte 0x.* is no UTF-8.*encoding="):
        read(path)
    assert read(path, encoding=encoding)["name"].tolist() == ["Müller", "Schäfer"]


def test_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text('Title\n\nx,y\n1,"a\nb"\n\n2,c\n3,d\n', encoding="utf-8")
    found = read(path)
    assert [found.at(k) for k in range(3)] == [f"{path}, line {n}" for n in (4, 7, 8)]
    assert found.rows([2]).at(0, "y") == f"{path}, line 8"
