"""Random problems that could be answered wrongly without a word: see benchmarks/_faults/silent."""

from __future__ import annotations

import pytest

from benchmarks._faults import ranges, silent

LAWS = {"decoded": silent.decoded, "warmed": silent.warmed, "rescaled": silent.rescaled}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1000, 11000, 1000))]
)
def test_nothing_is_wrong_without_a_word(law, first):
    count = 40 if first == 0 else 1000
    assert [why for seed in range(first, first + count) for why in LAWS[law](seed)] == []


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1000, 6000, 1000))]
)
def test_scores_of_any_size_are_answered_or_flagged(first):
    """Near ties and near vertices too; flags and refusals are rare where scores are below 100."""
    count = 150 if first == 0 else 1000
    told = [ranges.told(seed) for seed in range(first, first + count)]
    assert [one.words for *_, said in told for one in said if one.kind != "flag"] == []
    small = sum(answers for below, answers, _ in told if below)
    flags = sum(one.kind == "flag" for below, _, said in told for one in said if below)
    assert flags <= 0.01 * small
