"""The area under the ROC curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata


def area(values: ArrayLike, true: ArrayLike) -> float:
    """How often a true entry's value is above a false one's; ties count half."""
    flags = np.asarray(true) > 0
    hits, rest = int(flags.sum()), int((~flags).sum())
    ranks = rankdata(np.asarray(values, dtype=float))
    return float((ranks[flags].sum() - hits * (hits + 1) / 2) / (hits * rest))
