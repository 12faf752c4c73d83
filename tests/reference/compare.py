"""|computed − expected| ≤ tolerance · max(1, |expected|), entry by entry; shapes equal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

NOT_ATTAINED = "-inf"


@dataclass(frozen=True)
class Difference:
    """The largest error over max(1, |expected|), and what else is wrong."""

    error: float
    why: str = ""


def difference(expected: Any, got: Any) -> Difference:
    """Integers and booleans exactly (error 0 or infinity), numbers by their scaled error."""
    got = _plain(got)
    if isinstance(expected, list) or isinstance(got, list):
        return _of_lists(expected, got)
    if expected == NOT_ATTAINED:
        return Difference(0.0, "not attained: not compared")
    if _exact(expected) and _exact(got):
        same = type(expected) is type(got) and expected == got
        return Difference(0.0 if same else math.inf)
    if not (_number(expected) and _number(got)):
        same = type(expected) is type(got) and expected == got
        return Difference(0.0 if same else math.inf, "" if same else "not the same kind of value")
    error = abs(float(got) - float(expected)) / max(1.0, abs(float(expected)))
    return Difference(error if error == error else math.inf)


def _of_lists(expected: Any, got: Any) -> Difference:
    if not (isinstance(expected, list) and isinstance(got, list)):
        return Difference(math.inf, f"shape {_shape(got)}, expected {_shape(expected)}")
    if len(expected) != len(got):
        return Difference(math.inf, f"shape {_shape(got)}, expected {_shape(expected)}")
    worst = Difference(0.0)
    for one, other in zip(expected, got, strict=True):
        here = difference(one, other)
        if here.error > worst.error or (here.why and not worst.why and here.error == worst.error):
            worst = here
    return worst


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _exact(value: Any) -> bool:
    return isinstance(value, bool | int)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shape(value: Any) -> tuple[int, ...]:
    value = _plain(value)
    return (len(value), *(_shape(value[0]) if value else ())) if isinstance(value, list) else ()


def plain(value: Any) -> Any:
    """JSON-ready: arrays as lists, numbers that JSON lacks as strings."""
    value = _plain(value)
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def brief(value: Any) -> str:
    """A value in a line's width."""
    value = _plain(value)
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list):
        flat = np.array(_flat(value), dtype=object)
        shape = "×".join(map(str, _shape(value)))
        head = ", ".join(f"{v:.4g}" if _number(v) else str(v) for v in flat[:3])
        return f"[{head}{', …' if len(flat) > 3 else ''}] ({shape})"
    return str(value)


def _flat(value: list[Any]) -> list[Any]:
    return [leaf for v in value for leaf in (_flat(v) if isinstance(v, list) else [v])]
