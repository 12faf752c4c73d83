"""Ids and who shares are found by names and values, whatever they are called; or not at all."""

import numpy as np
import pytest

from mlestruct import data
from mlestruct.roommates.doctor import examine, who_is_who
from mlestruct.tables import table


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
        assert who_is_who(tables)[:2] == (name, ("one", "two"))
        found = examine(tables)
        assert (found.settings.id, found.settings.partners) == (name, ("one", "two"))
        assert any(f"{name!r} is taken for the ids" in f.words for f in found.findings)
        assert not found.faults


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
    assert who_is_who(tables)[:2] == (name, ("one", "two"))
    told = " ".join(f.words for f in examine(tables).faults)
    assert ("repeats" if fault == "a row twice" else f"row 3 has no {name!r}") in told


@pytest.mark.parametrize("seed", range(4))
def test_rooms_and_partners_among_people_and_beside_them(seed):
    people, pairs = year(np.random.default_rng(seed))
    home = {
        w: k for k, two in enumerate(zip(pairs["id_a"], pairs["id_b"], strict=True)) for w in two
    }
    other = dict(zip(pairs["id_a"], pairs["id_b"], strict=True))
    other |= {b: a for a, b in other.items()}
    rooms = [f"R{home[w]}" for w in people["id"].tolist()]
    assert who_is_who([table(people | {"Zimmer": rooms})]).room == ("Zimmer",)
    listed = {"id": people["id"], "room no.": rooms}
    assert who_is_who([table(people), table(listed)]).room == ("room no.",)
    partner = [int(other[w]) for w in people["id"].tolist()]
    assert who_is_who([table(people | {"with": partner})]).partner == ("with",)


def test_answers_are_no_ids_although_small_ids_are_answers():
    people, _ = year(np.random.default_rng(0))
    who = who_is_who([table(people)])
    assert (who.id, who.partners, who.partner, who.room) == ("id", (), (), ())


def test_what_was_said_is_not_guessed_anew():
    people, pairs = year(np.random.default_rng(1))
    found = examine([table(people), table(pairs)])
    assert found.settings.id == "id"
    assert not any("taken for" in f.words for f in found.findings)
    assert who_is_who([table({"a": ["x", "x"], "b": [1, 1]})]) is None
