"""δ follows the gap, and a finer one is kept where its bounds are better."""

import pytest

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.frank_wolfe.smoothing import MOST, SHARE, Smoothing, tries
from mlestruct.structures import BipartiteMatching, chain


def test_only_negative_counting_numbers_are_worth_a_trial():
    assert tries(Entropy.of(Batch.of(chain(4, 3), count=2)))
    assert not tries(Entropy.of(Batch.of(BipartiteMatching(4), count=2), 0.5))


@pytest.mark.parametrize("tried", [False, True])
def test_delta_explains_no_more_than_its_share_of_the_gap(tried):
    delta = Smoothing()
    for number in range(60):
        gap = 10.0 * 0.9**number
        delta.follow(gap, 50.0, -gap, tried)
        assert 0.0 < delta.share <= min(MOST, SHARE * gap / 50.0)


@pytest.mark.parametrize(("worth", "falls"), [(0.5, True), (2.0, False)])
def test_a_finer_delta_stays_only_while_its_bounds_are_better(worth, falls):
    """Where half of the questions, the finer ones, prove ``worth`` times the others' bound."""
    delta = Smoothing()
    for _ in range(60):
        fine = delta.share < 0.99 * delta.rule * delta.factor
        delta.follow(10.0 * (worth if fine else 1.0), 50.0, 0.0, True)
    assert (delta.factor < 1e-3) == falls
    assert delta.factor <= 1.0
