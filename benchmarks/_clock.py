"""Processor time, which neighbours on the machine do not lengthen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def least(call: Callable[[], Any], repeats: int = 5) -> float:
    """The least CPU time of a few calls, after one to compile."""
    call()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)
