"""F1 by counting."""

from __future__ import annotations

import pytest

from mlestruct.metrics import entities, entity_f1


def test_entities_are_maximal_runs_of_one_kind(rng):
    """A span is one iff it starts where nothing goes on, goes on to its end, and stops there."""
    tags = ["O", "B-a", "I-a", "B-b", "I-b"]
    for _ in range(50):
        drawn = list(rng.choice(tags, 8))

        def goes_on(i, drawn=drawn):
            return i < 8 and drawn[i][0] == "I" and i > 0 and drawn[i - 1][1:] == drawn[i][1:]

        expected = {
            (i, j, drawn[i][2:])
            for i in range(8)
            for j in range(i + 1, 9)
            if drawn[i] != "O" and not goes_on(i) and not goes_on(j)
            if all(goes_on(k) for k in range(i + 1, j))
        }
        assert entities(drawn) == expected


def test_entity_f1_counts_whole_spans():
    truth = [["B-a", "I-a", "O", "B-b"], ["B-a", "B-a"]]
    found = [["B-a", "O", "O", "B-b"], ["B-a", "B-b"]]
    assert entity_f1(truth, found) == pytest.approx((0.5, 0.5, 0.5))
    assert entity_f1(truth, found, "a") == pytest.approx((1 / 2, 1 / 3, 2 / 5))
    assert entity_f1(truth, found, "b") == pytest.approx((1 / 2, 1, 2 / 3))
    with pytest.raises(ValueError, match="2 true sentences but 1 predicted"):
        entity_f1(truth, found[:1])
