"""Generated students: who can be paired, and by which law."""

import itertools

import pytest

from mlestruct import data
from mlestruct.roommates.students import ANSWERS, DIFFERENCE, QUESTIONS
from mlestruct.tables import table, write_csv


def one_group(people, year, gender):
    chosen = (people["year"] == year) & (people["gender"] == gender)
    return {name: column[chosen] for name, column in people.items()}


def test_everybody_has_one_roommate_of_the_same_year_and_gender():
    people, pairs, _ = data.roommates(n=30, years=2, seed=3)
    for year, gender in itertools.product((1, 2), "FM"):
        ids = one_group(people, year, gender)["id"].tolist()
        of = [
            {int(a), int(b)}
            for a, b, when in zip(pairs["id_a"], pairs["id_b"], pairs["year"], strict=True)
            if int(a) in ids and when == year
        ]
        assert sorted(itertools.chain(*of)) == sorted(ids)
        assert len(ids) in (14, 16)
    assert (pairs["id_a"] < pairs["id_b"]).all()


def test_a_score_is_the_sum_of_its_stated_parts():
    people, _, truth = data.roommates(n=8, years=1, seed=1)
    scores = truth.scores(people)
    for i, j in itertools.product(range(8), repeat=2):
        expected = 0.0
        for name, weight in zip(QUESTIONS, DIFFERENCE, strict=True):
            expected += weight * abs(int(people[name][i]) - int(people[name][j]))
        for (name, a, b), weight in ANSWERS.items():
            expected += weight * (sorted((people[name][i], people[name][j])) == sorted((a, b)))
        assert scores[i, j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("wrong", [{"n": 7}, {"n": 0}, {"years": 0}])
def test_sizes_are_checked(wrong):
    with pytest.raises(ValueError, match="need an even n ≥ 2 and years ≥ 1"):
        data.roommates(**wrong)


def test_the_shipped_files_are_the_generators_defaults(tmp_path):
    """But for names, and for what the questions are called there."""
    people, pairs, _ = data.roommates()
    write_csv(tmp_path / "pairs.csv", pairs)
    assert (tmp_path / "pairs.csv").read_bytes() == data.shipped("roommates_pairs.csv").read_bytes()
    shipped = table(data.shipped("roommates_people.csv"))
    assert shipped.names[:5] == ["id", "name", "year", "gender", "bedtime"]
    assert len(set(shipped["name"].tolist())) == len(shipped)
    plain = [column for name, column in shipped.columns.items() if name != "name"]
    assert all(a.tolist() == b.tolist() for a, b in zip(plain, people.values(), strict=True))


def test_a_file_that_is_not_shipped_is_named():
    with pytest.raises(ValueError, match=r"this installation lacks datasets/no\.csv"):
        data.shipped("no.csv")
