"""How predictions are judged: the area under the ROC curve, and calibration in bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

BINS = 10


def area(values: ArrayLike, true: ArrayLike) -> float:
    """How often a true entry's value is above a false one's; ties count half."""
    flags = np.asarray(true) > 0
    hits, rest = int(flags.sum()), int((~flags).sum())
    ranks = rankdata(np.asarray(values, dtype=float))
    return float((ranks[flags].sum() - hits * (hits + 1) / 2) / (hits * rest))


def binned(predicted: ArrayLike, came: ArrayLike) -> tuple[list[float], list[float]]:
    """(mean prediction, share that came true) in ten bins of equally many."""
    tau, y = np.asarray(predicted, dtype=float), np.asarray(came, dtype=float)
    bins = np.array_split(np.argsort(tau, kind="stable"), BINS)
    return [float(tau[b].mean()) for b in bins], [float(y[b].mean()) for b in bins]
