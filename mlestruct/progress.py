"""A progress bar over a fit's rounds: in terminals and notebooks, for fits that take a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import ceil, floor, inf, log, log10
from typing import Any

import numpy as np

from mlestruct.learning.loop import Found
from mlestruct.statistics.watch import watched

WORTH_SHOWING = 2.0  # expected seconds
RECENT = 0.5  # share of the rounds that say where a fit is heading
FEWEST = 6  # and how many at least
LONG = 10_000  # calls an example: what is further off is not worth a number


Show = bool | Callable[[Found], None] | None
"""A bar or none, whichever suits (None), or a function that is told of every round instead."""


def watcher(name: str, show: Show = None) -> Callable[[Found], object] | None:
    """What is told of every round: a bar, the function that ``show`` is, or nothing."""
    if callable(show):
        return show
    shown = watched() if show is None else show
    return Bar(name, always=bool(show)) if shown else None


class Bar:
    """Shows a bar for one fit after another that takes a while, or for each of them ``always``.

    Its first line is the expected cost.
    """

    def __init__(self, name: str, *, always: bool) -> None:
        self.name, self.always = name, always
        self.bar: Any = None
        self.seen: list[tuple[float, float]] = []

    def __call__(self, state: Found) -> None:
        examples = max(state.examples, 1)
        pace = (state.asking or state.seconds) / max(state.calls, 1)  # seconds a call
        expected = state.rounds * examples * pace
        if self.bar is None and (self.always or expected > WORTH_SHOWING):
            from tqdm.auto import tqdm

            calls = f"{state.rounds} calls × {examples} examples × {1e3 * pace:.2g} ms"
            print(f"{self.name}: at most {calls} ≈ {expected:.2g} s", file=sys.stderr)
            how = {"total": state.rounds, "desc": self.name, "unit": "round"}
            self.bar, self.seen = tqdm(**how, file=sys.stderr), []
        if self.bar is None:
            return
        self.seen.append((state.calls / examples, state.certificate.relative))
        self.bar.set_postfix_str(told(state, self.seen))
        self.bar.update(min(1, state.round))
        if state.done:
            self.bar.close()
            self.bar = None


def told(state: Found, seen: Sequence[tuple[float, float]]) -> str:
    """Calls, the time in the solver and in the library, the best gap proven, and what is ahead."""
    rest = max(state.seconds - state.asking, 0.0)
    where = f"{state.asking:.1f} s solver + {rest:.1f} s library, " if state.asking else ""
    proven = f"proven to {state.certificate.relative:.1e}"
    return f"{state.calls} calls, {where}{proven}{heading(seen)}"


def heading(seen: Sequence[tuple[float, float]]) -> str:
    """From (calls an example, relative gap): when the next power of ten is due at this pace."""
    recent = [row for row in seen[floor(len(seen) * (1 - RECENT)) :] if 0.0 < row[1] < inf]
    if len(recent) < FEWEST:
        return ""
    calls, gaps = np.array(recent).T
    pace = -np.polyfit(calls - calls[-1], np.log(gaps), 1)[0]
    target = 10.0 ** (ceil(log10(gaps[-1])) - 1)
    if pace * LONG <= log(gaps[-1] / target):
        return ", no nearer lately"
    more = ceil(log(gaps[-1] / target) / pace)
    return f", {target:.0e} in about {more} calls an example more, if it goes on like this"
