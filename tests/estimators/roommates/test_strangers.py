"""Lines that are no people, and ticks that may mean anything, are never taken in silence."""

import warnings

import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.errors import DataWarning


def year():
    people, pairs, _ = data.roommates(40, 1, 0)
    rows = [dict(zip(people, row, strict=True)) for row in zip(*people.values(), strict=True)]
    return [{k: v.item() for k, v in row.items()} for row in rows], pairs


def model(**more):
    return ms.RoommateModel(ordinal="q*", missing="neutral", alpha=10.0, **more)


def test_a_line_without_an_answer_is_doubted_in_a_fit_and_in_a_plan():
    """A remark below a list is a person where nothing tells it from one."""
    people, pairs = year()
    remark = {
        "id": 999,
        "year": None,
        "gender": None,
        **dict.fromkeys(f"q{k}" for k in range(1, 15)),
    }
    with pytest.warns(DataWarning, match=r"answered no question: 1, the first person 999") as heard:
        fitted = model().fit([*people, remark], pairs)
    assert heard[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        fitted = model().fit(people, pairs)
    plan = fitted.assign([*people, remark], mix="gender")
    assert "answered no question: 1, the first person 999" in str(plan)
    assert "answered no question" not in str(fitted.assign(people, mix="gender"))


@pytest.mark.parametrize(
    ("role", "mark", "no"),
    [("binary", "x", "-"), ("categorical", "ja", "nein"), ("binary", 1, 0), ("ordinal", 1, 0)],
)
def test_ticks_are_refused_until_blanks_are_said(role, mark, no):
    people, pairs = year()
    for k, row in enumerate(people):
        row["smokes"] = mark if k % 3 else None
    asked = {"ordinal": ["q*"]}
    asked[role] = [*asked.get(role, []), "smokes"]
    ticked = ms.RoommateModel(missing="neutral", alpha=10.0, **asked)
    with pytest.raises(ValueError, match=r"26 people have .* 14 nothing; if a blank means no"):
        ticked.fit(people, pairs)
    for row in people:
        row["smokes"] = no if row["smokes"] is None else mark
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # that "-" may be no answer
        assert any("smokes" in name for name in ticked.fit(people, pairs).names())


def fitted():
    people, pairs = year()
    return people, model(same="gender").fit(people, pairs)


@pytest.mark.parametrize("name", ["fixed", "Fixed", "FIXED"])
def test_fixed_rooms_are_kept_however_the_column_is_spelled(name):
    people, learned = fitted()
    sizes = [2] * 40
    women = [row["id"] for row in people if row["gender"] == "F"]
    rooms = {
        "room": [f"{g}{k}" for g in "FM" for k in range(20)],
        "size": sizes,
        "gender": ["F"] * 20 + ["M"] * 20,
        name: [None] * 7 + [str(women[0])] + [None] * 32,
    }
    plan = learned.assign(people, rooms=rooms)
    assert next(p.room for p in plan.pairs if women[0] in p[:2]) == "F7"


def test_the_size_of_rooms_is_said():
    people, learned = fitted()
    rooms = {
        "room": [f"{g}{k}" for g in "FM" for k in range(20)],
        "gender": ["F"] * 20 + ["M"] * 20,
    }
    with pytest.raises(ValueError, match="no column 'size' says how many"):
        learned.assign(people, rooms=rooms | {"Betten": [1] * 40})
    with pytest.raises(ValueError, match="room 'F3' has no size"):
        learned.assign(people, rooms=rooms | {"size": [2] * 3 + [None] + [2] * 36})
