"""Which example costs workers: halves of shards asked in workers of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlestruct.engine.protocol import Maker


def culprit(
    makers: Mapping[int, Maker],
    questions: Mapping[int, Any],
    survives: Callable[[Maker, Any], bool],
) -> int | None:
    """The number of an example that alone does not let a worker survive, or None.

    Makers offer ``halves(question)`` → two (maker, question), and ``first``, the number of their
    first example. O(shards + log examples) workers.
    """
    for number, maker in makers.items():
        found = _within(maker, questions[number], survives)
        if found is not None:
            return found
    return None


def _within(maker: Any, question: Any, survives: Callable[[Maker, Any], bool]) -> int | None:
    if survives(maker, question) or not hasattr(maker, "halves"):
        return None
    halves = maker.halves(question)
    if not halves:
        return int(maker.first)
    found = (_within(half, asked, survives) for half, asked in halves)
    return next((example for example in found if example is not None), None)
