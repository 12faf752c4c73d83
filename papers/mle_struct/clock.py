"""CPU time of a method alone, and when its error is small for good."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from mlestruct.learning.loop import Found

T = TypeVar("T")


def clocked(items: Iterable[T]) -> Iterator[tuple[float, T]]:
    """(CPU seconds spent producing so far, item): what is done with items is not counted."""
    spent, start = 0.0, time.process_time()
    for item in items:
        spent += time.process_time() - start
        yield spent, item
        start = time.process_time()


def rounds_of(
    learner: Any, batch: Any, features: Any, start: Any = None
) -> list[tuple[float, Found]]:
    """(CPU seconds so far, what was found) of every round of a fit."""
    found: list[tuple[float, Found]] = []
    began = time.process_time()
    learner.fit(
        batch,
        features,
        start=start,
        told=lambda said: found.append((time.process_time() - began, said)),
    )
    return found


def reached(
    points: Iterable[tuple[float, float]], levels: Sequence[float]
) -> dict[str, float | None]:
    """Seconds of the first (seconds, error) from which errors stay within each level, or None."""
    curve, found = list(points), {}
    for level in levels:
        above = [k for k, (_, error) in enumerate(curve) if error > level]
        first = above[-1] + 1 if above else 0
        found[f"s to {level:g}"] = curve[first][0] if first < len(curve) else None
    return found
