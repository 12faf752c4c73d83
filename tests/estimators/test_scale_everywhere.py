"""The scale law over every estimator, learner and route: units of columns change no answer."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.learners import LEARNERS
from mlestruct.structures import Matching


def tables(rng):
    X = [rng.normal(size=(3, 4, 3)) for _ in range(6)]
    return X, [rng.permutation(4)[:3] for _ in X]


def squares(rng):
    X = [rng.normal(size=(4, 4, 3)) for _ in range(6)]
    return X, [rng.permutation(4) for _ in X]


def some(rng):
    X, y = tables(rng)
    return X, [np.where(rng.random(3) < 0.3, -1, one) for one in y]


def partners(rng, all_of_them):
    X, y = [rng.normal(size=(6, 3)) for _ in range(8)], []
    for _ in X:
        partner, order = np.full(4, -1), rng.permutation(4)
        for a, b in (order[:2], order[2:]):
            if all_of_them or rng.random() < 0.6:
                partner[a], partner[b] = b, a
        y.append(partner)
    return X, y


def words(rng):
    X = [rng.normal(size=(5, 3)) for _ in range(8)]
    return X, [(x[:, 0] + rng.normal(size=5) > 0).astype(int).tolist() for x in X]


def pictures(rng, cuts=(0.0,)):
    X = [rng.normal(size=(3, 3, 3)) for _ in range(6)]
    return X, [np.digitize(x[..., 0] + rng.normal(size=(3, 3)), cuts) for x in X]


def bags(rng):
    X = [rng.normal(size=3) for _ in range(20)]
    return X, [(x[:2] + rng.normal(size=2) > 0).astype(int) for x in X]


def choices(rng):
    X = [rng.normal(size=(6, 3)) for _ in range(8)]
    return X, [np.eye(3)[rng.integers(3, size=2)].ravel() for _ in X]


def two_of_three(scores):
    """The best part of either half."""
    return np.eye(3)[scores.reshape(2, 3).argmax(axis=1)].ravel()


def dicts(x):
    return [dict(zip("abc", row.tolist(), strict=True)) for row in x]


RING = [(i, (i + 1) % 5) for i in range(5)]


def ring(x):
    return x, RING, x[:, :2] - np.roll(x, -1, axis=0)[:, :2]


class Kind(NamedTuple):
    make: type
    draw: object
    form: object = np.asarray
    own: dict = {}  # noqa: RUF012


CHOICE = ms.Custom(6, exactly_one=[[0, 1, 2], [3, 4, 5]])
KINDS = {
    "perfect": Kind(ms.MatchingModel, squares),
    "perfect .75": Kind(ms.MatchingModel, squares, own={"rho": 0.75}),
    "perfect 1": Kind(ms.MatchingModel, squares, own={"rho": 1.0}),
    "partial": Kind(ms.MatchingModel, some, own={"kind": "partial"}),
    "partial 1": Kind(ms.MatchingModel, some, own={"kind": "partial", "rho": 1.0}),
    "one-sided": Kind(ms.MatchingModel, tables, own={"kind": "one_sided"}),
    "general": Kind(
        ms.StructuredModel,
        lambda rng: partners(rng, True),
        own={"structure": Matching(4, kind="perfect")},
    ),
    "general partial": Kind(
        ms.StructuredModel,
        lambda rng: partners(rng, False),
        own={"structure": Matching(4, kind="partial")},
    ),
    "sequence": Kind(ms.SequenceModel, words),
    "sequence, sparse": Kind(ms.SequenceModel, words, sp.csr_array),
    "sequence, dicts": Kind(ms.SequenceModel, words, dicts),
    "skip chain": Kind(ms.SkipChainModel, words, dicts, {"skips": lambda x: [(0, 2)]}),
    "grid": Kind(ms.GridModel, pictures),
    "grid of three": Kind(
        ms.GridModel, lambda rng: pictures(rng, (-0.5, 0.5)), own={"tables": "potts"}
    ),
    "graph": Kind(ms.GraphModel, words, ring),
    "labels": Kind(ms.MultiLabelModel, bags),
    "own solver": Kind(ms.StructuredModel, choices, own={"oracle": two_of_three}),
    "own, declared": Kind(
        ms.StructuredModel, choices, own={"oracle": two_of_three, "structure": CHOICE}
    ),
}
UNITS = (2.0**-9, 2.0**-26, 2.0**26)
NEAR = [(1e-4, 1.0, 1.0), (1.0, 1e4, 1.0), (1e-4, 1.0, 1e4), (1e-4,) * 3, (1e4,) * 3]
FAR = [(1.0, 1e-8, 1.0), (1e8, 1.0, 1.0), (1e-8, 1e4, 1e8), (1e-8,) * 3, (1e8,) * 3]
CONVEX = ("mle_struct", "exact_mle", "pseudo_likelihood", "piecewise", "camel0", "trw")
NESTED = ("camel", "trw_tightest")  # rounds of rounds
NO_SUCH = re.compile(
    "has no use for|has a direct route only|runs on factor graphs|needs labelled graphs|no pieces|"
    "not provably concave|is not for a|graphs of binary variables|fits start from|cannot be listed|"
    "starts from uniform trees|no entropy to reweight|no routine computes marginals"
)


def sampled(cases, every):
    """Every so many cases now, the rest at night."""
    night = pytest.mark.nightly
    return [
        pytest.param(*one, marks=() if k % every == 0 else night) for k, one in enumerate(cases)
    ]


def learnt(kind, units=(1.0, 1.0, 1.0), **how):
    """(model, its marginals in one array); a fit that has not converged has said so."""
    make, draw, form, own = KINDS[kind]
    X, y = draw(np.random.default_rng(3))
    X = [form(x * np.array(units)) for x in X]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = make(**own, **how).fit(X, y)
        except ValueError as error:
            if NO_SUCH.search(str(error)):
                pytest.skip(str(error))
            raise
        tau = model.predict_marginals(X)
    assert {w.category for w in heard} <= {ms.ConvergenceWarning}
    assert model.converged_ or heard or how["learner"] == "perceptron"
    return model, np.concatenate([np.ravel(part) for part in tau])


@pytest.mark.parametrize(
    ("kind", "learner", "route"),
    sampled(
        [
            (kind, learner, route)
            for kind, learner in itertools.product(KINDS, LEARNERS)
            for route in ("auto", "frank_wolfe")
            if route == "auto" or learner not in NESTED
        ],
        11,
    )
    + [
        pytest.param(
            kind, one, "frank_wolfe", marks=[] if kind == "sequence" else pytest.mark.nightly
        )
        for kind, one in itertools.product(KINDS, NESTED)
    ],
)
def test_powers_of_two_change_no_bit(kind, learner, route):
    rounds = 5 if route == "frank_wolfe" and learner in NESTED else 100
    how = {"learner": learner, "solver": route, "penalty": "standardised", "max_rounds": rounds}
    plain, before = learnt(kind, **how)
    scaled, after = learnt(kind, UNITS, **how)
    assert after.tobytes() == before.tobytes()
    assert scaled.n_iter_ == plain.n_iter_
    assert repr(scaled.certificate_) == repr(plain.certificate_)


@pytest.mark.parametrize(
    ("kind", "learner", "units"),
    sampled([(k, one, u) for k in KINDS for one in CONVEX for u in NEAR + FAR], 37),
)
def test_any_units_predict_the_same(kind, learner, units):
    how = {"learner": learner, "penalty": "standardised", "tol": 1e-10}
    plain, before = learnt(kind, **how)
    scaled, after = learnt(kind, units, **how)
    if plain.route_ == "direct" and plain.converged_:
        assert scaled.converged_
        np.testing.assert_allclose(after, before, atol=1e-6)
    one, other = plain.certificate_, scaled.certificate_
    apart = abs(one.objective - other.objective)
    assert apart <= one.gap + other.gap + 1e-9 * (1.0 + abs(one.objective))


@pytest.mark.parametrize(
    ("kind", "learner", "units"),
    sampled([(k, one, u) for k in KINDS for one in CONVEX for u in NEAR], 29),
)
def test_a_raw_optimum_is_reached_in_any_units(kind, learner, units):
    model, _ = learnt(kind, units, learner=learner, tol=1e-4)
    assert model.route_ != "direct" or model.converged_
    assert model.route_ != "direct" or model.certificate_.relative <= 1e-4


@pytest.mark.parametrize(
    ("kind", "learner", "units"),
    sampled([(k, one, u) for k in KINDS for one in LEARNERS for u in FAR], 59),
)
def test_beyond_that_it_is_reached_or_said(kind, learner, units):
    model, tau = learnt(kind, units, learner=learner, tol=1e-4, max_rounds=100)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(tau).all()


def hall(unit, offset=0.0):
    """People with answers to one question in some unit, and who shares with whom."""
    rng = np.random.default_rng(2)
    people = [
        {"id": k, "year": k // 8, "hours": offset + unit * float(rng.integers(0, 6))}
        for k in range(24)
    ]
    rooms = [8 * g + rng.permutation(8).reshape(4, 2) for g in range(3)]
    return people, [tuple(map(int, pair)) for pair in np.concatenate(rooms)]


def shared(unit, alpha, offset=0.0, **how):
    people, pairs = hall(unit, offset)
    model = ms.RoommateModel(ordinal="hours", cohort="year", alpha=alpha, **how)
    model.fit(people, pairs)
    return model, model.probabilities(people)["probability"]


@pytest.mark.parametrize("rho", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**-9, 2.0**9, 2.0**20])
def test_room_mates_in_powers_of_two_change_no_bit(unit, rho):
    """Their ridge is on weights of answers as given: it goes with the square of the unit."""
    plain, before = shared(1.0, 1.0, rho=rho)
    scaled, after = shared(unit, unit**2, rho=rho)
    assert after.tobytes() == before.tobytes()
    assert (scaled.coef_ * unit).tobytes() == plain.coef_.tobytes()


@pytest.mark.parametrize("rho", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize(
    ("unit", "offset"), [(1e-8, 0.0), (1e-4, 1e6), (1.0, 1e9), (1e4, 1e6), (1e8, 0.0)]
)
def test_room_mates_reach_their_optimum_in_any_unit(unit, offset, rho):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ms.ConvergenceWarning)
        model, _ = shared(unit, 1.0, offset * unit, rho=rho)
    assert model.certificate_.relative <= model.tol
