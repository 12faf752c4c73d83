"""FINDINGS 60: signs that a program would obey are shown; cells end where they end, everywhere."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.cli import main
from mlestruct.errors import HIDDEN, visible
from mlestruct.roommates.report import FORMULA, export_csv
from mlestruct.tables import write_csv

SIGNS = [
    "\x00",
    "\x07",
    "\x1b[2J",
    "\x7f",
    "\x9b",
    "\u202e",
    "\u2066",
    "\u200f",
    "\ufeff",
    "\ud800",
]
SEPARATORS = [",", ";", "\t", "|"]


@pytest.mark.parametrize("sign", SIGNS)
def test_signs_are_shown_wherever_they_go(sign):
    shown = visible(f"a{sign}b")
    assert not HIDDEN.search(shown)
    assert shown.startswith("a\\")


@pytest.mark.parametrize("text", ["a\tb\nc", "é", "نام", "👩‍👩‍👦", "ا‌ب", "Ångström 3 × 4"])
def test_text_stays_text(text):
    assert visible(text) == text


def people(sign):
    ids = [f"p{k}{sign}" for k in range(8)]
    return {"id": ids, "tidy": [k % 3 for k in range(8)]}, [
        (ids[k], ids[k + 1]) for k in range(0, 8, 2)
    ]


@pytest.mark.parametrize("sign", ["\x1b[2J", "\u202e", "\u2066"])
def test_results_reports_and_commands_show_them(sign, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    everybody, pairs = people(sign)
    model = ms.RoommateModel(ordinal="tidy").fit(everybody, pairs)
    plan = model.assign(everybody)
    for words in (plan, model.summary(), model.explain(plan, f"p0{sign}")):
        assert not HIDDEN.search(str(words))
        assert not HIDDEN.search(words._repr_html_())
    write_csv(tmp_path / "people.csv", everybody)
    write_csv(tmp_path / "pairs.csv", {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    files = [str(tmp_path / "people.csv"), str(tmp_path / "pairs.csv")]
    main(["check", *files])
    main(["roommates", "fit", *files, "--ordinal", "tidy", "--model", str(tmp_path / "m.npz")])
    main(["roommates", "fit", files[0], f"none{sign}.csv", "--model", str(tmp_path / "n.npz")])
    out, err = capsys.readouterr()
    assert "none" in err
    assert not HIDDEN.search(out + err)


def test_json_stays_json_and_is_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    everybody, pairs = people("\u202e")
    write_csv(tmp_path / "people.csv", everybody)
    write_csv(tmp_path / "pairs.csv", {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    main(["check", "--json", str(tmp_path / "people.csv"), str(tmp_path / "pairs.csv")])
    out = capsys.readouterr().out
    assert not HIDDEN.search(out)
    json.loads(out)


NASTY = [
    "a;=cmd|' /C calc'!A0",
    "a;  +1",
    "a|@x",
    "x\ty",
    "x\n-1",
    "a;'=1",
    'a";=1',
    "a;\u202d=1",
    "=a",
]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_no_cell_is_a_formula_whatever_separates_cells(separator, tmp_path):
    """As a spreadsheet reads it that splits at another sign, and does not know our quotes."""
    export_csv(tmp_path / "x.csv", {"id": NASTY, "n": np.arange(float(len(NASTY))) - 2})
    text = (tmp_path / "x.csv").read_text(encoding="utf-8")
    if separator == ",":
        cells = [c for row in csv.reader(io.StringIO(text, newline="")) for c in row]
    else:
        cells = [c for line in text.splitlines() for c in line.split(separator)]
    for cell in cells:
        bare = cell.strip().lstrip("\"' ") if separator == "," else cell.strip()
        risky = bare.startswith(FORMULA[:4]) and not re.fullmatch(r"-?[\d.]+", bare)
        assert not (risky and cell.strip()[:1] not in ("'", '"')), cell


def damaged(kind):
    """A sparse matrix whose arrays were set to something else after it was made."""
    matrix = sp.csr_array(np.eye(6, 3))
    if kind == "column beyond":
        matrix.indices[0] = 1 << 28
    elif kind == "column negative":
        matrix.indices[1] = -5
    elif kind == "rows backwards":
        matrix.indptr[2] = 0
    elif kind == "rows beyond":
        matrix.indptr[-1] = 1 << 30
    elif kind == "too few numbers":
        matrix.data = matrix.data[:1]
    elif kind == "column-wise":
        matrix = sp.csc_array(matrix)
        matrix.indices[0] = 1 << 28
    elif kind == "coordinates":
        matrix = sp.coo_array(matrix)
        matrix.coords[0][0] = 1 << 28
    return matrix


@pytest.mark.parametrize(
    "kind",
    ["column beyond", "column negative", "rows backwards", "rows beyond", "too few numbers",
     "column-wise", "coordinates"],
)  # fmt: skip
@pytest.mark.parametrize("door", ["sequence", "structured", "custom"])
def test_damaged_sparse_matrices_are_refused(kind, door):
    bad = damaged(kind)
    whole = [sp.csr_array(np.eye(6, 3)) for _ in range(3)]
    structure = ms.Custom(6, exactly_one=[[0, 1, 2], [3, 4, 5]])
    y = [[1, 0, 0, 0, 1, 0]] * 4
    calls = {
        "sequence": lambda: ms.SequenceModel().fit([*whole, bad], [["a", "b"] * 3] * 4),
        "structured": lambda: ms.StructuredModel(structure, oracle=lambda s: y[0]).fit(
            [*whole, bad], y
        ),
        "custom": lambda: ms.Custom(3, A=bad, upper=1.0),
    }
    with pytest.raises(ValueError, match="damaged"):
        calls[door]()
