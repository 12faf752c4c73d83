"""A line that says how long something takes, and a bar, where somebody would wait in silence."""

from __future__ import annotations

import sys
from time import perf_counter as clock
from typing import Any

WORTH_SAYING = 2.0  # expected seconds
SOON = 0.1  # of these, after which the expectation counts


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
        if seconds > WORTH_SAYING and spent > SOON * WORTH_SAYING and watched():
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
