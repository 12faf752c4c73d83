"""``mlestruct check``: 0 for sound tables, 1 for faults, 2 for no table, 3 if not understood."""

import json
import shlex

import pytest

from mlestruct import data
from mlestruct.cli import main
from mlestruct.tables import write_csv


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shipped_tables_are_sound(capsys):
    paths = [str(data.shipped(f"roommates_{name}.csv")) for name in ("people", "pairs")]
    assert main(["check", *paths, "--cohort", "year", "--same", "gender"]) == 0
    shown = capsys.readouterr().out
    assert "600 rows, 18 columns" in shown
    assert shown.endswith("no faults found\n")


def test_every_fault_of_every_table_is_listed(here, capsys):
    write_csv(
        "people.csv", {"id": [1, 2, 2, 4], "sex": list("FFMM"), "q": [3] * 4, "p": [1, 2, 1, 2]}
    )
    write_csv("pairs.csv", {"id_a": [1, 1, 9], "id_b": [4, 1, 2]})
    order = ["check", "people.csv", "pairs.csv", "--same", "sex"]
    assert main(order) == 1
    shown = capsys.readouterr().out
    assert [line[4:] for line in shown.splitlines() if line.startswith("  ! ")] == [
        "id 2 is in people.csv, line 3 and people.csv, line 4",
        "pairs.csv, line 4: nobody has id 9",
        "pairs.csv, line 3: 1 is paired with themself",
        "pairs.csv, line 3: 1 is in another pair too, in pairs.csv, line 2",
        "pairs.csv, line 2: 1 (sex F) and 4 (sex M) are of different groups",
    ]
    assert shown.endswith("faults found: 5\n")


def test_what_is_no_table_is_named(here, capsys):
    assert main(["check", "none.csv"]) == 2
    assert capsys.readouterr().err == "mlestruct: none.csv: No such file or directory\n"
    (here / "bytes.csv").write_bytes(b"id,name\n1,B\x81b\n")
    assert main(["check", "bytes.csv"]) == 2
    assert "bytes.csv, line 2: byte 0x81 is no UTF-8" in (told := capsys.readouterr().err)
    assert "--encoding" in told
    (here / "short.csv").write_text("id;q1\n1;2\n3\n")
    assert main(["check", "short.csv"]) == 2
    assert "short.csv, line 3: 1 cells for 2 columns" in capsys.readouterr().err


def test_odd_groups_are_no_fault(here):
    write_csv("people.csv", {"id": [1, 2, 3], "q": [1, 2, 1]})
    assert main(["check", "people.csv"]) == 0


def test_the_proposed_command_learns(here, capsys):
    people, pairs, _ = data.roommates(40, 2, 4)
    people["q1"][::7] = 99
    write_csv("our people.csv", {**people, "key": people["id"] * 0 + 1})
    write_csv("pairs.csv", pairs)
    assert main(["check", "our people.csv", "pairs.csv", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [fault["words"].split(",")[0] for fault in told["faults"]] == ["column 'q1': '99'"]
    assert told["settings"]["cohort"] == "year"
    assert told["settings"]["same"] == ["gender"]
    assert "key" in told["settings"]["ignore"]
    words = shlex.split(told["fit"])
    assert words == ["mlestruct", "roommates", "fit"]
    assert main(words[1:]) == 0
    assert "looks like a code" not in capsys.readouterr().out
