"""Random problems that could be answered wrongly without a word: see benchmarks/_faults/silent."""

from __future__ import annotations

import pytest

from benchmarks._faults import silent

LAWS = {"decoded": silent.decoded, "warmed": silent.warmed, "rescaled": silent.rescaled}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1000, 11000, 1000))]
)
def test_nothing_is_wrong_without_a_word(law, first):
    count = 40 if first == 0 else 1000
    assert [why for seed in range(first, first + count) for why in LAWS[law](seed)] == []
