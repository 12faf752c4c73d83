"""``mlestruct check``: 0 for sound tables, 1 with every fault listed, 2 for what is no table."""

import pytest

from mlestruct import data
from mlestruct.cli import main
from mlestruct.tables import write_csv


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shipped_tables_are_sound(capsys):
    paths = [str(data.shipped(f"roommates_{name}.csv")) for name in ("people", "pairs")]
    assert main(["check", *paths, "--cohort", "year", "--same", "gender"]) == 0
    shown = capsys.readouterr().out
    assert "600 rows, 17 columns" in shown
    assert shown.endswith("no faults found\n")


def test_every_fault_of_every_table_is_listed(here, capsys):
    write_csv("people.csv", {"id": [1, 2, 2, 4], "sex": ["F", "F", "M", "M"], "q": [3, 3, 3, 3]})
    write_csv("pairs.csv", {"id_a": [1, 1, 9], "id_b": [4, 1, 2]})
    order = ["check", "people.csv", "pairs.csv", "--same", "sex", "--forbid", "1", "2"]
    assert main(order) == 1
    shown = capsys.readouterr().out
    assert "constant: it tells nobody apart" in shown
    assert [line[4:] for line in shown.splitlines() if line.startswith("  ! ")] == [
        "id 2 is in more than one row",
        "id 2 is in people.csv, lines 3 and 4",
        "row 2: nobody has id 9",
        "row 1: 1 is paired with itself",
        "row 0: 1 (sex F) and 4 (sex M) may not share",
        "id 1 is in more than one pair",
    ]
    assert shown.endswith("faults found: 6\n")


def test_rules_that_leave_somebody_alone_are_faults(here, capsys):
    write_csv("people.csv", {"id": ["a", "b", "c", "d"]})
    order = ["check", "people.csv"]
    for other in "bcd":
        order += ["--forbid", "a", other]
    assert main(order) == 1
    assert "['a'] may not be paired with others" in capsys.readouterr().out


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
