"""Every fault of a table is named, and a sound one has none."""

from mlestruct.roommates.doctor import examine
from mlestruct.roommates.frames import EACH
from mlestruct.roommates.people import faults_of_people
from mlestruct.roommates.project import Settings
from mlestruct.tables import table
from tests.doctor import faults_of

PEOPLE = table({"id": [1, 2, 3, 4], "gender": ["F", "F", "M", "M"], "q1": [1.0, None, 3.0, 1.0]})


def words(given, *codes, **told):
    """The words of what is found in a table of people, of these codes."""
    found = examine([table(given)], Settings(**told)).findings
    return [finding.words for finding in found if finding.code in codes]


def test_a_sound_table_has_no_faults():
    assert list(faults_of_people(PEOPLE, "id", ["gender"])) == []
    pairs = table({"id_a": [1, 3], "id_b": [2, 4]})
    assert not faults_of(examine([PEOPLE, pairs], Settings(same=("gender",))))


def test_faults_of_any_table():
    given = {"id": [1, 1, 2], "b": [None, None, 3.0]}
    assert words(given, "refused") == ["id 1 is in row 0 and row 1"]


def test_odd_groups_are_remarks():
    crowd = {"id": [7, 8, 9, 10], "dorm": ["x", "x", "x", "y"]}
    assert words(crowd, "odd", same=("dorm",)) == [
        "dorm x: an odd number of people (3), so one of them stays alone",
        "dorm y: an odd number of people (1), so one of them stays alone",
    ]


def test_many_faults_are_counted():
    many = table({"id": [1] * 20, "x": list(range(20))})
    found = list(faults_of_people(many, "id", []))
    assert len(found) == EACH + 1
    assert found[-1] == "… and 14 more such rows"
