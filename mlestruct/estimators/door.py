"""Errors at the door: what is wrong with a list of examples, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array


def check_lengths(X: Sequence[Any], y: Sequence[Any] | None) -> None:
    """As many outcomes as examples, and at least one."""
    if y is None:
        raise ValueError("learning requires y to be passed, but the target y is None")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} examples but y has {len(y)}")
    if len(X) == 0:
        raise ValueError("no examples: X is empty")


def weights_of(sample_weight: ArrayLike | None, count: int) -> Array | None:
    """A weight per example, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight has shape {weights.shape} for {count} examples")
    return weights


def width_of(X: Sequence[Any], axes: int, expected: str, width: int | None = None) -> int:
    """The number of features, last of ``axes`` axes, once it is the same in every example."""
    for m, x in enumerate(X):
        shape = x.shape if hasattr(x, "shape") else np.shape(x)
        if len(shape) != axes or 0 in shape:
            raise ValueError(f"example {m}: X has shape {shape}; expected {expected}, none empty")
        if width is not None and shape[-1] != width:
            raise ValueError(f"example {m} has {shape[-1]} features; expected {width}")
        width = int(shape[-1])
    assert width is not None
    return width


def part_of(
    X: Sequence[Any], y: Sequence[Any], members: Iterable[int]
) -> tuple[list[Any], list[Any]]:
    """Some of the examples."""
    chosen = list(members)
    return [X[m] for m in chosen], [y[m] for m in chosen]
