"""Contrasts: what no change of a matching's constants can move, and what the data cannot say."""

import numpy as np
import pytest
from scipy.special import stdtrit

from mlestruct import RoommateModel
from mlestruct.roommates.plan import centred
from mlestruct.roommates.report import untold


@pytest.fixture
def rich(year):
    people, pairs = year(30, seed=1)
    settings = {"ordinal": "tidy", "categorical": "diet", "answers": True, "alpha": 0.1}
    return RoommateModel(**settings).fit(people, pairs)


def test_adding_a_number_to_one_answers_pairs_changes_no_contrast(rich, rng) -> None:
    at, matrix = 0, np.array([row for _, row in rich.contrasts()])
    for answers in rich.questions_:
        question = answers.question(True, False)
        own = matrix[:, at : at + len(question.weights)]
        levels = len(question.levels)
        shift = rng.standard_normal(levels)
        pairs = [(a, b) for a in range(levels) for b in range(a, levels)]
        moved = np.array([0.0, *(shift[a] + shift[b] for a, b in pairs)])
        np.testing.assert_allclose(own @ moved, 0.0, atol=1e-12)
        at += len(question.weights)


def test_a_contrast_is_the_worth_of_its_answers_among_many_people(rich) -> None:
    """Centring over a group of a million copies of the people comes to the same."""
    theta, answers = rich.coef_, rich.questions_[0]
    question = answers.question(True, False)
    table = np.tensordot(theta[: len(question.weights)], question.tables, 1)
    worth = centred(table, 1e6 * np.array(answers.counts))
    levels = len(answers.levels)
    listed = [worth[a, b] for a in range(levels) for b in range(a, levels)]
    mine = [row @ theta for name, row in rich.contrasts() if name.startswith("tidy")]
    np.testing.assert_allclose(mine, listed, atol=1e-6)


def test_what_pairs_do_not_tell_is_named(year) -> None:
    """Two questions that everybody answers alike are known in sum only; a third by itself."""
    people, pairs = year(20, seed=2)
    double = [person | {"again": person["tidy"]} for person in people]
    model = RoommateModel(ordinal=["tidy", "again"], categorical="diet").fit(double, pairs)
    assert untold(model) == ["tidy |difference|", "again |difference|"]
    assert [row.name for row in model.known_.told.rows] == ["diet same"]
    assert "3 weights, 2 of them told apart by the data" in str(model.summary())


def test_an_interval_is_centred_and_debiased(year) -> None:
    """A strong ridge shrinks the weight, and hardly moves the debiased estimate."""
    people, pairs = year(60, seed=3)
    loose, tight = (
        RoommateModel(ordinal="tidy", alpha=alpha).fit(people, pairs) for alpha in (1e-6, 30.0)
    )
    (free,), (held,) = loose.known_.told.rows, tight.known_.told.rows
    assert abs(tight.coef_[0]) < 0.8 * abs(loose.coef_[0])
    assert free.estimate == pytest.approx(loose.coef_[0], abs=1e-4)
    assert abs(held.estimate - free.estimate) < 0.3 * free.error
    assert held.high - held.estimate == pytest.approx(held.estimate - held.low)
    reach = (held.high - held.estimate) / held.error  # t: 30 pairs, nearly all of them undecided
    assert stdtrit(29, 0.975) < reach < stdtrit(28, 0.975)


def test_few_pairs_have_no_interval(year) -> None:
    """Ten pairs for three weights or so: the estimates, how few they are, and what it takes."""
    people, pairs = year(12, seed=4)
    model = RoommateModel(ordinal="tidy", categorical="diet").fit(people, pairs)
    found = model.summary()
    assert found.sure.units == 6
    assert found.intervals is None
    assert "no intervals: pairs are too few for so many weights: 3 each are needed" in str(found)
