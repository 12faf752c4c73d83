"""A progress bar over a fit's rounds: on terminals, for fits that take a while, quiet in pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from mlestruct.frank_wolfe import State

WORTH_SHOWING = 2.0  # expected seconds


def track(states: Iterable[State], name: str, show: bool | None = None) -> Iterator[State]:
    """The same states; the bar's first line is the expected cost."""
    bar = None
    for state in states:
        if bar is None and _wanted(state, show):
            from tqdm import tqdm

            print(f"{name}: at most {state.cost}", file=sys.stderr)
            bar = tqdm(total=state.cost.calls, desc=name, unit="round", file=sys.stderr)
        if bar is not None:
            bar.set_postfix_str(f"relative gap {state.certificate.relative:.1e}")
            bar.update(min(1, state.round))
        yield state
    if bar is not None:
        bar.close()


def _wanted(state: State, show: bool | None) -> bool:
    if show is not None:
        return show
    return sys.stderr.isatty() and state.cost.seconds > WORTH_SHOWING
