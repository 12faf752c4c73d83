"""Generated students: who can be paired, by which law, and whether the chain has forgotten."""

import itertools

import numpy as np
import pytest

from mlestruct import data
from mlestruct.inference.exact import outcomes
from mlestruct.inference.sampling import sample_matchings
from mlestruct.roommates.students import ANSWERS, BURN, DIFFERENCE, QUESTIONS, _pair_up
from mlestruct.structures import Matching
from mlestruct.tables import table, write_csv


def one_group(people, year, gender):
    chosen = (people["year"] == year) & (people["gender"] == gender)
    return {name: column[chosen] for name, column in people.items()}


def test_everybody_has_one_roommate_of_the_same_year_and_gender():
    people, pairs, _ = data.roommates(n=30, years=2, seed=3)
    for year, gender in itertools.product((1, 2), "FM"):
        ids = one_group(people, year, gender)["id"].tolist()
        of = [
            {int(a), int(b)}
            for a, b, when in zip(pairs["id_a"], pairs["id_b"], pairs["year"], strict=True)
            if int(a) in ids and when == year
        ]
        assert sorted(itertools.chain(*of)) == sorted(ids)
        assert len(ids) in (14, 16)
    assert (pairs["id_a"] < pairs["id_b"]).all()


def test_a_score_is_the_sum_of_its_stated_parts():
    people, _, truth = data.roommates(n=8, years=1, seed=1)
    scores = truth.scores(people)
    for i, j in itertools.product(range(8), repeat=2):
        expected = 0.0
        for name, weight in zip(QUESTIONS, DIFFERENCE, strict=True):
            expected += weight * abs(int(people[name][i]) - int(people[name][j]))
        for (name, a, b), weight in ANSWERS.items():
            expected += weight * (sorted((people[name][i], people[name][j])) == sorted((a, b)))
        assert scores[i, j] == pytest.approx(expected, abs=1e-12)


def test_pairings_have_their_probabilities(rng):
    """All 15 pairings of six people, 2,000 independent draws, five standard errors."""
    scores = rng.normal(size=(6, 6))
    scores += scores.T
    graph = Matching(6)
    listed = outcomes(graph)
    weight = np.exp(listed @ scores[graph.ends[:, 0], graph.ends[:, 1]])
    p = weight / weight.sum()
    drawn = [graph.encode(_pair_up(scores, rng, burn=30)) for _ in range(2000)]
    seen = (np.array(drawn) @ listed.T == 3).mean(axis=0)
    assert (np.abs(seen - p) <= 5 * np.sqrt(p * (1 - p) / 2000)).all()


def test_the_chain_forgets_its_start(rng):
    """Mean scores from the best and from a random pairing agree after BURN sweeps, not after 3."""
    people, _, truth = data.roommates(n=200, years=1)
    scores = truth.scores(one_group(people, 1, "F"))
    graph = Matching(len(scores))
    score = scores[graph.ends[:, 0], graph.ends[:, 1]]

    def reached(burn, start):
        first = graph.encode(rng.permutation(len(scores)).reshape(-1, 2))
        chain = {"thin": 1, "start": first} if start == "random" else {"thin": 1}
        runs = [sample_matchings(graph, score, 1, rng, burn=burn, **chain) for _ in range(40)]
        return np.array([run.vertices[0] @ score for run in runs])

    def apart(burn):
        far, near = reached(burn, "best"), reached(burn, "random")
        return (far.mean() - near.mean()) / np.sqrt((far.var() + near.var()) / 40)

    assert abs(apart(BURN)) < 4
    assert apart(3) > 6


def test_the_truth_ranks_pairs_better_than_equal_weights():
    """At a size where it must show: 1,200 people, .75 against .70 where chance gives .5."""
    people, pairs, truth = data.roommates(n=1200, years=1, seed=5)
    women = one_group(people, 1, "F")
    place = {int(who): k for k, who in enumerate(women["id"])}
    matched = np.zeros((len(place),) * 2, dtype=bool)
    for a, b in zip(pairs["id_a"], pairs["id_b"], strict=True):
        if int(a) in place:
            matched[place[int(a)], place[int(b)]] = True
    upper = np.triu(np.ones_like(matched), 1).astype(bool)
    equal = -sum(np.abs(women[q][:, None] - women[q]) for q in QUESTIONS)

    def auc(score):
        chosen, others = score[matched], score[upper & ~matched]
        return np.mean([(s > others).mean() + (s == others).mean() / 2 for s in chosen])

    assert auc(truth.scores(women)) > auc(equal) + 0.02 > 0.6


@pytest.mark.parametrize("wrong", [{"n": 7}, {"n": 0}, {"years": 0}])
def test_sizes_are_checked(wrong):
    with pytest.raises(ValueError, match="need an even n ≥ 2 and years ≥ 1"):
        data.roommates(**wrong)


def test_the_shipped_files_are_the_generators_defaults(tmp_path):
    """datasets/README.md names the call that made them."""
    people, pairs, _ = data.roommates()
    for name, columns in (("roommates_people.csv", people), ("roommates_pairs.csv", pairs)):
        write_csv(tmp_path / name, columns)
        assert (tmp_path / name).read_bytes() == data.shipped(name).read_bytes()
        assert table(data.shipped(name)).names == list(columns)


def test_a_file_that_is_not_shipped_is_named():
    with pytest.raises(ValueError, match=r"this installation lacks datasets/no\.csv"):
        data.shipped("no.csv")
