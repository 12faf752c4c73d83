"""RoommateModel from fit to file: sums, intervals, choices and errors."""

import subprocess
import sys

import numpy as np
import pytest

from mlestruct import RoommateModel


def test_not_fitted() -> None:
    with pytest.raises(ValueError, match="this RoommateModel is not fitted yet: call fit first"):
        RoommateModel(ordinal="tidy").assign([{"id": 1, "tidy": 2}])


def test_explanations_add_up_to_the_score(fitted, year) -> None:
    people, _ = year(12, seed=9, first=201, year=3)
    plan = fitted.assign(people)
    for pair in plan.pairs:
        why = fitted.explain(plan, pair.a)
        assert {why.a, why.b} == {pair.a, pair.b}
        assert why.score == pytest.approx(pair.score)
        assert sum(c.contribution for c in why.contributions) == pytest.approx(why.score)
        assert "0 is an average partner" in str(why)
    other = fitted.explain(plan, 201, 203)
    assert (other.a, other.b) == (201, 203)
    with pytest.raises(ValueError, match="201 and 212 are no two people of one group"):
        fitted.explain(plan, 201, 212)


def test_protected_columns_are_withheld_unless_asked_for(year) -> None:
    people, pairs = year(12, seed=10)
    model = RoommateModel(ordinal="tidy", categorical="diet", protected="di*").fit(people, pairs)
    plan = model.assign(people)
    hidden, shown = model.explain(plan, 1), model.explain(plan, 1, protected=True)
    assert [c.column for c in hidden.contributions] == ["tidy"]
    assert "diet" not in str(hidden)
    assert "protected columns" in str(hidden)
    (diet,) = [c.contribution for c in shown.contributions if c.column == "diet"]
    assert hidden.withheld == pytest.approx(diet)
    assert sum(c.contribution for c in hidden.contributions) + diet == pytest.approx(hidden.score)


def test_who_is_left_over_is_not_explained(fitted, year) -> None:
    people, _ = year(3, seed=11, first=201, year=3)
    plan = fitted.assign(people)
    with pytest.raises(ValueError, match="has no partner in the plan; name one"):
        fitted.explain(plan, plan.left_over[0])


def test_alpha_by_held_out_cohorts(year) -> None:
    (one, pairs), (two, more) = year(12, seed=13), year(12, seed=14, first=101, year=2)
    grid = (0.01, 1.0, 1000.0)
    model = RoommateModel(cohort="year", ordinal="tidy", alpha=grid).fit(one + two, pairs + more)
    by_hand = []
    for alpha in grid:
        total = 0.0
        for mine, own, theirs, held in ((one, pairs, two, more), (two, more, one, pairs)):
            single = RoommateModel(ordinal="tidy", alpha=alpha).fit(mine, own)
            plan = single.assign(theirs)
            upper = plan.pairings[0].beliefs.upper[0]
            rows = np.array([[p["id_a"], p["id_b"]] for p in held]) - theirs[0]["id"]
            total += plan.pairings[0].at(*rows.T)[0].sum() - upper
        by_hand.append(total / 2)  # a mean over groups
    np.testing.assert_allclose([s for _, s in model.alpha_scores_], by_hand, atol=1e-3)
    assert model.alpha_ == grid[int(np.argmax(by_hand))]
    with pytest.raises(ValueError, match="several alphas need two cohorts or more"):
        RoommateModel(ordinal="tidy", alpha=(1, 2)).fit(one, pairs)


def test_a_file_predicts_the_same_bits_in_another_process(fitted, year, tmp_path) -> None:
    people, _ = year(12, seed=15, first=201, year=3)
    fitted.save(tmp_path / "model.npz")
    code = (
        "import sys, mlestruct as ms\n"
        f"people = {people!r}\n"
        "model = ms.RoommateModel.load(sys.argv[1])\n"
        "print(model.probabilities(people)['probability'].tobytes().hex())\n"
        "print(model.assign(people).pairs)\n"
        "print(model.summary())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.npz")],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [
        fitted.probabilities(people)["probability"].tobytes().hex(),
        str(fitted.assign(people).pairs),
        str(fitted.summary()),
    ]
    assert run.stdout.splitlines() == "\n".join(expected).splitlines()


def test_a_fit_that_fails_changes_nothing(year) -> None:
    people, pairs = year(8, seed=17)
    model = RoommateModel(ordinal="tidy").fit(people, pairs)
    before = model.assign(people).pairs
    with pytest.raises(ValueError, match="nobody has id"):
        model.fit(people, [(1, 99)])
    assert model.assign(people).pairs == before
