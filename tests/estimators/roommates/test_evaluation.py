"""Evaluation: areas, ranks and likelihoods by their definitions."""

from math import log

import numpy as np
import pytest

from mlestruct.estimators.roommates.evaluation import area


def test_the_area_is_the_chance_of_the_right_order(rng) -> None:
    every = np.concatenate([rng.integers(0, 5, 40), rng.integers(2, 7, 6)]).astype(float)
    true, others = every[40:], every[:40]
    wins = (true[:, None] > others).mean() + 0.5 * (true[:, None] == others).mean()
    assert area(every, true) == pytest.approx(wins)


@pytest.fixture
def held(fitted, year):
    people, pairs = year(16, seed=21, first=301, year=4)
    return people, pairs, fitted.evaluate(people, pairs, top=(1, 3))


def test_areas_by_hand(fitted, held) -> None:
    people, pairs, found = held
    true = {frozenset((p["id_a"], p["id_b"])) for p in pairs}
    rows = fitted.probabilities(people)
    hit = np.array([frozenset((r["a"], r["b"])) in true for r in rows])
    marginal = np.array([r["probability"] for r in rows])
    assert found.auc["marginal"] == pytest.approx(area(marginal, marginal[hit]))
    columns = {p["id"]: p for p in people}

    def difference(a, b):
        one, other = columns[a], columns[b]
        return (
            -abs(one["tidy"] - other["tidy"])
            + (one["owl"] == other["owl"])
            + (one["diet"] == other["diet"])
        )

    constant = np.array([float(difference(r["a"], r["b"])) for r in rows])
    assert found.auc["constant"] == pytest.approx(area(constant, constant[hit]))
    weights = dict(zip(fitted.names_, fitted.coef_, strict=True))

    def learned(a, b):
        one, other = columns[a], columns[b]
        return (
            weights["tidy |difference|"] * abs(one["tidy"] - other["tidy"])
            + weights["owl same"] * (one["owl"] == other["owl"])
            + weights["diet same"] * (one["diet"] == other["diet"])
        )

    score = np.array([learned(r["a"], r["b"]) for r in rows])
    assert found.auc["score"] == pytest.approx(area(score, score[hit]))


def test_top_ranks_by_hand(fitted, held) -> None:
    people, pairs, found = held
    partner = {p["id_a"]: p["id_b"] for p in pairs} | {p["id_b"]: p["id_a"] for p in pairs}
    chance = {}
    for row in fitted.probabilities(people):
        chance[row["a"], row["b"]] = chance[row["b"], row["a"]] = row["probability"]
    for k in (1, 3):
        hits = 0
        for a, b in partner.items():
            mine = [p for (one, _), p in chance.items() if one == a]
            hits += 1 + sum(p > chance[a, b] for p in mine) <= k - 0.5 * (
                sum(p == chance[a, b] for p in mine) - 1
            )
        assert found.top[k] == pytest.approx(hits / 16)
        assert found.top_random[k] == pytest.approx(k / 7)


def test_the_interval_holds_the_exact_likelihood(fitted, held, matchings) -> None:
    people, pairs, found = held
    plan, exact = fitted.assign(people), 0.0
    for pairing in plan.pairings:
        n = np.arange(len(pairing.ids))
        score = pairing.at(n[:, None], n[None, :])[0]
        totals = [sum(score[a, b] for a, b in m) for m in matchings(list(range(8)))]
        place = {person: k for k, person in enumerate(pairing.ids)}
        mine = [(place[p["id_a"]], place[p["id_b"]]) for p in pairs if p["id_a"] in place]
        exact += sum(score[a, b] for a, b in mine) - np.logaddexp.reduce(totals)
    low, high = found.log_likelihood
    assert low <= exact <= high
    assert found.log_likelihood_random == pytest.approx(-2 * log(105))
    assert found.log_likelihood_estimate == pytest.approx(exact, abs=0.1)


def test_marginals_are_near_the_exact_ones(fitted, held, matchings) -> None:
    """ρ = ½ is a surrogate: near, on a small group, and never claimed to be exact."""
    plan = fitted.assign(held[0])
    pairing = plan.pairings[0]
    n = np.arange(8)
    score, tau = pairing.at(n[:, None], n[None, :])
    listed = list(matchings(list(range(8))))
    weight = np.array([np.exp(sum(score[a, b] for a, b in m)) for m in listed])
    exact = np.zeros((8, 8))
    for w, m in zip(weight / weight.sum(), listed, strict=True):
        for a, b in m:
            exact[a, b] += w
            exact[b, a] += w
    assert np.abs(tau - exact).max() < 0.05
    beliefs = pairing.beliefs
    assert beliefs.bound.kind == "upper"
    assert np.log(weight.sum()) <= beliefs.upper[0]


def test_people_without_pairs_are_left_out_in_words(fitted, year) -> None:
    people, pairs = year(12, seed=22, first=301, year=4)
    found = fitted.evaluate(people, pairs[1:])
    assert found.pairs == 5
    assert "left out: 2 of 12 people are in no pair" in str(found)
