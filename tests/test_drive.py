"""The loop of every fit: why it ends, what it keeps, and what loops inside it may still spend."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from mlestruct.checkpoint import Checkpoint, begin
from mlestruct.drive import Budget, Progress, drive, last, then, within
from mlestruct.dual import Certificate
from mlestruct.frank_wolfe import FrankWolfe

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


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only where a test says so."""
    now = [0.0]
    monkeypatch.setattr("mlestruct.checkpoint.clock", lambda: now[0])
    return now


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


def test_a_method_asks_nothing_after_the_last_round():
    method = Halving()
    list(drive(method, Budget(0.0, 4)))
    assert method.asked == [0, 1, 2, 3, 4]


def test_seconds_are_those_of_all_that_follows(clock):
    """One method after another, on one clock: neither counts the other's time again."""

    def slowly(states):
        for said in states:
            clock[0] += 1.0
            yield said

    loop = begin(None, "outer")
    budget = Budget(0.0, 50, seconds=7.5)
    first = drive(Halving(stuck=3), budget, loop)
    both = then(first, lambda end: drive(Halving(), budget, loop) if end.short == "step" else None)
    states = list(slowly(both))
    assert [said.seconds for said in states] == list(map(float, range(len(states))))
    assert states[-1].short == "seconds"
    assert states[-1].seconds == 8.0
    assert [said.round for said in states] == list(range(len(states)))
    assert [said.calls for said in states] == [EXAMPLES * (k + 1) for k in range(len(states))]


def test_the_better_proof_of_two_methods_is_kept():
    worse = Halving(said={"certificate": proof(0.9), "over": "step"})
    states = list(
        then(drive(Halving(stuck=2), Budget(0.0, 9)), lambda end: drive(worse, Budget(0.0, 9)))
    )
    assert states[-1].gap == 0.25
    assert states[-1].theta[0] == 0.25


def test_a_solver_inside_a_loop_has_the_calls_that_are_left():
    assert within(FrankWolfe(calls=10), None, 4).calls == 6
    assert within(FrankWolfe(calls=10), None, 14).calls == 0
    assert within(FrankWolfe(), None, 14).calls is None


def test_a_proof_may_show_that_a_fit_is_not_over():
    """It is asked for when the loop means to end, told why, and once more at the real end."""
    asked = []

    def prove(why):
        asked.append(why)
        gap = 1.0 if len(asked) < 3 else 0.01
        return Progress(len(asked), 1, 1, proof(gap), np.zeros(2))

    told = {"prove": prove, "left": 0.0}
    states = list(drive(Halving(said=told), Budget(0.1, 50)))
    assert asked == ["", "", ""]
    assert [said.gap for said in states] == [1.0, 1.0, 0.01]
    assert not states[-1].short


def test_silent_rounds_speak_if_they_are_the_last():
    silent = {
        "silent": True,
        "left": np.inf,
        "prove": lambda why: Progress(4, 1, 1, proof(0.5), np.zeros(2)),
    }
    (only,) = drive(Halving(said=silent), Budget(0.0, 4))
    assert (only.gap, only.short) == (0.5, "rounds")


def test_where_only_rounds_ran_out_a_method_has_its_own_word():
    said = {"short": "proof"}
    assert last(drive(Halving(said=said), Budget(0.0, 2))).short == "proof"
    assert last(drive(Halving(said=said), Budget(0.0, 9, calls=5))).short == "calls"
    assert last(drive(Halving(said=said), Budget(0.3, 9))).short == ""


@pytest.mark.parametrize("ended", range(1, 9))
def test_rounds_that_a_file_remembers_come_again_and_are_not_asked_for(ended, tmp_path):
    """Told the same, whenever it was ended; of rounds before the last write the arrays are gone."""

    def told(states):
        return [(said.round, said.calls, said.gap, said.done, said.short) for said in states]

    budget = Budget(0.0, 8)
    whole = list(drive(Halving(), budget))
    kept = Checkpoint(tmp_path / "fit", every=1)
    first = drive(Halving(), budget, kept)
    list(islice(first, ended))
    first.close()
    del first
    again = Halving()
    states = list(drive(again, budget, Checkpoint(tmp_path / "fit", every=1)))
    assert told(states) == told(whole)
    assert again.asked[0] >= ended - 1
    assert states[-1].theta.tobytes() == whole[-1].theta.tobytes()
    once_more = Halving()
    assert told(drive(once_more, budget, Checkpoint(tmp_path / "fit", every=1))) == told(whole)
    assert not once_more.asked


def test_what_is_between_a_method_and_its_loop_is_not_told():
    for said in drive(Halving(said={"left": 0.3, "over": "", "prove": None}), Budget(0.0, 3)):
        assert (said.left, said.over, said.prove) == (None, "", None)
