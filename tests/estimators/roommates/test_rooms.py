"""Rooms for one, two and four: everybody has a place, fixed ones theirs, and faults are named."""

from collections import Counter

import pytest

from mlestruct import Infeasible, RoommateModel


@pytest.fixture
def model(year):
    people, pairs = year(16, seed=1)
    return RoommateModel(ordinal="tidy", categorical="diet").fit(people, pairs)


def rooms(*sizes, **columns):
    return {"room": [f"R{k}" for k in range(len(sizes))], "size": list(sizes), **columns}


def homes(plan):
    """Who is in which room."""
    found = {}
    for pair in plan.pairs:
        found.setdefault(pair.room, []).extend(pair[:2])
    for single in plan.singles:
        found.setdefault(single.room, []).append(single.person)
    return found


def test_everybody_has_a_place(model, year) -> None:
    people, _ = year(14, seed=2)
    plan = model.assign(people, rooms=rooms(4, 1, 2, 1, 4, 2, 2))
    found = homes(plan)
    assert Counter(person for room in found.values() for person in room) == Counter(range(1, 15))
    assert {room: len(people) for room, people in found.items()} == {
        "R0": 4, "R1": 1, "R2": 2, "R3": 1, "R4": 4, "R5": 2,
    }  # fmt: skip


def test_fours_join_the_pairs_that_go_best_together(model, year) -> None:
    """Eight people in two fours: of the three ways to join four pairs, the best."""
    people, _ = year(8, seed=3)
    plan = model.assign(people, rooms=rooms(4, 4))
    pairing = plan.pairings[0]

    def cross(first, second):
        return sum(float(pairing.at(a - 1, b - 1)[0]) for a in first[:2] for b in second[:2])

    one, two, three, four = plan.pairs
    best = max(
        cross(one, two) + cross(three, four),
        cross(one, three) + cross(two, four),
        cross(one, four) + cross(two, three),
    )
    together = [[p for p in plan.pairs if p.room == room] for room in ("R0", "R1")]
    assert sum(cross(*pair) for pair in together) == pytest.approx(best)


def test_fixed_rooms(model, year) -> None:
    people, _ = year(9, seed=4)
    fixed = {"R3": [5], "R4": [2, 7], "R1": [1]}
    found = homes(model.assign(people, rooms=rooms(2, 2, 2, 1, 2), fixed=fixed))
    assert found["R3"] == [5]
    assert sorted(found["R4"]) == [2, 7]
    assert 1 in found["R1"]


def test_rooms_of_groups(fitted, year) -> None:
    people, _ = year(8, seed=5, first=201, year=3)
    table = rooms(2, 2, 2, 2, gender=["F", "M", "F", "M"], year=[3, 3, 3, 3])
    for pair in fitted.assign(people, rooms=table).pairs:
        assert pair.room in {"F": ("R0", "R2"), "M": ("R1", "R3")}[pair.group[-1]]


def test_faults(model, fitted, year) -> None:
    people, _ = year(8, seed=6, first=201, year=3)

    def refused(message, table, kind=ValueError, by=model, **more):
        with pytest.raises(kind, match=message):
            by.assign(people, rooms=table, **more)

    refused("there is no column 'room'", {"size": [2]})
    refused("room 'A' is in row 0 and row 1", {"room": ["A", "A"], "size": [2, 2]})
    refused("room 'R1' is for 3; rooms for 1, 2 and 4 can be planned", rooms(2, 3, 4))
    refused("everyone: 2 rooms have 6 places for 8 people", rooms(2, 4), Infeasible)
    refused("room 'R2' for 4 would hold 3; list a room for 1 or 2", rooms(4, 1, 4))
    refused("room 'R0' fits year 3, gender F and year 3, gender M", rooms(4, 4), by=fitted)
    refused("fixed: there is no room 'X'", rooms(4, 4), fixed={"X": [201]})
    refused("room 'R0' has 201; expected a list of ids", rooms(4, 4), fixed={"R0": 201})
    refused("room 'R0' for 4 cannot be fixed to 1 people", rooms(4, 4), fixed={"R0": [201]})
    refused("fixed room 'R0': nobody has id 1", rooms(2, 2, 2, 2), fixed={"R0": [1]})
    both = {"fixed": {"R0": [201]}, "require": [(201, 202)]}
    refused("201 has a room for 1 and is in a required pair", rooms(1, 1, 2, 2, 2), **both)
    by_gender = rooms(2, 2, 2, 2, gender=["F", "M", "F", "M"])
    refused(
        "room 'R0' is year 3, gender F's; 208 is of year 3, gender M",
        by_gender,
        by=fitted,
        fixed={"R0": [208]},
    )
    with pytest.raises(ValueError, match="fixed= needs rooms="):
        model.assign(people, fixed={"R0": [201]})
