"""Every fault of a table is named, and a sound one has none."""

import pytest

from mlestruct.roommates.columns import EACH
from mlestruct.roommates.doctor import Told, examine, faults, faults_of_rules, remarks_on_groups
from mlestruct.roommates.people import faults_of_people
from mlestruct.roommates.roles import remarks
from mlestruct.tables import table

PEOPLE = table({"id": [1, 2, 3, 4], "gender": ["F", "F", "M", "M"], "q1": [1.0, None, 3.0, 1.0]})


def test_a_sound_table_has_no_faults():
    assert list(faults(PEOPLE)) == []
    assert list(faults_of_people(PEOPLE, "id", ["gender"])) == []
    pairs = table({"id_a": [1, 3], "id_b": [2, 4]})
    assert not examine([PEOPLE, pairs], Told(same=("gender",))).faults


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": []}, ["the table is empty"]),
        ({"a": [1, 1, 2], "b": [None, None, 3.0]}, ["row 1 repeats an earlier one"]),
        ({"a": [1.0, float("-inf")]}, ["column 'a' holds infinite numbers"]),
    ],
)
def test_faults_of_any_table(columns, expected):
    assert list(faults(table(columns))) == expected


def test_faults_of_people():
    crowd = table({"id": [7, 7, 8, 9, 10], "dorm": ["x", "x", "x", None, "y"]})
    assert list(faults_of_people(crowd, "id", ["dorm"])) == [
        "id 7 is in rows 0 and 1",
        "row 3 has no 'dorm'",
    ]
    assert list(faults_of_people(crowd, "id", [])) == ["id 7 is in rows 0 and 1"]


def test_odd_groups_are_remarks():
    crowd = table({"id": [7, 8, 9, 10], "dorm": ["x", "x", "x", "y"]})
    assert list(remarks_on_groups(crowd, ["dorm"])) == [
        "dorm x: 3 people, an odd number, so one of them stays alone",
        "dorm y: one person, who has nobody to share with",
    ]


def test_faults_of_pairs():
    """Those that a fit refuses, in its words, whatever else is wrong with the people."""
    people = table({"id": [1, 2, 3, 4, 4], "dorm": ["F", "F", "M", "M", "M"]})
    wrong = table({"a": [1, 1, 3, 9], "b": [2, 4, 3, 4]})
    found = examine([people, wrong], Told(same=("dorm",), partners=("a", "b")))
    assert [f.words for f in found.faults if f.table == 1] == [
        "pairs, row 3: nobody has id 9",
        "pairs, row 2: 3 is paired with themself",
        "pairs, row 1: 1 is in another pair too, in pairs, row 0",
        "pairs, row 1: 1 (dorm F) and 4 (dorm M) are of different groups",
    ]


def test_many_faults_are_counted():
    many = table({"id": [1] * 20, "x": list(range(20))})
    found = list(faults_of_people(many, "id", []))
    assert len(found) == EACH + 1
    assert found[-1] == "… and 14 more such rows"


@pytest.mark.parametrize(
    ("forbid", "require", "expected"),
    [
        ([(1, 3)], [(1, 2)], []),
        ([], [(1, 2), (2, 1)], ["require: 1 cannot be in 2 pairs: 1 with 2, 2 with 1"]),
        ([(2, 1)], [(1, 2)], ["1 with 2 is both forbidden and required"]),
        ([], [(1, 9)], ["require[0]: nobody has id 9"]),
        (
            [(1, 2)],
            [],
            ["gender F: not everybody can be paired: [1] may not be paired with others"],
        ),
    ],
)
def test_faults_of_rules(forbid, require, expected):
    found = list(faults_of_rules(PEOPLE, "id", ["gender"], forbid, require))
    assert len(found) == len(expected)
    assert all(f.startswith(e) for f, e in zip(found, expected, strict=True)), found


def test_constant_columns_are_named():
    """A blank is no answer of its own, and one person alone is no constant."""
    people = table({"a": [3, 3, 3], "b": ["x", None, "x"], "c": [1, 2, 1]})
    said = [list(remarks(people, name)) for name in "abc"]
    assert said[0] == ["column 'a' is '3' for all 3 who answered: it tells nobody apart"]
    assert said[1] == ["column 'b' is 'x' for all 2 who answered: it tells nobody apart"]
    assert said[2] == []
    assert list(remarks(table({"a": [3]}), "a")) == []
