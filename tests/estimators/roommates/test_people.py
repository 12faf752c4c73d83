"""Tables of people: every fault is named with its column, person and row."""

import numpy as np
import pytest

from mlestruct import RoommateModel


def refused(message, people, pairs=((1, 2), (3, 4)), **settings):
    with pytest.raises(ValueError, match=message):
        RoommateModel(**{"ordinal": "tidy", **settings}).fit(people, list(pairs))


def four(**columns):
    return {"id": [1, 2, 3, 4], "tidy": [1, 2, 2, 3], **columns}


def test_ids() -> None:
    refused("there is no column 'id'; there are tidy", {"tidy": [1, 2, 2, 3]})
    refused("id 2 is in row 1 and row 2", four(id=[1, 2, 2, 4]))
    refused("row 3 has no 'id'", four(id=[1, 2, 3, None]))
    refused("the table of people is empty", {"id": [], "tidy": []})


def test_answers() -> None:
    refused("column 'tidy': person 3 answers inf", four(tidy=[1, 2, np.inf, 3]))
    refused(
        "ordinal column 'tidy' holds text such as 'often'", four(tidy=["often"] * 2 + ["a"] * 2)
    )
    refused("binary column 'tidy' has 3 different answers", four(), ordinal=(), binary="tidy")
    many = {"id": list(range(100)), "tidy": [k + 0.5 for k in range(100)]}
    refused("column 'tidy' has 100 different answers; at most 40", many, [(0, 1), (2, 3)])
    gone = four(tidy=[1, None, 2, None])
    refused("column 'tidy': person 2 and 1 more gave no answer", gone)
    refused("row 3 has no 'gender'", four(gender=["F", "F", "M", None]), same="gender")


def test_roles() -> None:
    refused("ordinal: no column is named or fits 'x\\*'", four(), ordinal="x*")
    refused("column 'tidy' is named in binary, and in ordinal too", four(), binary="tidy")
    refused("column 'id' is named in ordinal, and in id, cohort or same too", four(), ordinal="id")
    refused("protected: no column is named or fits 'faith'", four(), protected="faith")


def test_settings() -> None:
    refused("no answers to compare: name columns in ordinal", four(), ordinal=())
    refused("missing is 'refuse' or 'neutral', not 'drop'", four(), missing="drop")


def test_a_name_beats_a_pattern_and_the_rest_is_ignored_in_words() -> None:
    people = four(q1=[1, 1, 2, 3], q2=[0, 1, 1, 0], q3=[5, 5, 5, 5], essay=list("abcd"))
    model = RoommateModel(ordinal="q*", binary="q2", ignore="essay").fit(people, [(1, 2), (3, 4)])
    assert [(own.column, own.role) for own in model.questions_] == [
        ("q1", "ordinal"),
        ("q2", "binary"),
    ]
    assert "ignored: tidy, essay" in model.notes_
    assert "all answers alike, so not used: q3" in model.notes_
    assert model.names() == ["q1 |difference|", "q2 same"]


def test_later_tables_hold_what_the_first_held(fitted, year) -> None:
    people, _ = year(8, first=201, year=3)

    def changed(column, value):
        return [person | ({column: value} if person["id"] == 203 else {}) for person in people]

    with pytest.raises(ValueError, match=r"'tidy': person 203 answers 9, which nobody did .* 1, 2"):
        fitted.assign(changed("tidy", 9))
    with pytest.raises(ValueError, match="'diet': person 203 answers 'air'"):
        fitted.assign(changed("diet", "air"))
    as_text = [person | {"tidy": str(person["tidy"])} for person in people]
    assert fitted.assign(as_text).pairs == fitted.assign(people).pairs
    as_number = [person | {"diet": 3} for person in people]
    with pytest.raises(ValueError, match="'diet': person 201 answers '3', which nobody did"):
        fitted.assign(as_number)


def test_whole_numbers_have_no_gaps_between_levels() -> None:
    people = {"id": list(range(6)), "tidy": [1, 1, 4, 4, 1, 4]}
    model = RoommateModel(ordinal="tidy").fit(people, [(0, 1), (2, 3), (4, 5)])
    plan = model.assign({"id": [7, 8], "tidy": [2, 3]})
    assert [pair[:2] for pair in plan.pairs] == [(7, 8)]


def test_a_missing_answer_favours_nobody(year) -> None:
    """Centred over the people learned from, it is worth exactly 0 with every answer."""
    people, pairs = year(16, seed=3)
    settings = {"ordinal": "tidy", "categorical": "diet", "answers": True, "missing": "neutral"}
    model = RoommateModel(**settings).fit(people, pairs)
    for answers in model.questions_:
        question = answers.question(True, True)
        project = np.eye(len(answers.levels) + 1) - np.append(answers.share, 0.0)
        for table in question.tables:
            assert np.abs((project @ table @ project.T)[-1]).max() < 1e-12
    silent = [*people, people[0] | {"id": 99, "tidy": None, "diet": None}]
    assert np.isfinite(model.assign([*silent, people[0] | {"id": 98}]).objective)


def test_tables_of_any_make_give_the_same_model(year) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    people, pairs = year(12, seed=4)
    columns = {name: [person[name] for person in people] for name in people[0]}
    models = [
        RoommateModel(same="gender", ordinal="tidy", categorical="diet").fit(table, pairs)
        for table in (people, columns, pd.DataFrame(people), pl.DataFrame(people))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
