"""The doctor finds what was planted, and nothing in sound tables."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.errors import DataWarning
from mlestruct.roommates.doctor import examine
from mlestruct.roommates.project import Settings
from mlestruct.tables import table
from tests.doctor import faults_of


def year(seed=0, n=80):
    people, pairs, _ = data.roommates(n, 1, seed)
    return dict(people), dict(pairs)


def found(people, pairs, **told):
    diagnosis = examine([table(people), table(pairs)], Settings(**told))
    return [f.words for f in faults_of(diagnosis)], [
        f.words for f in diagnosis.findings if f.severity == "note"
    ]


@pytest.mark.parametrize("seed", range(5))
def test_sound_tables_have_no_faults(seed):
    faults, remarks = found(*year(seed))
    assert faults == []
    assert not any("no answer" in words for words in remarks)


@pytest.mark.parametrize("code", [99, 9, -1, -9, 999, 88])
@pytest.mark.parametrize("question", ["q1", "q13"])
def test_codes_for_no_answer(code, question):
    people, pairs = year()
    people[question] = np.where(np.arange(80) % 11 == 0, code, people[question])
    faults, _ = found(people, pairs)
    assert len(faults) == 1
    assert f"column {question!r}: '{code}', 8 times" in faults[0]
    assert found(people, pairs, trust=(question,))[0] == []
    assert found(people, pairs, no_answer={question: [str(code)]})[0] == []


@pytest.mark.parametrize("word", ["keine Angabe", "k.A.", "-", "N/A", "prefer not to say"])
def test_words_for_no_answer(word):
    people, pairs = year()
    people["diet"] = [("meat", "fish", word)[k % 3] for k in range(80)]
    faults, _ = found(people, pairs)
    assert len(faults) == 1
    assert f"column 'diet': {word!r}, 26 times" in faults[0]


def test_spellings():
    people, pairs = year()
    people["diet"] = [("meat", "Meat", "fish", "Vegan ", "vegan")[k % 5] for k in range(80)]
    faults, _ = found(people, pairs)
    assert [words.split(" differ")[0] for words in faults] == [
        "column 'diet': 'Meat' (16), 'meat' (16)",
        "column 'diet': 'Vegan' (16), 'vegan' (16)",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_say_who_shares(seed):
    """Rooms as numbers and as text; not floors or answers."""
    rng = np.random.default_rng(seed)
    people, pairs = year(seed)
    order = rng.permutation(len(pairs["id_a"]))
    room = np.empty(80, dtype=int)
    for number, k in enumerate(order):
        room[[pairs["id_a"][k] - 1, pairs["id_b"][k] - 1]] = number
    floor = rng.integers(0, 4, 80)
    columns = {"room": 100 + room, "door": [f"A{r}" for r in room], "floor": floor}
    faults, _ = found({**people, **columns}, pairs)
    assert [words.split(":")[0] for words in faults] == [
        "column 'room'",
        "column 'door'",
    ]
    with pytest.warns(DataWarning, match="door: 40 of 40 pairs have the same"):
        ms.RoommateModel(same="gender", categorical="door").fit(
            {**people, "door": [f"A{r}" for r in room]}, pairs
        )


def test_a_line_of_sums_is_no_person(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id;q1\n1;2\n2;3\n3;1\n4;1\n5;4\nSumme;11\n")
    found = examine([table(path)])
    words = [fault.words for fault in faults_of(found)]
    assert words == [
        f"column 'id' holds numbers, and 'Summe' in {path}, line 7: is that an answer, or a person?"
    ]


def test_what_is_said_of_pairs():
    people, pairs = year()
    few = {name: column[:20] for name, column in pairs.items()}
    _, remarks = found(people, few)
    assert "40 of 80 people are in no pair, and nothing is learned from them" in remarks
    assert any(words.startswith("20 pairs are few for 14 questions") for words in remarks)


@pytest.mark.parametrize("spelling", ["{}", "{}.0", " {}", "{}\u00a0", "{} "])
def test_pairs_are_counted_as_a_fit_reads_them(spelling, tmp_path):
    """A pair of 1.0 and 2.0 was in no count, and nothing was said of it."""
    people, pairs = year()
    ids = list(pairs)[:2]
    files = [tmp_path / "people.csv", tmp_path / "pairs.csv"]
    pairs = {name: [spelling.format(who) for who in pairs[name]] for name in ids}
    pairs = {name: [*column[:-1], "no one"] for name, column in pairs.items()}
    for file, columns in zip(files, (people, pairs), strict=True):
        rows = zip(*([name, *column] for name, column in columns.items()), strict=True)
        file.write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    told = examine([table(file) for file in files])
    assert len(faults_of(told)) in (1, 2)
    assert all("nobody has id 'no one'" in fault.words for fault in faults_of(told))
    words = [finding.words for finding in told.findings]
    assert "2 of 80 people are in no pair, and nothing is learned from them" in words


def test_a_fit_says_what_looks_like_a_code():
    """Finding 15: 20 of 200 people with 99 take an effect away, and it is said."""
    people, pairs = year(1)
    people["q1"] = np.where(np.arange(80) % 10 == 0, 99, people["q1"])
    model = ms.RoommateModel(same="gender", ordinal="q*")
    with pytest.warns(DataWarning) as told:
        model.fit(people, pairs)
    assert "q1: '99', given by 8, looks like a code for no answer" in str(told[0].message)
    assert any("looks like a code" in note for note in model.notes_)
    assert "looks like a code" in str(model.summary())
