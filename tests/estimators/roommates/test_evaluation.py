"""Evaluation: areas, ranks and likelihoods by their definitions."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import RoommateModel
from mlestruct.roommates.evaluation import _area, _error


def area(every, true) -> float:
    """The chance that one of ``true`` is larger than one of the others, ties counting half."""
    value, count = np.unique(every, return_counts=True)
    place = np.searchsorted(value, true)
    others = count - np.bincount(place, minlength=len(value))
    below = np.cumsum(others) - others
    return (below[place] + others[place] / 2).mean() / max(others.sum(), 1)


@pytest.fixture
def held(fitted, year):
    people, pairs = year(16, seed=21, first=301, year=4)
    return people, pairs, fitted.evaluate(people, pairs, top=(1, 3))


def test_areas_by_hand(fitted, held) -> None:
    people, pairs, found = held
    true = {frozenset((p["id_a"], p["id_b"])) for p in pairs}
    rows = fitted.probabilities(people)
    hit = np.array([frozenset(two) in true for two in zip(rows["a"], rows["b"], strict=True)])
    marginal = rows["probability"]
    assert found.auc["marginal"] == pytest.approx(area(marginal, marginal[hit]))
    columns = {p["id"]: p for p in people}
    weights = dict(zip(fitted.names(), fitted.coef_, strict=True))

    def learned(a, b):
        one, other = columns[a], columns[b]
        return (
            weights["tidy |difference|"] * abs(one["tidy"] - other["tidy"])
            + weights["owl same"] * (one["owl"] == other["owl"])
            + weights["diet same"] * (one["diet"] == other["diet"])
        )

    score = np.array(list(map(learned, rows["a"], rows["b"])))
    assert found.auc["score"] == pytest.approx(area(score, score[hit]))


def test_top_ranks_by_hand(fitted, held) -> None:
    people, pairs, found = held
    partner = {p["id_a"]: p["id_b"] for p in pairs} | {p["id_b"]: p["id_a"] for p in pairs}
    chance = {}
    t = fitted.probabilities(people)
    for a, b, probability in zip(t["a"], t["b"], t["probability"], strict=True):
        chance[a, b] = chance[b, a] = probability
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
    people, pairs, _ = held
    plan, exact = fitted.assign(people), 0.0
    for pairing in plan.pairings:
        n = np.arange(len(pairing.ids))
        score = pairing.at(n[:, None], n[None, :])[0]
        totals = [sum(score[a, b] for a, b in m) for m in matchings(list(range(8)))]
        place = {person: k for k, person in enumerate(pairing.ids)}
        mine = [(place[p["id_a"]], place[p["id_b"]]) for p in pairs if p["id_a"] in place]
        exact += sum(score[a, b] for a, b in mine) - np.logaddexp.reduce(totals)
    low, high = fitted.log_likelihood(people, pairs)
    assert low <= exact <= high


def test_people_without_pairs_are_left_out_in_words(fitted, year) -> None:
    people, pairs = year(12, seed=22, first=301, year=4)
    found = fitted.evaluate(people, pairs[1:])
    assert found.pairs == 5
    assert "left out: 2 of 12 people are in no pair" in str(found)


def test_an_area_s_error_is_the_jackknife_s(rng) -> None:
    """Leaving out one true pair after another, with everybody's pairs with its two people."""
    n = 60
    partner = np.arange(n) ^ 1
    structure = ms.Matching(n)
    low, high = structure.ends.T
    value = rng.standard_normal(structure.size) + 1.5 * (partner[low] == high)
    found, pull = _area(value, partner[low] == high, low, high)
    left = []
    for pair in range(n // 2):
        kept = (low // 2 != pair) & (high // 2 != pair)
        left.append(area(value[kept], value[kept & (partner[low] == high)]))
    count = n // 2
    jackknife = np.sqrt((count - 1) / count * ((left - np.mean(left)) ** 2).sum())
    assert found == pytest.approx(area(value, value[partner[low] == high]))
    assert pull.sum() == pytest.approx(0.0, abs=1e-12)
    assert _error(pull) == pytest.approx(jackknife, rel=0.1)


def test_pairs_that_were_learned_from_are_counted(year) -> None:
    """Wherever they stand in the tables; next year's people with the same ids are others."""
    people, pairs = year(20, seed=5)
    model = RoommateModel(ordinal="tidy", categorical="diet").fit(people, pairs)
    assert model.evaluate(people[::-1], pairs[::-1]).learned == 10
    assert "10 WERE LEARNED FROM" in str(model.evaluate(people, pairs))
    fresh, others = year(20, seed=6)
    found = model.evaluate(fresh, others)
    assert [p["id"] for p in fresh] == [p["id"] for p in people]
    assert found.learned == 0
    assert "none of them learned from; too few to compare" in str(found)
