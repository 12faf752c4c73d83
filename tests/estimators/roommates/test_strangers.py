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
    with pytest.warns(DataWarning, match=r"answered no question: 1, the first person 999"):
        fitted = model().fit([*people, remark], pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        fitted = model().fit(people, pairs)
    plan = fitted.assign([*people, remark])
    assert "answered no question: 1, the first person 999" in str(plan)
    assert "answered no question" not in str(fitted.assign(people))


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
        assert any("smokes" in name for name in ticked.fit(people, pairs).names_)
