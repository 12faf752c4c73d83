"""A progress bar over a fit's rounds: on terminals, for fits that take a while, quiet in pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, inf, log, log10

import numpy as np

from mlestruct.frank_wolfe import State

WORTH_SHOWING = 2.0  # expected seconds
RECENT, FEWEST = (
    0.5,
    6,
)  # share of the rounds that say where a fit is heading, and how many at least
LONG = 10_000  # calls an example: what is further off is not worth a number


def track(states: Iterable[State], name: str, show: bool | None = None) -> Iterator[State]:
    """The same states; the bar's first line is the expected cost."""
    bar = None
    seen: list[tuple[float, float]] = []
    for state in states:
        if bar is None and _wanted(state, show):
            from tqdm import tqdm

            print(f"{name}: at most {state.cost}", file=sys.stderr)
            bar = tqdm(total=state.cost.calls, desc=name, unit="round", file=sys.stderr)
        if bar is not None:
            seen.append((state.calls / max(state.cost.examples, 1), state.certificate.relative))
            bar.set_postfix_str(told(state, seen))
            bar.update(min(1, state.round))
        yield state
    if bar is not None:
        bar.close()


def told(state: State, seen: Sequence[tuple[float, float]]) -> str:
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


def _wanted(state: State, show: bool | None) -> bool:
    if show is not None:
        return show
    return sys.stderr.isatty() and state.cost.seconds > WORTH_SHOWING
