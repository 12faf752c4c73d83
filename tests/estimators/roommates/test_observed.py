"""Tables of pairs: faults by place, weights as conditional likelihoods, who is left out."""

import pytest

from mlestruct import RoommateModel


@pytest.fixture
def learn(year):
    people, _ = year(8)

    def fit(pairs, table=people, **settings):
        return RoommateModel(**{"same": "gender", "ordinal": "tidy", **settings}).fit(table, pairs)

    return fit


def test_faults(learn) -> None:
    def refused(message, pairs, **settings):
        with pytest.raises(ValueError, match=message):
            learn(pairs, **settings)

    refused("pairs, row 1: nobody has id 99", [(1, 2), (3, 99)])
    refused("pairs, row 0: nobody has id '01'; there is 1, which is written", [("01", "2")])
    refused("pairs, row 1: 3 is paired with themself", [(1, 2), (3, 3)])
    refused("pairs, row 2: 1 is in another pair too, in pairs, row 0", [(1, 2), (3, 4), (5, 1)])
    refused(r"row 0: 1 \(gender F\) and 8 \(gender M\) are of different groups", [(1, 8), (2, 3)])
    refused(r"pairs, row 0 is \(1, 2, 3\); expected two ids", [(1, 2, 3)])
    refused("pairs, row 0 is 1; expected two ids", [1, 2])
    refused("nothing to learn from", [])
    refused("nothing to learn from; .*1 pairs are alone", [(1, 2)])


def test_who_is_left_out_is_said(year) -> None:
    people, pairs = year(12)
    later = [pair | {"year": 2, "id_a": 900, "id_b": 901} for pair in pairs[:1]]
    model = RoommateModel(cohort="year", ordinal="tidy").fit(people, pairs[:-1] + later)
    assert "left out: 2 of 12 people are in no pair" in model.notes_
    assert "left out: 1 pairs are of cohorts that are not in the table of people" in model.notes_
    assert all(note in str(model.summary()) for note in model.notes_)
