"""Plans: best by brute force and by networkx, under rules, for odd groups."""

import networkx as nx
import numpy as np
import pytest

from mlestruct import RoommateModel


def scores_of(plan, group=0):
    """The learned score of every two people of a group, by ids."""
    pairing = plan.pairings[group]
    n = np.arange(len(pairing.ids))
    table = pairing.at(n[:, None], n[None, :])[0]
    return {
        (a, b): table[i, j] for i, a in enumerate(pairing.ids) for j, b in enumerate(pairing.ids)
    }


def partners(plan):
    return {frozenset(pair[:2]) for pair in plan.pairs}


@pytest.fixture
def model(year):
    return RoommateModel(ordinal="tidy", categorical="diet", binary="owl").fit(*year(16, seed=1))


@pytest.mark.parametrize("seed", range(3))
def test_the_best_plan_under_rules_by_enumeration(model, year, matchings, seed) -> None:
    people, _ = year(8, seed=20 + seed)
    forbid, require = [(1, 2), (3, 8)], [(4, 5)]
    plan = model.assign(people, forbid=forbid, require=require)
    score = scores_of(plan)
    allowed = [
        m for m in matchings(list(range(1, 9))) if (4, 5) in m and not set(m) & {(1, 2), (3, 8)}
    ]
    best = max(sum(score[pair] for pair in m) for m in allowed)
    assert plan.objective == pytest.approx(best)
    assert plan.gap <= 1e-9
    assert frozenset((4, 5)) in partners(plan)
    assert not partners(plan) & {frozenset((1, 2)), frozenset((3, 8))}


def test_the_best_plan_by_networkx(model, year) -> None:
    people, _ = year(40, seed=30)
    plan = model.assign(people)
    graph = nx.Graph()
    graph.add_weighted_edges_from((a, b, s) for (a, b), s in scores_of(plan).items() if a < b)
    best = nx.max_weight_matching(graph, maxcardinality=True)
    assert plan.objective == pytest.approx(sum(graph.edges[e]["weight"] for e in best))


def test_an_odd_group_leaves_over_whom_it_misses_least(model, year, matchings) -> None:
    """The others' best total, scores being centred so that an average partner is worth 0."""
    people, _ = year(7, seed=50)
    plan = model.assign(people)
    score, ids = scores_of(plan), list(range(1, 8))
    for a in ids:
        assert sum(score[a, b] for b in ids if b != a) == pytest.approx(0.0, abs=1e-9)
    totals = {
        alone: max(sum(score[p] for p in m) for m in matchings([i for i in ids if i != alone]))
        for alone in ids
    }
    (over,) = plan.left_over
    assert totals[over] == pytest.approx(max(totals.values()))
    assert plan.partner(over) is None
    (single,) = plan.singles
    rows = dict.fromkeys(ids, 0.0)
    found = model.probabilities(people)
    for a, b, probability in zip(found["a"], found["b"], found["probability"], strict=True):
        rows[a] += probability
        rows[b] += probability
    assert single.probability == pytest.approx(1.0 - rows[over], abs=1e-9)


def test_one_person_alone_and_everybody_required(model, year) -> None:
    people, _ = year(4, seed=60)
    assert model.assign(people[:1]).left_over == [1]
    plan = model.assign(people, require=[(1, 2), (3, 4)])
    assert partners(plan) == {frozenset((1, 2)), frozenset((3, 4))}


def test_the_order_of_people_changes_nothing(model, year) -> None:
    people, _ = year(12, seed=70)
    shuffled = [people[k] for k in np.random.default_rng(0).permutation(12)]
    one, other = model.assign(people), model.assign(shuffled)
    assert one.objective == pytest.approx(other.objective)
    mine, theirs = (
        {
            frozenset(pair): probability
            for *pair, probability in zip(t["a"], t["b"], t["probability"], strict=True)
        }
        for t in map(model.probabilities, (people, shuffled))
    )
    assert mine.keys() == theirs.keys()
    for pair, probability in mine.items():
        assert theirs[pair] == pytest.approx(probability, abs=1e-9)


def test_alternatives_and_what_they_cost(model, year, matchings) -> None:
    people, _ = year(8, seed=80)
    plan = model.assign(people, forbid=[(1, 3)])
    near = plan.alternatives(1, count=10)
    assert {a.partner for a in near} == {2, 4, 5, 6, 7, 8} - {plan.partner(1)}
    assert [a.probability for a in near] == sorted((a.probability for a in near), reverse=True)
    other = near[0].partner
    found = model.assign(people, forbid=[(1, 3)], require=[(1, other)])
    score = scores_of(plan)
    best = max(
        sum(score[p] for p in m)
        for m in matchings(list(range(1, 9)))
        if (1, 3) not in m and (1, other) in m
    )
    assert found.objective == pytest.approx(best)
    assert partners(model.assign(people, forbid=[(1, plan.partner(1))])) != partners(plan)
