"""Tables of pairs: faults by place, weights as conditional likelihoods, who is left out."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import RoommateModel


@pytest.fixture
def learn(year):
    people, _ = year(8)

    def fit(pairs, table=people, **settings):
        return RoommateModel(**{"same": "gender", "ordinal": "tidy", **settings}).fit(table, pairs)

    return fit


def test_faults(learn) -> None:
    def refused(message, pairs, **settings):
        with pytest.raises(ValueError, match=message):
            learn(pairs, **settings)

    refused("pairs, row 1: nobody has id 99", [(1, 2), (3, 99)])
    refused("pairs, row 0: nobody has id '1'; there is 1, of another type", [("1", "2")])
    refused("pairs, row 1: 3 is paired with themself", [(1, 2), (3, 3)])
    refused("pairs, row 2: 1 is in another pair too, in pairs, row 0", [(1, 2), (3, 4), (5, 1)])
    refused(r"row 0: 1 \(gender F\) and 8 \(gender M\) are of different groups", [(1, 8), (2, 3)])
    refused(r"pairs, row 0 is \(1, 2, 3\); expected two ids", [(1, 2, 3)])
    refused("pairs, row 0 is 1; expected two ids", [1, 2])
    refused("nothing to learn from", [])
    refused("nothing to learn from; .*1 pairs are alone", [(1, 2)])


def weighted(*weights):
    return [
        {"id_a": 2 * k + 1, "id_b": 2 * k + 2, "kept": weight} for k, weight in enumerate(weights)
    ]


def test_faulty_weights(learn) -> None:
    def refused(message, *weights, **settings):
        with pytest.raises(ValueError, match=message):
            learn(weighted(*weights), weight="kept", **settings)

    refused("pairs, row 1: weight -1", 1, -1, 1, 1)
    refused("pairs, row 2: weight nan", 1, 1, None, 1)
    refused("column 'kept' holds text; write the weights as numbers", "yes", "no", "no", "no")
    refused("nothing to learn from; left out: 2 pairs have weight 0; left out: 2", 0, 1, 0, 1)


def test_the_weighted_likelihood_is_the_sum_of_conditional_ones(year) -> None:
    """Against the general learner on the same blocks, made by hand."""
    people, _ = year(12, seed=5)
    pairs = [
        {"id_a": a, "id_b": a + 1, "kept": w}
        for a, w in zip(range(1, 12, 2), [1, 1, 0.5, 1, 0.5, 0.5], strict=True)
    ]
    model = RoommateModel(ordinal="tidy", weight="kept", alpha=0.3).fit(people, pairs)
    tidy = np.array([person["tidy"] for person in people], dtype=float)
    blocks = [[0, 1, 2, 3, 6, 7], [4, 5, 8, 9, 10, 11]]
    batch = ms.Batch.of(ms.Matching(6), [[(0, 1), (2, 3), (4, 5)]] * 2, weight=[1.0, 0.5])
    low, high = np.triu_indices(6, 1)
    features = [np.abs(tidy[b][low] - tidy[b][high])[:, None] for b in blocks]
    dense = ms.Dense.of(batch, features)
    learner = ms.mle_struct(0.5, regulariser=0.3, solver=ms.FrankWolfe(tol=1e-8))
    np.testing.assert_allclose(model.coef_, learner.fit(batch, dense).theta, atol=1e-4)


def test_who_is_left_out_is_said(year) -> None:
    people, pairs = year(12)
    later = [pair | {"year": 2, "id_a": 900, "id_b": 901} for pair in pairs[:1]]
    model = RoommateModel(cohort="year", ordinal="tidy").fit(people, pairs[:-1] + later)
    assert "left out: 2 of 12 people are in no pair" in model.notes_
    assert "left out: 1 pairs are of cohorts that are not in the table of people" in model.notes_
    assert all(note in str(model.summary()) for note in model.notes_)
