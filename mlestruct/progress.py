"""Progress bars for what takes a while, where somebody sits at a terminal or a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter as clock
from typing import Any

WORTH_SHOWING = 2.0  # expected seconds
SOON = 0.1  # of these, after which the expectation of a watch counts


Show = bool | Callable[[Any], None] | None
"""A bar or none, whichever suits (None), or a function that is told of every round instead."""


def watcher(name: str, show: Show = None) -> Callable[[Any], object] | None:
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

    def __call__(self, state: Any) -> None:
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


class Watch:
    """Called with how many of about ``total`` equal parts are done; ``with`` closes the bar.

    It says nothing where all is done quickly, or nobody sits at a terminal or a notebook, and
    before a ``total`` is known.
    """

    def __init__(self, what: str, total: int = 0) -> None:
        self.what, self.total, self.done = what, total, 0
        self.began = clock()
        self.bar: Any = None

    def __call__(self, count: int) -> None:
        self.done += count
        if self.bar is not None:
            self.bar.update(count)
            return
        spent = clock() - self.began
        seconds = spent * self.total / self.done
        if seconds > WORTH_SHOWING and spent > SOON * WORTH_SHOWING and watched():
            from tqdm.auto import tqdm

            sys.stderr.write(f"mlestruct: {self.what}, about {seconds:.2g} s\n")
            sys.stderr.flush()
            self.bar = tqdm(total=self.total, initial=self.done, file=sys.stderr)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()


def watched() -> bool:
    """Whether somebody sits at a terminal or a notebook, and this is not one of several workers."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return False
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())
