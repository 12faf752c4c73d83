"""Whether small probabilities come true as often as they say, in bins that expect as many hits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.metrics import wilson


@dataclass(frozen=True)
class Reliability:
    """Per bin: mean prediction, share that came true with its 95 % interval, number of pairs."""

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    count: NDArray[np.int64]


def reliability(probability: ArrayLike, came_true: ArrayLike, bins: int = 8) -> Reliability:
    """Bins of equal expected hits, improbable pairs first; Wilson's interval for each share.

    Bins of equal width would put nearly every pair into the first: most pairs are improbable.
    """
    p, hit = np.asarray(probability, dtype=float), np.asarray(came_true, dtype=float)
    order = np.argsort(p, kind="stable")
    p, hit = p[order], hit[order]
    share = np.cumsum(p) / max(float(p.sum()), 1e-300)
    place = np.minimum((bins * (share - 1e-12)).astype(np.int64), bins - 1)
    place = np.unique(place, return_inverse=True)[1]
    count = np.bincount(place)
    predicted, observed = (np.bincount(place, weights=v) / count for v in (p, hit))
    low, high = wilson(observed, count)
    return Reliability(predicted, observed, low, high, count)
