"""The report: every section there, nothing from outside, no more about people than was asked."""

import csv
import re
from html import unescape

import numpy as np
import pytest

from mlestruct import data
from mlestruct.estimators import RoommateModel
from mlestruct.roommates.report import Report
from mlestruct.tables import table

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def cohorts():
    """Two years of 40 people; year 2 has ids that are markup or formulas, names and a diary."""
    people, pairs, _ = data.roommates(n=40, years=2, seed=2)
    before = table({name: column[people["year"] == 1] for name, column in people.items()})
    after = {name: column[people["year"] == 2].tolist() for name, column in people.items()}
    risky = {after["id"][0]: NASTY, after["id"][1]: "=1+1"}
    after["id"] = [risky.get(who, f"p{who}") for who in after["id"]]
    after["name"] = [f"Name{k}" for k in range(40)]
    after["diary"] = ["secret"] * 40
    later = pairs["year"] == 2
    ends = (
        [risky.get(who, f"p{who}") for who in pairs[end][later].tolist()]
        for end in ("id_a", "id_b")
    )
    return before, table(pairs), table(after), table(dict(zip(("id_a", "id_b"), ends, strict=True)))


@pytest.fixture(scope="module")
def model(cohorts):
    settings = {"cohort": "year", "same": "gender", "ordinal": "q*", "protected": "q3"}
    return RoommateModel(alpha=10.0, **settings).fit(*cohorts[:2])


@pytest.fixture
def words_of(parsed):
    return lambda report: " ".join(parsed(report.html()).words)


def test_every_section_is_there_and_nothing_comes_from_outside(model, cohorts, parsed, sections):
    report = Report.of(model, cohorts[2], cohorts[3])
    html = report.html()
    read = parsed(html)
    words = " ".join(read.words)
    assert [key for key in read.ids if key in sections] == sections
    assert read.targets == []
    assert not {"img", "link", "iframe"} & set(read.tags)
    assert "script" not in read.tags
    assert not re.search(r"https?:|url\(|@import|fetch|XMLHttp|innerHTML|eval\(", html)
    assert NASTY not in html
    assert NASTY in words
    assert not re.search(r"\bnan\b|None|\{\w*\}", words)
    assert len(report.headline()) == 3
    assert all(line in words for line in report.headline())


def test_people_are_ids_unless_names_are_asked_for(model, cohorts, words_of):
    words = words_of(Report.of(model, cohorts[2]))
    assert "Name" not in words
    assert "secret" not in words
    words = words_of(Report.of(model, cohorts[2], names="name"))
    assert f"{NASTY} (Name0)" in words
    assert "secret" not in words


def test_protected_answers_are_itemised_only_when_asked(model, cohorts, words_of):
    words = words_of(Report.of(model, cohorts[2]))
    assert not re.search(r"(on|to) q3: [\d.e−]+ times as likely", words)
    assert "because they are protected: q3" in words
    assert "protected answers together" in words
    words = words_of(Report.of(model, cohorts[2], protected=True))
    assert re.search(r"(on|to) q3: [\d.e−]+ times as likely", words)


def test_sections_without_content_are_left_out(model, cohorts, parsed, sections):
    """Without the people's own pairs nothing is evaluated, and the opening says so."""
    report = Report.of(model, cohorts[2])
    read = parsed(report.html())
    assert [key for key in read.ids if key in sections] == [
        k for k in sections if k != "evaluation"
    ]
    assert "nobody has said who shares with whom" in report.headline()[1]


def test_rooms_of_four_are_one_card_and_singles_have_one(model, cohorts, parsed):
    """As many cards as rooms; every person's name stands in exactly one heading."""
    people = cohorts[2].rows(np.arange(39))
    sizes = [4, 4, 2, 2, 2, 2, 2, 1, 1]
    groups = people["gender"].tolist()
    rooms = {"room": [], "size": [], "gender": []}
    for gender in sorted(set(groups)):
        left, own = groups.count(gender), iter(sizes)
        while left > 0:
            size = min(next(own), left if left != 3 else 2)
            rooms["room"].append(f"{gender}{len(rooms['room'])}")
            rooms["size"].append(size)
            rooms["gender"].append(gender)
            left -= size
    report = Report.of(model, people, rooms=table(rooms))
    heads = re.findall(r"<h4>(.*?)</h4>", report.html())
    assert len(heads) == len(rooms["room"])
    seats = [who for head in heads for who in head.split(": ")[-1].split(" · ")[0].split(" + ")]
    assert sorted(map(unescape, seats)) == sorted(people["id"].tolist())


def test_files_hold_the_plan_and_the_most_probable_pairs(model, cohorts, tmp_path):
    one_less = cohorts[2].rows(np.arange(39))
    report = Report.of(model, one_less)
    pairs, probabilities, page = report.write(tmp_path / "new" / "folder")
    with pairs.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(r["a"] for r in rows) + sorted(r["b"] for r in rows)
    named = [who for row in rows for who in (row["a"], row["b"]) if who]
    assert sorted(named) == sorted("'" + i if i == "=1+1" else i for i in one_less["id"])
    assert [r["a"] for r in rows if not r["b"]] == report.plan.left_over
    assert len(report.plan.left_over) == 1
    with probabilities.open(newline="", encoding="utf-8") as file:
        listed = [who for row in csv.DictReader(file) for who in (row["a"], row["b"])]
    assert all(listed.count(who) >= 10 for who in named)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_calibration_counts_every_possible_pair_and_every_true_one(model, cohorts):
    report = Report.of(model, cohorts[2], cohorts[3])
    found = report.evaluation.calibration
    assert found.count.sum() == 2 * 20 * 19 / 2
    assert (found.observed * found.count).sum() == pytest.approx(20)


def test_rules_hold_in_the_report(model, cohorts, words_of):
    first = Report.of(model, cohorts[2]).plan.pairs[0]
    after = Report.of(model, cohorts[2], forbid=[(first.a, first.b)])
    assert after.plan.partner(first.a) != first.b
    words = words_of(after)
    assert "keeps every rule" in words
    assert "log-likelihood" not in words.lower()
