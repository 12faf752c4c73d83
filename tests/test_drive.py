"""The loop of every fit: why it ends, what it keeps, and what loops inside it may still spend."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from mlestruct.drive import Budget, Progress, drive, then
from mlestruct.dual import Certificate

EXAMPLES = 3


def proof(gap):
    return Certificate(gap, 0.0, 0.0, "hull", "exact")


@dataclass(frozen=True)
class Halving:
    """A gap of 1 that every round halves, until ``stuck``; ``said`` is what rounds say besides."""

    stuck: int = 1000
    said: dict[str, Any] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    name: str = "halving"
    size: int = 1

    def setting(self):
        return {"stuck": self.stuck}

    def rounds(self, loop):
        number = 0 if loop.tree is None else loop.tree
        while True:
            loop.save(lambda: number)  # noqa: B023
            self.asked.append(number)
            over = "step" if number >= self.stuck else ""
            calls, gap = (number + 1) * EXAMPLES, 0.5**number
            found = Progress(number, calls, EXAMPLES, proof(gap), np.full(2, gap), over=over)
            yield replace(found, **self.said)
            number += 1


@pytest.mark.parametrize(
    ("budget", "rounds", "short"),
    [
        (Budget(0.1, 50), 5, ""),
        (Budget(0.0, 7), 8, "rounds"),
        (Budget(0.0, 7, unit="epochs"), 8, "epochs"),
        (Budget(0.0, 50, calls=20), 6, "calls"),
        (Budget(0.0, 50), 13, "step"),
        (Budget(0.125, 3), 4, ""),  # met in the last round there is
    ],
)
def test_the_first_cause_ends_a_fit(budget, rounds, short):
    states = list(drive(Halving(stuck=12), budget))
    assert len(states) == rounds
    assert [said.done for said in states] == [False] * (rounds - 1) + [True]
    assert (states[-1].short, {said.short for said in states[:-1]}) == (short, {""})
    assert states[-1].calls <= (budget.calls or np.inf)


def test_the_better_proof_of_two_methods_is_kept():
    worse = Halving(said={"certificate": proof(0.9), "over": "step"})
    states = list(
        then(drive(Halving(stuck=2), Budget(0.0, 9)), lambda end: drive(worse, Budget(0.0, 9)))
    )
    assert states[-1].gap == 0.25
    assert states[-1].theta[0] == 0.25


def test_silent_rounds_speak_if_they_are_the_last():
    silent = {
        "silent": True,
        "left": np.inf,
        "prove": lambda why: Progress(4, 1, 1, proof(0.5), np.zeros(2)),
    }
    (only,) = drive(Halving(said=silent), Budget(0.0, 4))
    assert (only.gap, only.short) == (0.5, "rounds")
