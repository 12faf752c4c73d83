"""Limits of time for one call: ``with limited(max_seconds, "marginals"):`` and who asks for it.

A limit belongs to a context (:mod:`contextvars`), not to arguments: whatever runs inside, at any
depth and on any thread, asks :func:`late` between two turns of a loop, and where no limit is in
force nothing changes. Loops that can stop and keep what they have ask :func:`late`; questions to a
user's solver, which cannot, :func:`check`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter as clock
from typing import Any

import numpy as np

from mlestruct.errors import ConvergenceWarning, outside

GRACE = 0.05  # seconds of turns that a kernel may take however late it is
ADVICE = "raise max_seconds"
SPEED = 1e8  # entries a second that a turn of a kernel looks at, about


class OutOfTime(BaseException):
    """Raised between two questions to a solver once the limit is reached; never seen by users."""


@dataclass
class limited:
    """A context in which a call may take ``max_seconds``, or ``own``; None sets no limit.

    Where the limit cut anything short, a :class:`ConvergenceWarning` at the end says so once, with
    what :func:`note` was told. Where nothing could be kept, a TimeoutError is raised instead. A
    limit inside another that ends earlier sets none.
    """

    max_seconds: Any
    name: str
    own: float | None = None
    end: float = np.inf
    hit: bool = False
    notes: list[str] = field(default_factory=list)
    token: Any = None

    def __enter__(self) -> limited:
        if self.max_seconds is None:
            self.max_seconds = self.own
        given, outer = self.max_seconds, _here.get()
        if given is None:
            return self
        number = isinstance(given, (int, float, np.integer, np.floating))
        if not number or isinstance(given, bool) or not given >= 0:
            why = "it must be a number of seconds, 0 or more, or None"
            raise ValueError(f"max_seconds is {given!r}; {why}")
        self.end = clock() + float(given)
        if outer is None or self.end < outer.end:
            self.token = _here.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self.token is None:
            return
        _here.reset(self.token)
        self.token = None
        if kind is OutOfTime and self.hit:
            raise TimeoutError(f"{self.words()}, with nothing to answer by then: {ADVICE}")
        if kind is None and self.hit:
            told = "; ".join([self.words(), *self.notes, ADVICE])
            warnings.warn(told, ConvergenceWarning, stacklevel=outside())

    def words(self) -> str:
        """What happened."""
        return f"{self.name}: max_seconds={self.max_seconds:g} ended it before it was done"


_here: ContextVar[limited | None] = ContextVar("limit", default=None)


def late(need: float = 0.0) -> bool:
    """Whether the limit is reached, or leaves less than the seconds that the next turn will need.

    Whoever asks stops there, so the limit counts as hit.
    """
    limit = _here.get()
    if limit is None or clock() + need < limit.end:
        return False
    limit.hit = True
    return True


def check() -> None:
    """Raise :class:`OutOfTime` where a limit is reached."""
    if _here.get() is not None and late():
        raise OutOfTime


def cut() -> limited | None:
    """The limit that has cut something short, if it has."""
    limit = _here.get()
    return limit if limit is not None and limit.hit else None


def note(text: str) -> bool:
    """Have the limit that was hit say this at its end; False where none was."""
    limit = cut()
    if limit is not None and text not in limit.notes:
        limit.notes.append(text)
    return limit is not None


def forgive() -> None:
    """What a limit cut short turned out not to be needed: no warning."""
    limit = cut()
    if limit is not None and not limit.notes:
        limit.hit = False


def told() -> None:
    """The caller has warned already: no other warning."""
    limit = cut()
    if limit is not None:
        limit.hit = False


def left() -> float:
    """Seconds until the limit; infinite without one."""
    limit = _here.get()
    return float(np.inf if limit is None else limit.end - clock())


def turns(most: int, entries: float) -> int:
    """How many turns over so many entries one kernel call may take: ``most`` without a limit.

    A kernel cannot look at a clock, so the turns that fit into the time left are estimated.
    """
    limit = _here.get()
    if limit is None:
        return most
    seconds = max(limit.end - clock(), GRACE)
    return int(min(most, max(1.0, seconds * SPEED / max(entries, 1.0))))


def parts(count: int, first: int = 1) -> Iterator[slice]:
    """Slices of so many independent examples, to look at the time between two; else all at once.

    They begin with ``first`` examples and grow while they are quick; what is left when it is late
    is one slice. None is smaller than the first.
    """
    if _here.get() is None:
        yield slice(0, count)
        return
    done, size = 0, first
    while done < count:
        whole = count - done - size < first or (done and late())
        began, end = clock(), count if whole else done + size
        yield slice(done, end)
        done, size = end, 2 * size if 8.0 * (clock() - began) < left() else size
