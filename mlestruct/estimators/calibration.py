"""Whether probabilities mean what they say: predicted against observed, bin by bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlestruct.metrics import wilson
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Calibration:
    """Parts by predicted probability, in equal-width bins: means, shares that came true, counts.

    ``brier`` is the mean of (probability − outcome)². Empty bins are left out.

    >>> Calibration.of([0.1, 0.1, 0.9], [0, 1, 1]).observed.tolist()
    [0.5, 1.0]
    """

    predicted: Array
    observed: Array
    count: NDArray[np.int64]
    brier: float

    @classmethod
    def of(cls, probability: object, truth: object, bins: int = 10) -> Calibration:
        """Compare probabilities with what came true (0 or 1)."""
        if bins < 1:
            raise ValueError(f"bins={bins}: there must be at least one")
        p, t = np.asarray(probability, dtype=float).ravel(), np.asarray(truth, dtype=float).ravel()
        place = np.clip((p * bins).astype(np.int64), 0, bins - 1)
        count = np.bincount(place, minlength=bins)
        used = count > 0
        predicted, observed = (
            np.bincount(place, weights=values, minlength=bins)[used] / count[used]
            for values in (p, t)
        )
        return cls(predicted, observed, count[used], float(np.mean((p - t) ** 2)))

    @property
    def interval(self) -> tuple[Array, Array]:
        """Wilson's 95 % interval of every observed share, as if parts were independent."""
        return wilson(self.observed, self.count)

    @property
    def error(self) -> float:
        """Expected calibration error (ECE): |predicted − observed| averaged over parts."""
        return float(self.count @ np.abs(self.predicted - self.observed) / self.count.sum())

    def __str__(self) -> str:
        rows = [f"{'predicted':>10}{'observed':>10}{'parts':>9}"]
        rows += [
            f"{p:10.3f}{o:10.3f}{n:9d}"
            for p, o, n in zip(self.predicted, self.observed, self.count, strict=True)
        ]
        rows.append(f"calibration error {self.error:.4f}, Brier score {self.brier:.4f}")
        return "\n".join(rows)
