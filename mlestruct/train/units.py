"""Units that the optimiser takes weights in: columns of any size cost the same number of steps.

L-BFGS that begins with equal steps in all weights spends its rounds, and then all its digits, on a
column of 50,000 beside one of 1. It therefore steps in z = s·θ, which is what columns divided by s
would have for weights. The objective, its penalty and its certificate stay those of θ.
"""

from __future__ import annotations

import numpy as np

from mlestruct.batch import Batch
from mlestruct.features.base import Features
from mlestruct.features.dense import Dense
from mlestruct.features.squares import at_hand, squares
from mlestruct.structures.base import Array, Ints

FEW = 16  # weights that are tried one by one where the entries of Φ are not at hand
BEND = 0.25  # the most that a marginal's score can bend log Z
DEEP = 1e8  # times λ: from here on an error of inference's last digits is a gap that shows
TAME = 1e3  # house's columns differ by 390: 11 rounds as they are, 59 divided


def columns(batch: Batch, features: Features) -> Array | None:  # type: ignore[type-arg]
    """Σ_m w_m Φ_kj² per weight, or None where that costs more than it is worth."""
    if not (at_hand(features) or features.d <= FEW):
        return None
    with np.errstate(over="ignore"):
        found = squares(features, batch.weight[batch.owner])
    return found if np.isfinite(found).all() else None


def units(bend: Array | None, lam: Array) -> Array | None:
    """What θ is taken times: the root of the penalty, or of the objective's curvature; None is 1.

    Where columns are alike but for their penalties, curvature has few large directions, which
    L-BFGS learns quickly; dividing by its diagonal would only spread them. Columns that differ by
    more than ``TAME`` are what it does not survive; where all are so large, one number has the
    first step no longer than the rest. A column and its penalty times a power of two
    change either root by just that: the same bits are learned.
    """
    if bend is None:
        return None
    curvature = BEND * bend + lam
    times = np.log(curvature / lam)
    if np.ptp(times) > 2.0 * np.log(TAME):
        return np.sqrt(curvature)
    if times.mean() > 2.0 * np.log(TAME):
        return np.sqrt(lam * np.exp(times.mean()))
    return None if (lam == lam[0]).all() else np.sqrt(lam)


def drowned(batch: Batch, features: Features, lam: Array) -> Ints:  # type: ignore[type-arg]
    """Columns so large for their penalty that what all outcomes share in them has to go."""
    if not isinstance(features, Dense):
        return np.zeros(0, dtype=np.int64)
    size = squares(features, batch.weight[batch.owner]) / len(batch)
    return np.flatnonzero(size > DEEP * lam)
