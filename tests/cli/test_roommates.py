"""``mlestruct roommates`` from tables to files, and every mistake answered by a sentence."""

import csv
import json
import shlex
from collections import Counter

import pytest

from mlestruct import data
from mlestruct.cli import main
from mlestruct.tables import table, write_csv

COLUMNS = ["--cohort", "year", "--same", "gender", "--ordinal", "q*"]


@pytest.fixture(scope="module")
def people_and_pairs():
    people, pairs, _ = data.roommates(n=60, years=2, seed=1)
    return people, pairs


@pytest.fixture
def folder(tmp_path, monkeypatch, people_and_pairs):
    """people.csv and pairs.csv, here."""
    monkeypatch.chdir(tmp_path)
    for name, columns in zip(("people", "pairs"), people_and_pairs, strict=True):
        write_csv(f"{name}.csv", columns)
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, people_and_pairs):
    """A model file, learned from year 1."""
    place = tmp_path_factory.mktemp("model")
    for name, columns in zip(("people", "pairs"), people_and_pairs, strict=True):
        write_csv(place / f"{name}.csv", columns)
    tables = [str(place / "people.csv"), str(place / "pairs.csv")]
    path = str(place / "year1.npz")
    order = ["roommates", "fit", *tables, *COLUMNS, "--only", "1", "--model", path]
    assert main([*order, "--protected", "q2"]) == 0
    return path


def refused(capsys, *order):
    """The message of a command that ends with code 2, with a line each for several faults."""
    assert main(["roommates", *order]) == 2
    shown = capsys.readouterr()
    assert all(line.startswith("  ") for line in shown.err.splitlines()[1:])
    assert shown.err.startswith("mlestruct: ")
    return shown.err[len("mlestruct: ") : -1]


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_shipped_example_from_end_to_end(tmp_path, monkeypatch, capsys):
    """The first screen: twenty-four lines that need no statistics, and files."""
    monkeypatch.chdir(tmp_path)
    assert main(["roommates", "--out", "out"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""  # no progress bar in a pipe
    lines = shown.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "600 invented students" in lines[0]
    words = " ".join(shown.out.split())
    assert "200 people in 100 pairs" in words
    assert "the model picks the right one" in words
    assert "What matters most: " in words
    assert "out/report.html" in words
    for jargon in ("left out", "AUC", "Shearer", "surrogate", "ρ", "Bethe", "log-likelihood"):
        assert jargon not in shown.out
    pairs = rows(tmp_path / "out" / "pairs.csv")
    year_3 = {str(who) for who in range(401, 601)}
    assert {row["a"] for row in pairs} | {row["b"] for row in pairs} == year_3
    near = rows(tmp_path / "out" / "probabilities.csv")  # ten partners of everybody, pairs once
    assert 5 * 200 <= len(near) <= 10 * 200
    count = Counter(row[end] for row in near for end in ("a", "b"))
    assert min(count.values()) >= 10
    assert (tmp_path / "out" / "report.html").stat().st_size > 20_000


def test_assign_keeps_the_rules_it_is_given(folder, fitted, capsys):
    base = ["roommates", "assign", "people.csv", "--only", "2", "--model", fitted]
    assert main([*base, "--out", "plain"]) == 0
    plain = [(row["a"], row["b"]) for row in rows("plain/pairs.csv")]
    never, (a, b), (c, d) = plain[:3]
    write_csv("rules.csv", {"rule": ["require", "require"], "id_a": [a, b], "id_b": [c, d]})
    rules = ["--forbid", *never, "--rules", "rules.csv"]
    assert main([*base, *rules, "--out", "ruled"]) == 0
    ruled = {frozenset((row["a"], row["b"])) for row in rows("ruled/pairs.csv")}
    assert {frozenset((a, c)), frozenset((b, d))} <= ruled
    assert frozenset(never) not in ruled
    assert "ruled/report.html" in capsys.readouterr().out


def test_evaluate_reports_what_it_prints(folder, fitted, capsys):
    order = ["evaluate", "people.csv", "pairs.csv", "--only", "2", "--model", fitted]
    assert main(["roommates", *order]) == 0
    out = capsys.readouterr().out
    assert "30 pairs, none of them learned from\nShown a pair that came about" in out
    assert not {"AUC", "Bethe", "log-likelihood", "surrogate"} & set(out.split())
    assert main(["roommates", *order, "--technical", "--out", "again"]) == 0
    assert "  AUC by marginal " in capsys.readouterr().out
    assert "30 pairs, none of them learned from" in (
        folder / "roommates-out" / "report.html"
    ).read_text(encoding="utf-8")


def test_explain_itemises_protected_columns_only_when_asked(folder, fitted, capsys):
    who = str(table("people.csv")["id"][-1])
    order = ["roommates", "explain", "people.csv", who, "--only", "2", "--model", fitted]
    assert main(order) == 0
    shown = capsys.readouterr().out
    assert f"{who} and " in shown
    assert f"others who would suit {who} (" in shown
    assert " times as likely\n" in shown
    assert " q2: " not in shown
    for more, there in ((["--technical"], False), (["--technical", "--show-protected"], True)):
        assert main([*order, *more]) == 0
        shown = capsys.readouterr().out
        assert f"other partners of {who}:" in shown
        assert "\n  q1 " in shown
        assert ("\n  q2 " in shown) == there


FIT = ["fit", "people.csv", "pairs.csv", *COLUMNS]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["fit", "none.csv", "pairs.csv"], "none.csv: No such file or directory"),
        ([*FIT, "--same", "dorm"], "there is no column 'dorm'; there are id, year, gender, q1"),
        ([*FIT, "--ordinal", "x*"], "ordinal: no column is named or fits 'x*'; there are id"),
        ([*FIT, "--id", "number"], "there is no column 'number'; there are id, year"),
        ([*FIT, "--partners", "a,b"], "there are id_a, id_b, year"),
        ([*FIT, "--only", "7"], "nobody has year 7; there are 1, 2"),
        ([*FIT, "--categorical", "q1*"], "column 'q1' is named in categorical, and in ordinal too"),
        (["fit", "people.csv", "pairs.csv", "--only", "1"], "--only needs a cohort"),
        (["assign", "people.csv"], "roommates.npz: No such file or directory"),
        (["assign", "people.csv", "--model", "people.csv"], "people.csv is not a model file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_there_is_named(folder, capsys, order, message):
    assert message in refused(capsys, *order)


def test_an_empty_table_is_called_empty(folder, capsys):
    (folder / "people.csv").write_text("")
    assert refused(capsys, *FIT) == "people.csv is empty; expected a line of column names"
    (folder / "people.csv").write_text("id,year,gender,q1\n")
    assert refused(capsys, *FIT) == "the table of people is empty"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["--forbid", "61", "777"], "--forbid 61 777: nobody has id '777'"),
        (["--require", "61", "61"], "--require 61 61 names 61 twice"),
        (["--forbid", "61", "{f}", "--require", "61", "{f}"], "is both forbidden and required"),
        (["--require", "61", "{f}", "--require", "61", "{g}"], "61 cannot be in 2 pairs"),
        (["--require", "61", "{m}"], "are of groups that never share"),
    ],
)
def test_rules_that_cannot_be_kept(folder, capsys, fitted, rules, message):
    people = table("people.csv")
    later = people.rows(people["year"] == 2)
    mine = later["gender"][later["id"] == 61][0]
    like = [i for i, g in zip(later["id"], later["gender"], strict=True) if g == mine and i != 61]
    other = later["id"][later["gender"] != mine]
    filled = [word.format(f=like[0], g=like[1], m=other[0]) for word in rules]
    order = ["assign", "people.csv", "--only", "2", "--model", fitted, *filled]
    assert message in refused(capsys, *order)


def test_only_leaves_out_rooms_of_other_cohorts(folder, capsys):
    """A list of rooms without years is about people of all of them."""
    with open("pairs.csv", newline="") as file:
        pairs = list(csv.DictReader(file))
    with open("rooms.csv", "w", newline="") as file:
        rows = [[p[end], f"R{k}"] for k, p in enumerate(pairs) for end in ("id_a", "id_b")]
        csv.writer(file).writerows([["id", "room"], *rows])
    common = ["--cohort", "year", "--same", "gender", "--ordinal", "q*", "--room", "room"]
    said = []
    for more in (["--only", "1"], ["--only", "1", "--model", "again.npz", "--json"]):
        assert main(["roommates", "fit", "people.csv", "rooms.csv", *common, *more]) == 0
        said.append(capsys.readouterr().out)
    by_pairs = ["roommates", "fit", "people.csv", "pairs.csv", *common[:-2], "--only", "1"]
    assert main([*by_pairs, "--model", "pairs.npz", "--json"]) == 0
    again, pairwise = json.loads(said[1]), json.loads(capsys.readouterr().out)
    assert again["contrasts"] == pairwise["contrasts"]
    assert main(["roommates", "evaluate", "people.csv", "rooms.csv", "--only", "2"]) == 0


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--rules", "rule,id_a,id_b\nforbid,3,\n", "line 2: a rule is about two people"),
    ],
)
def test_rules_and_consent_with_gaps(folder, fitted, capsys, option, text, said):
    (folder / "list.csv").write_text(text)
    assert said in refused(
        capsys, "assign", "people.csv", "--only", "1", "--model", fitted, option, "list.csv"
    )


def test_commands_run_as_they_are_printed(folder, capsys):
    """From check to a change of the plan, by a project that is elsewhere."""
    (folder / "a b").mkdir()
    order = ["check", "people.csv", "pairs.csv", "--project", "a b/rooms.toml"]
    for verb in ("fit", "fit", "assign", "explain", "change"):
        assert main(order) == 0
        lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
        order = next(words[1:] for words in lines if words[1:3] == ["roommates", verb])
    assert main(order) == 0
    assert "nothing is changed" in capsys.readouterr().out
