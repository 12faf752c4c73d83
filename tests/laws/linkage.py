"""Scores of record linkage: two files, true pairs with large weights, false ones that tie them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms

Linkage = tuple[ms.Matching, NDArray[np.float64]]


def linkage(
    rng: np.random.Generator, side: int, true: int, false: int, near: Any, far: Any, hubs: float
) -> Linkage:
    """Draw a sparse partial matching of two files with ``side`` records each, and match weights.

    Record i < ``true`` of one file is record i of the other. Weights in nats are drawn between a
    least and a largest one around a median: ``near`` for these pairs, ``far`` for ``false`` more.
    Ends of false pairs are drawn with probabilities 1 / rank^``hubs``, so that few records (common
    names) are in many.
    """
    chance = np.arange(1.0, side + 1.0) ** -hubs
    chance /= chance.sum()
    order = rng.permutation(side), rng.permutation(side)
    pairs = {(i, side + i): near for i in range(true)}
    while len(pairs) < true + false:
        drawn = (one[rng.choice(side, false, p=chance)] for one in order)
        for u, v in zip(*drawn, strict=True):
            if len(pairs) < true + false:
                pairs.setdefault((int(u), side + int(v)), far)
    low, median, high = np.array(list(pairs.values())).T
    power = np.log((median - low) / (high - low)) / np.log(0.5)
    score = low + (high - low) * rng.random(len(pairs)) ** power
    return ms.Matching(2 * side, list(pairs), kind="partial"), score


def peaked(rng: np.random.Generator) -> Linkage:
    """True pairs of 10 to 43 nats (median 31), false ones of -14 to -6, degrees to about 28."""
    return linkage(rng, 4166, 3316, 5234, (10, 31, 43), (-14, -12.4, -6), 0.4)


def tied(rng: np.random.Generator) -> Linkage:
    """More false pairs than true ones, of -4 to 21 nats, nearly all in one component."""
    return linkage(rng, 3333, 1661, 33861, (5, 12, 21), (-4, -1, 10), 0.2)


def mild(rng: np.random.Generator, side: int = 100_000) -> Linkage:
    """Two large files with moderate weights."""
    return linkage(rng, side, side // 2, side, (1, 4, 8), (-4, -2, 1), 0.1)
