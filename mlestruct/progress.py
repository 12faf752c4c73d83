"""A progress bar over a fit's rounds: in terminals and notebooks, for fits that take a while."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mlestruct.learning.loop import Found
from mlestruct.statistics.watch import watched

WORTH_SHOWING = 2.0  # expected seconds


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

    Its first line is the expected cost; it tells calls, the time in the solver and in the library,
    and the best gap proven.
    """

    def __init__(self, name: str, *, always: bool) -> None:
        self.name, self.always = name, always
        self.bar: Any = None

    def __call__(self, state: Found) -> None:
        examples = max(state.examples, 1)
        pace = (state.asking or state.seconds) / max(state.calls, 1)  # seconds a call
        expected = state.rounds * examples * pace
        if self.bar is None and (self.always or expected > WORTH_SHOWING):
            from tqdm.auto import tqdm

            calls = f"{state.rounds} calls × {examples} examples × {1e3 * pace:.2g} ms"
            print(f"{self.name}: at most {calls} ≈ {expected:.2g} s", file=sys.stderr)
            how = {"total": state.rounds, "desc": self.name, "unit": "round"}
            self.bar = tqdm(**how, file=sys.stderr)
        if self.bar is None:
            return
        rest = max(state.seconds - state.asking, 0.0)
        where = f"{state.asking:.1f} s solver + {rest:.1f} s library, " if state.asking else ""
        proven = f"proven to {state.certificate.relative:.1e}"
        self.bar.set_postfix_str(f"{state.calls} calls, {where}{proven}")
        self.bar.update(min(1, state.round))
        if state.done:
            self.bar.close()
            self.bar = None
