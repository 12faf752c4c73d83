"""Units and zeros of answers, and the order of people and labellings, are nobody's business."""

import itertools
import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.families.joint.prediction import Mixture
from mlestruct.learning.problem import Problem

COUNT = 24
PAIRS = [(f"p{k}", f"p{k + COUNT // 2}") for k in range(COUNT // 2)]


def people(unit=1.0, zero=0.0):
    """Answers in quarters, so that other units are the same numbers."""
    rng = np.random.default_rng(3)
    tidy = np.round(rng.normal(size=COUNT) * 4) / 4 * unit + zero
    night = rng.integers(0, 4, COUNT)
    return {"id": [f"p{k}" for k in range(COUNT)], "tidy": tidy.tolist(), "night": night.tolist()}


def learned(table, alpha=1.0):
    model = ms.RoommateModel(ordinal=("tidy", "night"), alpha=alpha, answers=False)
    return model.fit(table, PAIRS)


@pytest.mark.parametrize("unit", [1e-8, 1e-4, 2.0**-20, 1.0, 2.0**20, 1e4, 1e8])
@pytest.mark.parametrize("zero", [0.0, 1e3])
def test_a_fit_reaches_its_own_optimum_in_any_units(unit, zero):
    model = learned(people(unit, zero * unit))
    assert model.converged_
    assert model.certificate_.relative <= model.tol
    plain = learned(people(unit))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5, atol=1e-5 / max(unit, 1.0))


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20, 1e5])
def test_without_a_penalty_that_counts_units_change_no_weight_but_their_own(unit):
    plain, other = learned(people(), 1e-20), learned(people(unit), 1e-20)
    np.testing.assert_allclose(other.coef_ * [unit, 1.0], plain.coef_, rtol=1e-3, atol=1e-3)


def test_the_order_of_people_and_pairs():
    table, order = people(), np.random.default_rng(0).permutation(COUNT)
    mixed = {name: [values[k] for k in order] for name, values in table.items()}
    model = ms.RoommateModel(ordinal=("tidy", "night")).fit(mixed, PAIRS[::-1])
    plain = learned(table)
    one, other = model.certificate_, plain.certificate_
    assert abs(one.objective - other.objective) <= max(one.gap, other.gap) + 1e-9
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)


@pytest.mark.parametrize("rho", ["trees", 0.5, 0.0])
def test_the_order_of_labellings(rho):
    """And observations mean the same beside others, whatever their unit and the mixture's."""
    rng = np.random.default_rng(0)
    labels, seen = rng.integers(0, 2, size=(12, 6)), rng.normal(size=(3, 6))
    law = Mixture(1.0, [-1.0, 1.0], [0.5, 0.5])
    model = ms.JointModel(ms.grid(2, 3), law, rho=rho, smoothing=0.1)
    plain = model.fit(labels).predict(seen)
    again = model.fit(labels[rng.permutation(12)])
    np.testing.assert_allclose(again.predict(seen[::-1])[::-1], plain, atol=1e-9)
    for unit in (2.0**-10, 1e-4, 1e4):
        own = Mixture(1.0, [-unit, unit], [0.5 * unit**2] * 2)
        other = ms.JointModel(ms.grid(2, 3), own, rho=rho, smoothing=0.1).fit(labels)
        np.testing.assert_allclose(np.array(other.predict(unit * seen)) / unit, plain, atol=1e-8)


def test_far_off_answers_that_matter_are_learned_in_few_evaluations(monkeypatch):
    """Beside a missing answer, pairs of three such people differ by 1e10 in earnest."""
    rng, table, count = np.random.default_rng(0), people(), itertools.count()
    table["tidy"] = rng.integers(1, 6, COUNT).astype(float).tolist()
    for number, k in enumerate([0, 3, 9], start=1):
        table["tidy"][k] = -1e10 * number
    table["tidy"][5] = float("nan")
    asked = Problem.value_and_gradient

    def counted(self, theta):
        assert next(count) < 20_000
        return asked(self, theta)

    monkeypatch.setattr(Problem, "value_and_gradient", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        model = ms.RoommateModel(ordinal=("tidy", "night"), missing="neutral").fit(table, PAIRS)
    assert model.certificate_.relative <= 1e-6
    assert model.history_[-1][3] <= 1e-4


@pytest.mark.parametrize(
    ("holders", "far"),
    [*itertools.product([[1], [1, 6], [0, 3, 9]], [1e2, 1e4, 1e9]), ([1], 1e12), ([1], -1e10)],
)
def test_far_off_answers_are_learned_beside_the_others(holders, far):
    """Alone they change little: what one person's pairs share says nothing of perfect matchings."""
    rng, table = np.random.default_rng(0), people()
    table["tidy"] = rng.integers(1, 6, COUNT).astype(float).tolist()
    for number, k in enumerate(holders, start=1):
        table["tidy"][k] = far * number
    table["tidy"][5] = float("nan")
    model = ms.RoommateModel(ordinal=("tidy", "night"), missing="neutral").fit(table, PAIRS)
    assert model.converged_
    assert model.n_iter_ < 100
    assert np.isfinite(model.coef_).all()
