"""Every fault of a table is named, and a sound one has none."""

import numpy as np
import pytest

from mlestruct.roommates.columns import EACH
from mlestruct.roommates.doctor import Finding, examine, faults, remarks, remarks_on_groups
from mlestruct.roommates.people import faults_of_people
from mlestruct.roommates.project import Settings
from mlestruct.tables import table

PEOPLE = table({"id": [1, 2, 3, 4], "gender": ["F", "F", "M", "M"], "q1": [1.0, None, 3.0, 1.0]})


def words(found):
    return [Finding(code, 0, values).words for code, values in found]


def test_a_sound_table_has_no_faults():
    assert list(faults(PEOPLE)) == []
    assert list(faults_of_people(PEOPLE, "id", ["gender"])) == []
    pairs = table({"id_a": [1, 3], "id_b": [2, 4]})
    assert not examine([PEOPLE, pairs], Settings(same=("gender",))).faults


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": []}, ["the table is empty"]),
        ({"a": [1, 1, 2], "b": [None, None, 3.0]}, ["row 1 repeats an earlier one"]),
        ({"a": [1.0, float("-inf")]}, ["column 'a' holds infinite numbers"]),
    ],
)
def test_faults_of_any_table(columns, expected):
    assert words(faults(table(columns))) == expected


def test_odd_groups_are_remarks():
    crowd = table({"id": [7, 8, 9, 10], "dorm": ["x", "x", "x", "y"]})
    pairs = np.empty((0, 2), dtype=int)
    assert words(remarks_on_groups(crowd, Settings(same=("dorm",)), pairs)) == [
        "dorm x: 3 people, an odd number, so one of them stays alone",
        "dorm y: one person, who has nobody to share with",
    ]


def test_many_faults_are_counted():
    many = table({"id": [1] * 20, "x": list(range(20))})
    found = list(faults_of_people(many, "id", []))
    assert len(found) == EACH + 1
    assert found[-1] == "… and 14 more such rows"


def test_constant_columns_are_named():
    """A blank is no answer of its own, and one person alone is no constant."""
    people = table({"a": [3, 3, 3], "b": ["x", None, "x"], "c": [1, 2, 1]})
    said = [words(remarks(people, name)) for name in "abc"]
    assert said[0] == ["column 'a' is '3' for all 3 who answered: it tells nobody apart"]
    assert said[1] == ["column 'b' is 'x' for all 2 who answered: it tells nobody apart"]
    assert said[2] == []
    assert list(remarks(table({"a": [3]}), "a")) == []
