"""What five strangers tried: an office, an economist, a planner, a linguist, a user of sklearn."""

from __future__ import annotations

import csv
import io
import re
import types
import warnings
from collections import UserDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mlestruct as ms
from benchmarks._faults.refusal import Bad, fault
from benchmarks._faults.strangers import BAGS, IMAGES, PIXELS, SETS, TAGS, WORDS, strange
from mlestruct import data
from mlestruct.cli import main
from mlestruct.errors import DataWarning

RNG = np.random.default_rng(0)
CASES = list(strange())


@pytest.mark.parametrize("case", CASES, ids=[f"{k} {case.door}" for k, case in enumerate(CASES)])
def test_strange_examples_are_refused_in_our_words(case: Bad):
    assert fault(case) is None


PEOPLE, PAIRS, _ = data.roommates(20, 2, 3)
PEOPLE = {name: PEOPLE[name] for name in ("id", "year", "gender", "q1", "q2", "q3")}
FRAME, SHARED = pd.DataFrame(PEOPLE), pd.DataFrame(PAIRS)


def learned(people=FRAME, pairs=SHARED, **own):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = ms.RoommateModel(cohort="year", same="gender", ordinal="q*", **own)
        model.fit(people, pairs)
    return model.coef_.tobytes(), " ".join(str(one.message) for one in heard)


def answers(kind):
    return FRAME.assign(q1=pd.Series([kind(int(v)) for v in FRAME.q1], dtype=object))


SAME_TABLES = {
    "ids as the index": (FRAME.set_index("id"), SHARED),
    "years and genders as the index": (FRAME.set_index(["year", "gender"]), SHARED),
    "pairs as the index": (FRAME, SHARED.set_index(["id_a", "id_b"])),
    "decimals of a database": (answers(Decimal), SHARED),
    "fractions": (answers(Fraction), SHARED),
    "frames in a column of no use": (FRAME.assign(z=[FRAME] * len(FRAME)), SHARED),
    "spans of time in a column of no use": (FRAME.assign(z=pd.Period("2026")), SHARED),
    "one index for all": (FRAME.set_axis([0] * len(FRAME)), SHARED),
    "a mask of nothing": ({**PEOPLE, "q1": np.ma.masked_equal(PEOPLE["q1"], 99)}, SHARED),
    "sparse": (FRAME.assign(q1=pd.arrays.SparseArray(FRAME.q1)), SHARED),
    "pairs without a year": (FRAME, SHARED.assign(year=np.nan)),
}


@pytest.mark.parametrize("odd", SAME_TABLES)
def test_odd_tables_are_read_as_the_plain_ones(odd):
    assert learned(*SAME_TABLES[odd]) == learned()


def test_a_masked_answer_is_a_missing_one():
    masked = {**PEOPLE, "q1": np.ma.masked_equal(PEOPLE["q1"], 3)}
    gone = FRAME.assign(q1=FRAME.q1.where(FRAME.q1 != 3))
    assert learned(masked, missing="neutral") == learned(gone, missing="neutral")


def rows_of(columns):
    listed = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return [list(columns), *map(list, listed)]


def written(path, rows):
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    path.write_text(file.getvalue())


@pytest.fixture
def office(tmp_path, monkeypatch, capsys):
    """A folder with tables of people and pairs, and what a command says there."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "people.csv", rows_of(PEOPLE))
    written(tmp_path / "pairs.csv", rows_of(PAIRS))

    def told(*arguments):
        code = main([str(one) for one in arguments])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return told


LEARNED = ["--cohort", "year", "--same", "gender", "--ordinal", "q*"]
FIT = ["roommates", "fit", "people.csv", "pairs.csv", *LEARNED]
ASSIGN = ["roommates", "assign", "people.csv", "--only", "2"]


def changed(name, file="people.csv", row=None):
    """Cells of a column through a function, in every row or one."""

    def change(function):
        with open(file) as opened:
            head, *rows = csv.reader(opened)
        for k, cells in enumerate(rows):
            if row in (None, k):
                cells[head.index(name)] = function(cells[head.index(name)])
        with open(file, "w", newline="") as opened:
            csv.writer(opened).writerows([head, *rows])

    return change


@pytest.mark.parametrize(
    "column", ["id", "year"], ids=["ids that a program wrote as 17.0", "years so"]
)
@pytest.mark.parametrize("file", ["people.csv", "pairs.csv"])
def test_whole_numbers_with_a_zero_are_whole_numbers(column, file, office):
    plain = office(*FIT)
    names = {"id": ["id"] if file == "people.csv" else ["id_a", "id_b"], "year": ["year"]}
    for name in names[column]:
        changed(name, file)(lambda cell: f"{cell}.0")
    code, told = office(*FIT, "--force")
    weights = [line for line in told.splitlines() if "|difference|" in line]
    assert code == 0
    assert weights == [line for line in plain[1].splitlines() if "|difference|" in line]


DOUBTED = [
    (changed("year", "pairs.csv", 0), "2", "1 pairs are said to be of another year.*line 2, year"),
    (changed("gender", row=2), str.lower, "count as different|of different groups"),
]


@pytest.mark.parametrize(("change", "value", "says"), DOUBTED)
def test_tables_that_contradict_each_other_are_doubted(change, value, says, office):
    change(value if callable(value) else lambda cell: value)
    assert re.search(says, office(*FIT)[1])


def test_a_code_that_nobody_gave_is_said(office):
    assert "no_answer: nobody gave '90-99'" in office(*FIT, "--no-answer", "90-99")[1]
    assert (
        "nobody gave" not in office(*FIT, "--no-answer", "3", "--missing", "neutral", "--force")[1]
    )


def test_a_group_in_two_spellings_is_said_in_a_plan(office):
    office(*FIT)
    changed("gender", row=25)(str.lower)
    assert "count as different" in office(*ASSIGN)[1]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            ["fit", "people.csv", "pairs.csv", "--model", "people.csv"],
            "is a table that this command",
        ),
        (["fit", "people.csv", "pairs.csv", "--model", "./pairs.csv"], "is a table that this"),
        (["evaluate", "people.csv", "pairs.csv", "--only", "2", "--out", "."], "is a table that"),
    ],
)
def test_a_table_that_is_read_is_never_written_over(more, says, office, tmp_path):
    office(*FIT)
    before = [(tmp_path / name).read_text() for name in ("people.csv", "pairs.csv")]
    code, told = office("roommates", *more, *LEARNED * ("fit" in more), "--force")
    assert (code, says in told) == (2, True)
    assert [(tmp_path / name).read_text() for name in ("people.csv", "pairs.csv")] == before


def test_results_beside_the_tables_have_a_folder_with_a_name(office, tmp_path):
    office(*FIT)
    code, told = office(*ASSIGN, "--out", ".")
    assert code == 0
    assert f"{tmp_path}-2" in told


RULES, ROOMS = "rule,id_a,id_b\n", "room,size,gender,fixed\n"


def rooms(*first):
    genders = PEOPLE["gender"][20:].tolist()
    pairs = {g: (genders.count(g) + 1) // 2 for g in ("F", "M")}
    listed = [f"{g}{k},2,{g}," for g in pairs for k in range(pairs[g])]
    return ROOMS + "\n".join([*first, *listed[len(first) :]]) + "\n"


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("rules", "rule,id_a,id_b,id_c\nforbid,21,22,23\n", "would be a third"),
        ("rules", RULES + ",21,22\n", "and this is blank"),
        ("rooms", rooms("F0,2 Betten,F,"), r"line 2: room 'F0' is for 2 Betten"),
        ("rooms", rooms("F0,2,,"), "line 2 has no 'gender'"),
        ("rooms", rooms("F0,2,f,"), "gender F: 4 rooms have 8 places for 10"),
        ("rooms", rooms("F0,2,F,21 22 23"), "fixed: room 'F0' for 2 cannot be fixed to 3 people"),
    ],
)
def test_lists_of_an_office_are_refused_with_their_place(option, text, says, office, tmp_path):
    office(*FIT)
    (tmp_path / "list.csv").write_text(text)
    code, told = office(*ASSIGN, f"--{option}", "list.csv")
    assert code == 2
    assert re.search(says, told)
    assert "faults" not in told


def test_what_to_do_about_gaps_can_be_done(office):
    office(*FIT)
    changed("q1", row=25)(lambda cell: "")
    assert "fit with --missing neutral" in office(*ASSIGN)[1]


CHOSEN = [np.array([1.0, 0, 1, 0]), np.array([0.0, 1, 1, 0])] * 3
ITEMS = [RNG.normal(size=(4, 2)) for _ in CHOSEN]


def pack(scores):
    return np.isin(np.arange(4), np.argsort(-scores)[:2]) * 1.0


SAME_SOLVERS = {
    "off by what programs leave": lambda s: np.abs(pack(s) - 1e-6),
    "below 0 by it": lambda s: pack(s) - 1e-12,
    "a list so": lambda s: (pack(s) - 1e-9).tolist(),
    "and its value": lambda s: (pack(s) * (1 - 1e-9), float(s @ pack(s))),
    "an instance by name": lambda s, *, instance=None: pack(s),
    "a class method": type("S", (), {"solve": classmethod(lambda c, s: pack(s))}).solve,
}


@pytest.mark.parametrize("form", SAME_SOLVERS)
def test_what_rounding_leaves_is_no_fraction(form):
    plain = ms.StructuredModel(oracle=pack).fit(ITEMS, CHOSEN)
    model = ms.StructuredModel(oracle=SAME_SOLVERS[form]).fit(ITEMS, CHOSEN)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-2)


DICTS = [[{"w": "a", "cap": True}, {"w": "b", "cap": False}], [{"w": "b"}, {"w": "a", "cap": 1}]]
KINDS = [["x", "y"], ["y", "x"]]
SAME_DICTS = {
    "user dicts": UserDict,
    "views": types.MappingProxyType,
    "decimals": lambda d: {
        k: Decimal(v) if isinstance(v, (bool, int)) else v for k, v in d.items()
    },
    "text of NumPy": lambda d: {np.str_(k): np.str_(v) if k == "w" else v for k, v in d.items()},
}


@pytest.mark.parametrize("form", SAME_DICTS)
def test_odd_dicts_are_dicts(form):
    given = [[SAME_DICTS[form](position) for position in x] for x in DICTS]
    assert ms.SequenceModel().fit(given, KINDS).coef_.tobytes() == (
        ms.SequenceModel().fit(DICTS, KINDS).coef_.tobytes()
    )


@pytest.mark.parametrize(
    ("position", "says"),
    [
        ({"w": "a", "cap": "True"}, "'cap' is 'True', and was numbers"),
        ({"w": 3}, "'w' is 3, and was text"),
    ],
)
@pytest.mark.parametrize("asked", ["predict", "predict_marginals", "decode"])
def test_an_attribute_of_another_kind_is_said(position, says, asked):
    model = ms.SequenceModel(weights="all").fit(DICTS * 3, KINDS * 3)
    with pytest.warns(DataWarning, match=says):
        getattr(model, asked)([[position, {"w": "b"}]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(model, asked)([[{"w": "new"}, {"other": 1.0}]])


def test_rows_that_are_series_are_refused():
    rows = [[pd.Series(r, ["a", "b"]) for r in x] for x in WORDS]
    with pytest.raises(ValueError, match=r"example 0 is a list of Series: pass a frame"):
        ms.SequenceModel().fit(rows, TAGS)


def test_255_beside_classes_is_doubted():
    labels = [
        np.where(x[..., 0] > 1, 255, t).astype(np.uint8)
        for x, t in zip(IMAGES, PIXELS, strict=True)
    ]
    with pytest.warns(DataWarning, match=r"labels 0 to 1, and 255.*void=255, else void=None"):
        ms.GridModel().fit(IMAGES, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for void in (255, None):
            ms.GridModel(void=void).fit(IMAGES, labels)
        ms.GridModel().fit(IMAGES, [255 * t for t in PIXELS])


def test_frames_of_polars_are_frames():
    pl = pytest.importorskip("polars")
    rows = pl.DataFrame({"a": BAGS[:, 0], "b": BAGS[:, 1]})
    model = ms.MultiLabelModel().fit(rows, SETS)
    assert model.coef_.tobytes() == ms.MultiLabelModel().fit(BAGS, SETS).coef_.tobytes()
    with pytest.raises(ValueError, match=r"X has columns \['b', 'a'\]"):
        model.predict(rows.select("b", "a"))
    with pytest.raises(ValueError, match=r"for outcomes frame\.to_numpy"):
        ms.SequenceModel().fit(WORDS, pl.DataFrame(np.stack(TAGS)))


class Tensor:
    """An array that refuses to be one, as a tensor does that carries a gradient."""

    shape, ndim = (4, 2), 2

    def __len__(self):
        return 4

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("call detach() first")


def test_an_array_that_refuses_says_why_and_where():
    with pytest.raises(ValueError, match=r"example 2: .*must be numbers: call detach"):
        ms.SequenceModel().fit([*WORDS[:2], Tensor(), WORDS[3]], TAGS)
