"""Ids and who shares are found by names and values, whatever they are called; or not at all."""

import numpy as np
import pytest

from mlestruct import data
from mlestruct.roommates.doctor import examine, who_is_who
from mlestruct.tables import table
from tests.doctor import faults_of


def year(rng):
    people, pairs, _ = data.roommates(40, 2, int(rng.integers(100)))
    order = rng.permutation(len(people["id"]))
    return {n: c[order] for n, c in people.items()}, dict(pairs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["Matrikelnr.", "Person", "Student ID", "Kennung", "key"])
def test_ids_and_partners_under_any_name(seed, name):
    """``key`` is no usual name, but the pairs' cells are its values."""
    people, pairs = year(np.random.default_rng(seed))
    people = {"note": people["q1"], name: people.pop("id"), **people}
    pairs = {"year": pairs["year"], "one": pairs["id_a"], "two": pairs["id_b"]}
    for order in (1, -1):
        tables = [table(people), table(pairs)][::order]
        assert who_is_who(tables) == (name, "partners", ("one", "two"))
        found = examine(tables)
        assert (found.settings.id, found.settings.partners) == (name, ("one", "two"))
        assert any(f"{name!r} is taken for the ids" in f.words for f in found.findings)
        assert not faults_of(found)


@pytest.mark.parametrize("name", ["Student", "key"])
@pytest.mark.parametrize("fault", ["a row twice", "no id"])
def test_ids_are_found_where_somebody_is_listed_twice_or_has_none(name, fault):
    """The fault is told; it hid the ids, and all that can be said of them."""
    people, pairs = year(np.random.default_rng(0))
    rows = [*range(len(people["id"])), *([3] if fault == "a row twice" else [])]
    people = {n: c[rows].tolist() for n, c in people.items()}
    people[name] = people.pop("id")
    if fault == "no id":
        people[name][3] = None
    tables = [table(people), table({"one": pairs["id_a"], "two": pairs["id_b"]})]
    assert who_is_who(tables) == (name, "partners", ("one", "two"))
    told = " ".join(f.words for f in faults_of(examine(tables)))
    assert ("is in row 3 and row" if fault == "a row twice" else f"row 3 has no {name!r}") in told


@pytest.mark.parametrize("seed", range(4))
def test_rooms_and_partners_among_people_and_beside_them(seed):
    people, pairs = year(np.random.default_rng(seed))
    home = {
        w: k for k, two in enumerate(zip(pairs["id_a"], pairs["id_b"], strict=True)) for w in two
    }
    other = dict(zip(pairs["id_a"], pairs["id_b"], strict=True))
    other |= {b: a for a, b in other.items()}
    rooms = [f"R{home[w]}" for w in people["id"].tolist()]
    assert who_is_who([table(people | {"Zimmer": rooms})])[1:] == ("room", ("Zimmer",))
    listed = {"id": people["id"], "room no.": rooms}
    assert who_is_who([table(people), table(listed)])[1:] == ("room", ("room no.",))
    partner = [int(other[w]) for w in people["id"].tolist()]
    assert who_is_who([table(people | {"with": partner})])[1:] == ("partner", ("with",))


def test_answers_are_no_ids_although_small_ids_are_answers():
    people, _ = year(np.random.default_rng(0))
    who = who_is_who([table(people)])
    assert (who.id, who.columns) == ("id", ())


def test_what_was_said_is_not_guessed_anew():
    people, pairs = year(np.random.default_rng(1))
    found = examine([table(people), table(pairs)])
    assert found.settings.id == "id"
    assert not any("taken for" in f.words for f in found.findings)
    assert who_is_who([table({"a": ["x", "x"], "b": [1, 1]})]) is None


def shared(year):
    """People of a year, and everybody's partner."""
    people, pairs, _ = data.roommates(40, 1, year)
    other = dict(zip(pairs["id_a"].tolist(), pairs["id_b"].tolist(), strict=True))
    return dict(people), other | {b: a for a, b in other.items()}


def test_partners_by_name_and_with_a_wrong_id_are_found():
    people, other = shared(0)
    ids = people["id"].tolist()
    by_name = people | {"name": [f"P {i}" for i in ids], "with": [f"P {other[i]}" for i in ids]}
    found = examine([table(by_name)]).settings
    assert (found.id, found.partner) == ("name", ("with",))
    wrong = people | {"with": [9999, *(other[i] for i in ids[1:])]}
    found = examine([table(wrong)])
    assert (found.settings.id, found.settings.partner) == ("id", ("with",))
    assert any("nobody has id 9999" in f.words for f in faults_of(found))


@pytest.mark.parametrize(
    "words", ["never rarely sometimes often always", "Nie Selten Manchmal Oft Immer"]
)
def test_words_of_a_scale_have_an_order(words, tmp_path):
    """And keep it in a fit by what is proposed."""
    people, _ = shared(1)
    people["q1"] = [words.split()[k - 1] for k in people["q1"].tolist()]
    settings = examine([table(people)]).settings
    assert "q1" in settings.ordinal
    order = sorted(settings.spelled["q1"], key=settings.spelled["q1"].get)
    assert order == words.split()
    rows = zip(*([name, *column] for name, column in people.items()), strict=True)
    (tmp_path / "p.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    read = table(tmp_path / "p.csv").respelled(settings.spelled)
    assert read["q1"].dtype == np.int64


def test_shares_in_percent_are_numbers(tmp_path):
    (tmp_path / "p.csv").write_text("id,q,r\n1,20 %,5\n2,40%,5%\n3,,7\n")
    read = table(tmp_path / "p.csv")
    assert read["q"].tolist()[:2] == [20, 40]
    assert read["r"].dtype == object


@pytest.mark.parametrize("way", ["people in columns", "no ids", "no answers", "nobody shares"])
def test_tables_that_are_not_understood_are_puzzles(way):
    """They had no faults; each says what is missing."""
    people, pairs = year(np.random.default_rng(2))
    if way == "people in columns":
        rows = [dict(zip(["", *people["id"].tolist()], [n, *c], strict=True))
                for n, c in people.items() if n not in ("id", "gender")]  # fmt: skip
        people = {str(name): [row[name] for row in rows] for name in rows[0]}
    elif way == "no ids":
        people.pop("id")
    elif way == "no answers":
        people = {name: people[name] for name in ("id", "year", "gender")}
    else:
        pairs = {"a": ["x", "y"], "b": ["y", "z"]}
    findings = examine([table(people), table(pairs)]).findings
    assert any(found.severity == "puzzle" for found in findings)
