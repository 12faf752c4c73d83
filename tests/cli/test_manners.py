"""Commands say what they read, overwrite nothing, speak JSON and no Python."""

import json
import re
from contextlib import suppress

import pytest

from mlestruct import __version__, data
from mlestruct.cli import main
from mlestruct.roommates.commands import for_shell
from mlestruct.tables import write_csv


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A year of twenty people, here."""
    monkeypatch.chdir(tmp_path)
    people, pairs, _ = data.roommates(20, 1, 2)
    write_csv("people.csv", people)
    write_csv("pairs.csv", pairs)
    return tmp_path


FIT = ["roommates", "fit", "people.csv", "pairs.csv", "--same", "gender", "--ordinal", "q1,q2"]


def test_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mlestruct {__version__}\n"


def test_every_command_speaks_json_and_overwrites_nothing(here, capsys):
    """The output is one JSON object; what a person reads is beside it."""

    def told(*order):
        assert main([*order, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert told(*FIT)["model"] == "roommates.npz"
    before = (here / "roommates.npz").read_bytes()
    assert main(FIT) == 2
    assert "roommates.npz is there already; name another" in capsys.readouterr().err
    assert (here / "roommates.npz").read_bytes() == before
    plan = told("roommates", "assign", "people.csv")
    assert len(plan["pairs"]) == 10
    assert plan["files"][0] == "roommates-out/pairs.csv"
    again = told("roommates", "assign", "people.csv")
    assert again["files"][0] == "roommates-out-2/pairs.csv"
    found = told("roommates", "evaluate", "people.csv", "pairs.csv", "--out", "roommates-out")
    assert found["pairs"] == 10
    assert found["files"][0] == "roommates-out-3/pairs.csv"
    assert told("roommates", "explain", "people.csv", "1")["a"] == 1
    assert told("check", "people.csv", "pairs.csv")["faults"] == []


def test_how_files_were_read_is_said(here, capsys):
    rows = (here / "people.csv").read_text().replace(",", ";")
    (here / "people.csv").write_bytes(f"Liste München;;\n\n{rows}".encode("cp1252"))
    assert main(["check", "people.csv", "pairs.csv"]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("people.csv: 20 rows; Windows-1252, semicolons, names in line 3")
    assert main(["check", "people.csv", "--encoding", "utf-8"]) == 2
    assert "people.csv, line 1: not utf-8" in capsys.readouterr().err
    assert main(["check", "people.csv", "--separator", "tab"]) == 3
    assert "no column looks like ids of people" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("average ones by missing='neutral'", "average ones by --missing neutral"),
        ("say no_answer=q1=99, else trust=q1", "say --no-answer q1=99, else --trust q1"),
        ("name one by partner=", "name one by --partner"),
        ("larger=leave_out", "--larger leave_out"),
        ("a=b and 1=2", "a=b and 1=2"),
    ],
)
def test_messages_are_put_in_the_shell_s_words(python, shell):
    assert for_shell(python) == shell


@pytest.mark.parametrize("alpha", ["0", "-1", "nan", "inf", ""])
def test_alpha_is_above_zero(here, capsys, alpha):
    with suppress(SystemExit):
        assert main([*FIT, "--alpha", alpha]) == 2
    assert re.search("alpha is .*must be positive|needs numbers above 0", capsys.readouterr().err)


def test_rooms_consent_and_new_answers_from_the_shell(here, capsys):
    people, _, _ = data.roommates(20, 1, 2)
    who = people["id"][people["gender"] == "F"].tolist()
    men = people["id"][people["gender"] == "M"].tolist()
    people["q1"][0] = 9
    write_csv("later.csv", people)
    assert main([*FIT, "--model", "m.npz"]) == 0
    order = ["roommates", "assign", "later.csv", "--model", "m.npz"]
    assert main(order) == 2
    assert "--unknown neutral" in capsys.readouterr().err
    names = [f"F{k}" for k in range(5)] + [f"M{k}" for k in range(5)]
    fixed = [f"{who[0]}, {who[3]}", *[None] * 8, f"{men[0]},{men[5]}"]
    columns = {"room": names, "size": [2] * 10, "gender": ["F"] * 5 + ["M"] * 5}
    write_csv("rooms.csv", columns | {"fixed": fixed})
    allowed = {"rule": ["allow"] * 2, "id_a": [who[1]] * 2, "id_b": [who[2], who[4]]}
    write_csv("rules.csv", allowed)
    more = ["--rooms", "rooms.csv", "--rules", "rules.csv", "--unknown", "neutral"]
    assert main([*order, *more, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    home = {frozenset((p["a"], p["b"])): p["room"] for p in plan["pairs"]}
    assert home[frozenset((who[0], who[3]))] == "F0"
    assert home[frozenset((men[0], men[5]))] == "M4"
    assert {frozenset((who[1], who[2])), frozenset((who[1], who[4]))} & set(home)
    assert plan["notes"][0].startswith("column 'q1': 9, new since the fit, counts as an average")


@pytest.mark.parametrize(
    "command",
    [
        "check people.csv pairs.csv --id nope",
        "check people.csv pairs.csv --cohort nope",
        "check people.csv pairs.csv --same gender,nope",
        "check people.csv pairs.csv --partners id_a,nope",
        "check people.csv pairs.csv --header 0",
        "check people.csv pairs.csv --header x",
        "roommates fit people.csv pairs.csv --ordinal q* --alpha x",
        "roommates fit people.csv pairs.csv --ordinal q* --alpha 0",
        "roommates serve --port 99999",
        "roommates serve --port x",
        "roommates serve --project people.csv",
    ],
)
def test_no_words_of_python_and_no_traceback(here, capsys, command):
    """What was wrong is named as it was typed."""
    try:
        code = main(command.split())
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err.splitlines()[-1]
    assert code == 2
    words = command.split()
    assert words[-1].split(",")[-1].split("=")[-1] in said
    assert not set(said.replace("'", " ").split()) & {"int", "float", "invalid", "None"}
