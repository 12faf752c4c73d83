"""Tables as offices keep them: rooms, partners, consent, new answers, ids as they are written."""

import numpy as np
import pytest

from mlestruct import Infeasible, RoommateModel, data
from mlestruct.tables import table, write_csv

SETTINGS = {"cohort": "year", "same": "gender", "ordinal": "q*", "tol": 1e-5}


@pytest.fixture(scope="module")
def tables():
    people, pairs, _ = data.roommates(24, 2, 6)
    return dict(people), dict(pairs)


@pytest.fixture(scope="module")
def clean(tables):
    return RoommateModel(**SETTINGS).fit(*tables)


def rooms_of(pairs):
    """Room by person; every year's rooms are called alike."""
    found = {}
    for k, (a, b) in enumerate(zip(pairs["id_a"], pairs["id_b"], strict=True)):
        found[int(a)] = found[int(b)] = f"R{k % 12}"
    return found


def test_every_way_to_say_who_shares_is_the_same(tables, clean) -> None:
    people, pairs = tables
    ids, home = people["id"].tolist(), rooms_of(pairs)
    both = dict(zip(pairs["id_a"].tolist(), pairs["id_b"].tolist(), strict=True))
    mutual = both | {b: a for a, b in both.items()}
    order = np.random.default_rng(0).permutation(len(ids))
    lists = {"id": np.array(ids)[order], "room": [home[ids[k]] for k in order]}
    ways = [
        ({**people, "room": [home[who] for who in ids]}, None, {"room": "room"}),
        (people, lists, {"room": "room"}),
        ({**people, "with": [mutual[who] for who in ids]}, None, {"partner": "with"}),
        ({**people, "with": [both.get(who) for who in ids]}, None, {"partner": "with"}),
        (people, {"id_a": pairs["id_b"], "id_b": pairs["id_a"]}, {}),
        (people, {name: np.tile(c, 2) for name, c in pairs.items()}, {}),
        (people, {n: c[::-1] for n, c in pairs.items()}, {}),
    ]
    for given, said, more in ways:
        found = RoommateModel(**SETTINGS, **more).fit(given, said)
        np.testing.assert_array_equal(found.coef_, clean.coef_)


def test_rooms_in_two_columns_and_singles(tables) -> None:
    """A house and a number make a room; a blank or lonely one pairs nobody."""
    people, pairs = tables
    ids, home = people["id"].tolist(), rooms_of(pairs)
    house = ["A" if int(home[who][1:]) < 6 else "B" for who in ids]
    number = [int(home[who][1:]) % 6 for who in ids]
    alone = ids.index(pairs["id_a"][0])
    number[alone] = None
    model = RoommateModel(**SETTINGS, room=["house", "number"])
    model.fit({**people, "house": house, "number": number})
    fewer = {name: c[1:] for name, c in pairs.items()}
    np.testing.assert_array_equal(model.coef_, RoommateModel(**SETTINGS).fit(people, fewer).coef_)
    assert "left out: 2 of 48 people are in no pair" in model.notes_


def test_larger_rooms_are_refused_or_left_out(tables) -> None:
    people, pairs = tables
    ids, home = people["id"].tolist(), rooms_of(pairs)
    four = {**people, "room": ["R0" if home[w] == "R1" else home[w] for w in ids]}
    with pytest.raises(ValueError, match=r"(?s)4 people share \(.*larger=leave_out"):
        RoommateModel(**SETTINGS, room="room").fit(four)
    model = RoommateModel(**SETTINGS, room="room", larger="leave_out").fit(four)
    assert "left out: 8 people live in 2 rooms of three or more" in model.notes_


def test_faults_of_partners(tables) -> None:
    people, pairs = tables
    ids = people["id"].tolist()
    a, b, c = pairs["id_a"][0], pairs["id_b"][0], pairs["id_a"][1]

    def refused(message, **named):
        column = [named.get(str(who)) for who in ids]
        with pytest.raises(ValueError, match=message):
            RoommateModel(**SETTINGS, partner="with").fit({**people, "with": column})

    refused(f"{a} is in another pair too", **{str(a): b, str(c): a})
    refused("nobody has id 999", **{str(a): 999})
    refused(f"{a} is paired with themself", **{str(a): a})


@pytest.mark.parametrize(
    "names",
    [("1.1", "1.10"), ("1e3", "1000"), ("1.50", "1.5"), ("12", "١٢"), ("007", "7"), ("0", "-0")],
)
def test_houses_are_what_is_written(tmp_path, names) -> None:
    """Finding 11: no two spellings of a house, a cohort or an id become one."""
    path = tmp_path / "people.csv"
    house = [names[k % 2] for k in range(8)]
    write_csv(
        path, {"id": [f"{n}-{k}" for k, n in enumerate(house)], "house": house, "q": [1, 2] * 4}
    )
    ids = table(path)["id"].tolist()
    apart = [(ids[0], ids[1]), (ids[2], ids[3])]
    with pytest.raises(ValueError, match="are of different groups"):
        RoommateModel(same="house", ordinal="q").fit(path, apart)
    plain = {"id": names, "q": [1, 2]}
    write_csv(path, plain)
    assert table(path).listed("id") in ([*names], [0, "-0"])


def test_ids_are_found_across_files(tmp_path) -> None:
    """Whole numbers in one file and text or 7.0 in the other are the same people; 007 is not 7."""
    people, pairs = tmp_path / "people.csv", tmp_path / "pairs.csv"
    write_csv(people, {"id": [1, 2, 3, 4], "q": [1, 2, 2, 3]})
    for cells in (["1", "3"], ["1.0", "3.0"]):
        write_csv(pairs, {"id_a": [*cells, None], "id_b": ["2", "4", None], "x": ["", "", "end"]})
        assert RoommateModel(ordinal="q").fit(people, pairs).n_iter_
    write_csv(pairs, {"id_a": ["001", "3"], "id_b": ["2", "4"]})
    with pytest.raises(ValueError, match=r"line 2: nobody has id '001'; there is 1, which is wri"):
        RoommateModel(ordinal="q").fit(people, pairs)


def test_codes_for_no_answer_are_missing_answers(tables) -> None:
    people, pairs = tables
    holes = np.arange(48) % 5 == 0
    blank = {**people, "q1": [None if h else v for h, v in zip(holes, people["q1"], strict=True)]}
    coded = {**people, "q1": np.where(holes, 99, people["q1"])}
    settings = {**SETTINGS, "missing": "neutral"}
    expected = RoommateModel(**settings).fit(blank, pairs)
    for no_answer in ([99], {"q1": 99}, {"q1": ["99", -1]}):
        model = RoommateModel(**settings, no_answer=no_answer).fit(coded, pairs)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(
            model.assign(coded).pairs[0].score, expected.assign(blank).pairs[0].score
        )
    with pytest.raises(ValueError, match="no_answer: 'x' is no column of answers"):
        RoommateModel(**SETTINGS, no_answer={"x": 9}).fit(people, pairs)


def test_new_answers(tables, clean) -> None:
    """One new answer refuses, or counts as an average one."""
    people = {name: column[:24] for name, column in tables[0].items()}
    new = {**people, "q1": people["q1"].copy()}
    new["q1"][3] = 9
    with pytest.raises(ValueError, match=r"answers 9, which nobody did .*unknown=neutral"):
        clean.assign(new)
    neutral = clean.assign(new, unknown="neutral")
    assert "counts as an average answer (person 4)" in str(neutral)
    me = neutral.people.known(4)
    others = [k for k in range(24) if people["gender"][k] == people["gender"][3] and k != 3]
    parts = [clean.explain(neutral, 4, int(people["id"][k])).contributions for k in others]
    worth = [c.contribution for part in parts for c in part if c.column == "q1"]
    assert np.std(worth) < np.std(
        [
            c.contribution
            for k in others[1:]
            for c in clean.explain(
                neutral, int(people["id"][others[0]]), int(people["id"][k])
            ).contributions
            if c.column == "q1"
        ]
    )
    assert me == 3
    with pytest.raises(ValueError, match="unknown is 'refuse' or 'neutral', not 'x'"):
        clean.assign(new, unknown="x")


def test_new_words_count_as_an_average_one(tables) -> None:
    people, pairs = tables
    music = ["rock", "jazz", "none"] * 16
    model = RoommateModel(**SETTINGS, categorical="music").fit({**people, "music": music}, pairs)
    later = {**people, "music": ["Techno", *music[1:]]}
    assert "'Techno', new since the fit" in str(model.assign(later, unknown="neutral"))


def test_all_faults_are_said_at_once(tables) -> None:
    people, pairs = tables
    wrong = {
        **people,
        "q1": [None, *people["q1"][1:].tolist()],
        "q2": ["often"] * 48,
        "gender": [None, *people["gender"][1:].tolist()],
    }
    with pytest.raises(
        ValueError, match=r"(?s)3 faults:.*'q2' holds text.*'q1'.*gave no.*'gender'"
    ):
        RoommateModel(**SETTINGS).fit(wrong, pairs)


def test_consent(tables, clean) -> None:
    """Whoever has a list shares with somebody on it, and lists that leave nobody are named."""
    people = {name: column[:24] for name, column in tables[0].items()}
    women = people["id"][people["gender"] == "F"].tolist()
    consent = [(women[0], women[5]), (women[0], women[7]), (women[3], women[2])]
    plan = clean.assign(people, consent=consent)
    assert plan.partner(women[0]) in (women[5], women[7])
    assert plan.partner(women[3]) == women[2]
    with pytest.raises(Infeasible):
        clean.assign(people, consent=[(women[0], women[1]), (women[2], women[1])])
    with pytest.raises(ValueError, match=r"consent\[0\]: nobody has id 999"):
        clean.assign(people, consent=[(women[0], 999)])


def small(tables, count=9):
    people = {name: column[:24] for name, column in tables[0].items()}
    mine = np.flatnonzero(people["gender"] == "F")[:count]
    return {name: column[mine] for name, column in people.items()}


def test_fixed_people_in_the_table_of_rooms(tables, clean) -> None:
    """Finding 18: a column ``fixed`` is kept, and a single with a room is not left over."""
    people = small(tables)
    who = people["id"].tolist()
    rooms = {
        "room": ["S", "A", "B", "C", "D"],
        "size": [1, 2, 2, 2, 2],
        "fixed": [str(who[4]), None, f"{who[0]}; {who[3]}", str(who[1]), None],
    }
    plan = clean.assign(people, rooms=rooms)
    home = {person: pair.room for pair in plan.pairs for person in pair[:2]}
    assert plan.singles[0][0] == who[4]
    assert plan.singles[0].room == "S"
    assert plan.left_over == []
    assert f"alone in a room: {who[4]} (S)" in str(plan)
    assert home[who[0]] == home[who[3]] == "B"
    assert home[who[1]] == "C"
    for cell, message in (
        ("999", "nobody has id '999'"),
        (f"{who[0]},{who[4]}", "has room 'S' and"),
    ):
        with pytest.raises(ValueError, match=message):
            clean.assign(people, rooms={**rooms, "fixed": [str(who[4]), None, cell, None, None]})


def test_columns_of_rooms(tables, clean) -> None:
    people, rooms = small(tables, 8), {"room": list("ABCD"), "Capacity": [2] * 4}
    assert {pair.room for pair in clean.assign(people, rooms=rooms).pairs} == set("ABCD")
    with pytest.raises(ValueError, match="both 'Capacity' and 'size' are there"):
        clean.assign(people, rooms={**rooms, "size": [2] * 4})
    with pytest.raises(ValueError, match=r"'accessible' is not read: .* in 'fixed'"):
        clean.assign(people, rooms={**rooms, "accessible": ["yes"] * 4})


def test_probabilities_of_each(tables, clean) -> None:
    """Everybody's most probable partners are among them, each pair once."""
    people = {name: column[:24] for name, column in tables[0].items()}
    every, some = clean.probabilities(people), clean.probabilities(people, each=3)
    tau = {
        frozenset(row): p
        for *row, p in zip(every["a"], every["b"], every["probability"], strict=True)
    }
    kept = [frozenset(row) for row in zip(some["a"], some["b"], strict=True)]
    assert len(set(kept)) == len(kept)
    for who in people["id"].tolist():
        mine = sorted((p for pair, p in tau.items() if who in pair), reverse=True)
        listed = sorted((tau[pair] for pair in kept if who in pair), reverse=True)
        assert listed[:3] == mine[:3]
    assert (np.diff(some["probability"]) <= 0).all()


@pytest.mark.parametrize("framed", [False, True])
def test_codes_are_taken_out_of_frames_as_out_of_files(framed, tmp_path) -> None:
    """Text among numbers is refused where it is used, read where no_answer= names it."""
    form = pytest.importorskip("pandas").DataFrame if framed else dict
    rng = np.random.default_rng(0)
    people = {"id": list(range(24)), "q": rng.integers(1, 6, 24).tolist(), "note": [1, "x"] * 12}
    people["q"][3] = people["q"][8] = "n/a"
    pairs = [(2 * k, 2 * k + 1) for k in range(12)]
    path = tmp_path / "people.csv"
    write_csv(path, people)
    settings = {"ordinal": "q", "missing": "neutral"}
    with pytest.raises(ValueError, match=r"'q' holds text such as 'n/a'; .* no_answer="):
        RoommateModel(**settings).fit(form(people), pairs)
    given, written = (
        RoommateModel(**settings, no_answer=["n/a"]).fit(people, pairs)
        for people in (form(people), path)
    )
    assert given.coef_.tobytes() == written.coef_.tobytes()
    assert "ignored: note" in given.notes_
