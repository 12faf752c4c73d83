"""The loop of a fit: why it ends, what it keeps, and what loops inside it may still spend."""

from __future__ import annotations

import numpy as np
import pytest

from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Found, Loop

EXAMPLES = 3


def proof(gap):
    return Certificate(gap, 0.0, 0.0, "hull", "exact")


def halving(loop, stuck=1000, first=1.0):
    """A gap that every round halves, until it is ``stuck``."""
    number = loop.state or 0
    while True:
        loop.save(number)
        gap = first * 0.5**number
        said = Found(
            np.full(2, gap), proof(gap), round=number, calls=(number + 1) * EXAMPLES,
            examples=EXAMPLES,
        )  # fmt: skip
        why = loop.over(said, "step" if number >= stuck else "")
        if why or gap <= loop.tol:
            return loop.end(said, why if gap > loop.tol else "")
        loop.tell(said)
        number += 1


@pytest.mark.parametrize(
    ("limits", "rounds", "short"),
    [
        ({"tol": 0.1, "rounds": 50}, 5, ""),
        ({"tol": 0.0, "rounds": 7}, 8, "rounds"),
        ({"tol": 0.0, "rounds": 50, "calls": 20}, 6, "calls"),
        ({"tol": 0.0, "rounds": 50}, 13, "step"),
        ({"tol": 0.125, "rounds": 3}, 4, ""),  # met in the last round there is
    ],
)
def test_the_first_cause_ends_a_fit(limits, rounds, short):
    said = []
    found = halving(Loop(**limits, told=said.append), stuck=12)
    assert len(said) == rounds
    assert [one.done for one in said] == [False] * (rounds - 1) + [True]
    assert (found.short, {one.short for one in said[:-1]}) == (short, {""})
    assert found.calls <= limits.get("calls", np.inf)


def test_the_better_proof_of_two_methods_is_kept():
    loop = Loop(tol=0.0, rounds=9)
    first = halving(Loop(loop, "one", after=None), stuck=2)
    worse = halving(Loop(loop, "other", after=first), stuck=0, first=0.9)
    found = loop.better(first, worse)
    assert found.gap == 0.25
    assert found.theta[0] == 0.25
    assert found.calls == 4 * EXAMPLES
    assert [row[3] for row in loop.history.rows] == [1.0, 0.5, 0.25, 0.25]


def test_whoever_is_told_can_end_a_fit():
    """By returning True: the next round is the last."""
    found = halving(Loop(tol=0.0, rounds=50, told=lambda said: said.round == 3))
    assert (found.round, found.short) == (4, "stopped")
