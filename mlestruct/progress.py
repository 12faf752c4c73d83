"""A progress bar over a fit's rounds: in terminals and notebooks, for fits that take a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from math import ceil, floor, inf, log, log10
from typing import Any

import numpy as np

from mlestruct.method import Progress

WORTH_SHOWING = 2.0  # expected seconds
RECENT = 0.5  # share of the rounds that say where a fit is heading
FEWEST = 6  # and how many at least
LONG = 10_000  # calls an example: what is further off is not worth a number
OFTEN = 0.2  # seconds between two looks of a notebook's cell


Show = bool | Callable[[Progress], None] | None
"""A bar or none, whichever suits (None), or a function that is told of every round instead."""


def watcher(name: str, show: Show = None) -> Callable[[Progress], object] | None:
    """What is told of every round: a bar, the function that ``show`` is, or nothing."""
    if callable(show):
        return show
    watched = sys.stderr.isatty() or in_notebook() if show is None else show
    return Bar(name, always=bool(show)) if watched else None


class Bar:
    """Shows a bar for one fit after another that takes a while, or for each of them ``always``.

    Its first line is the expected cost.
    """

    def __init__(self, name: str, *, always: bool) -> None:
        self.name, self.always = name, always
        self.bar: Any = None
        self.seen: list[tuple[float, float]] = []

    def __call__(self, state: Progress) -> None:
        if self.bar is None and (self.always or state.cost.seconds > WORTH_SHOWING):
            self.bar, self.seen = _bar(self.name, state), []
        if self.bar is None:
            return
        calls = state.calls / max(state.cost.examples, 1)
        self.seen.append((calls, state.certificate.relative))
        self.bar.set_postfix_str(told(state, self.seen))
        self.bar.update(min(1, state.round))
        if state.done:
            self.bar.close()
            self.bar = None


def told(state: Progress, seen: Sequence[tuple[float, float]]) -> str:
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


def _bar(name: str, state: Progress) -> Any:
    """A cell's own display in a notebook, else a line of text that is written over."""
    if in_notebook():
        return Cell(f"{name}: at most {state.cost}", state.cost.calls)
    from tqdm import tqdm

    print(f"{name}: at most {state.cost}", file=sys.stderr)
    return tqdm(total=state.cost.calls, desc=name, unit="round", file=sys.stderr)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: IPython is loaded and its shell belongs to one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Cell:
    """Progress in a notebook: one display that is renewed, needing neither widgets nor a script.

    Where HTML is shown it is a bar, elsewhere a line of text; what stays is the last state.
    """

    def __init__(self, name: str, total: int) -> None:
        from IPython.display import display

        self.name, self.total, self.done, self.words = name, total, 0, ""
        self._shown = time.monotonic()
        self._display = display(self, display_id=True)

    def set_postfix_str(self, words: str) -> None:
        """Set the words beside the bar."""
        self.words = words

    def update(self, rounds: int) -> None:
        """Count rounds; the bar is drawn a few times a second at most."""
        self.done += rounds
        if time.monotonic() - self._shown > OFTEN:
            self._renew()

    def close(self) -> None:
        """The last state."""
        self._renew()

    def _renew(self) -> None:
        self._shown = time.monotonic()
        self._display.update(self)

    def __repr__(self) -> str:
        return f"{self.name}: {self.done} rounds, {self.words}"

    def _repr_html_(self) -> str:
        from mlestruct.html import element

        bar = element("progress", max=self.total, value=self.done, aria_label=self.name)
        return element("div", bar, f" {self!r}")
