"""Whether probabilities mean what they say: predicted against observed, bin by bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.metrics import wilson
from mlestruct.results import Shown
from mlestruct.structures.base import Array, as_count, as_numbers, refuse_made

ROUNDING = 1e-6  # of what inference calls a probability
DRAWS = 2000  # of what chance alone would do
TINY = 1e-300  # what no sum of probabilities falls below


@dataclass(frozen=True)
class Calibration(Shown):
    """Parts by predicted probability, in bins: means, shares that came true, counts.

    ``brier`` is the mean of (probability − outcome)². Empty bins are left out. ``noise`` is the
    standard deviation of every bin's observed share if its probabilities were right.

    >>> Calibration.of([0.1, 0.1, 0.9], [0, 1, 1]).observed.tolist()
    [0.5, 1.0]
    """

    predicted: Array
    observed: Array
    count: NDArray[np.int64]
    brier: float
    noise: Array

    @classmethod
    def of(cls, probability: ArrayLike, truth: ArrayLike, bins: int = 10) -> Calibration:
        """Probabilities against what came true (0 or 1), in bins of equal width."""
        p, t = _flat(probability, truth, bins)
        return cls._binned(p, t, np.clip((p * bins).astype(np.int64), 0, bins - 1))

    @classmethod
    def of_rare(cls, probability: ArrayLike, truth: ArrayLike, bins: int = 8) -> Calibration:
        """In bins of which each expects as many hits, improbable parts first.

        Where nearly all parts are improbable, equal width would put them into one bin.
        """
        p, t = _flat(probability, truth, bins)
        order = np.argsort(p, kind="stable")
        p, t = p[order], t[order]
        share = np.cumsum(p) / max(float(p.sum()), TINY)
        return cls._binned(p, t, np.minimum((bins * (share - 1e-12)).astype(np.int64), bins - 1))

    @classmethod
    def _binned(cls, p: Array, t: Array, place: NDArray[np.int64]) -> Calibration:
        count = np.bincount(place)
        used = count > 0
        predicted, observed = (np.bincount(place, weights=v)[used] / count[used] for v in (p, t))
        p = np.clip(p, 0.0, 1.0)
        noise = np.sqrt(np.bincount(place, weights=p * (1.0 - p))[used]) / count[used]
        return cls(predicted, observed, count[used], float(np.mean((p - t) ** 2)), noise)

    @property
    def interval(self) -> tuple[Array, Array]:
        """Wilson's 95 % interval of every observed share, as if parts were independent."""
        return wilson(self.observed, self.count)

    @property
    def error(self) -> float:
        """Expected calibration error (ECE): |predicted − observed| averaged over parts."""
        return float(self.count @ np.abs(self.predicted - self.observed) / self.count.sum())

    @property
    def chance(self) -> tuple[float, float]:
        """(mean, 95 % point) of the calibration error that right probabilities would show.

        By chance alone: with few parts the error is never near 0. Parts count as independent;
        within a matching or a labelling they vary less or more than that.
        """
        draws = np.random.default_rng(0).standard_normal((DRAWS, len(self.count)))
        errors = np.abs(draws * self.noise) @ self.count / self.count.sum()
        return float(errors.mean()), float(np.quantile(errors, 0.95))

    @property
    def calibrated(self) -> bool:
        """Whether the calibration error could be chance alone, at 95 %."""
        return self.error <= self.chance[1]

    def columns(self) -> dict[str, list[Any]]:
        """A row for each bin."""
        low, high = self.interval
        named = {"predicted": self.predicted, "observed": self.observed, "low": low, "high": high}
        return {name: values.tolist() for name, values in (named | {"parts": self.count}).items()}

    def remarks(self) -> list[str]:
        return str(self).splitlines()[-2:]

    def plot(self, ax: Any = None) -> Any:
        """As :func:`mlestruct.plot.calibration` draws it."""
        from mlestruct.plot import calibration

        return calibration(self, ax=ax)

    def __str__(self) -> str:
        rows = [f"{'predicted':>10}{'observed':>10}{'95 % interval':>18}{'parts':>9}"]
        spans = [f"[{low:.3f}, {high:.3f}]" for low, high in zip(*self.interval, strict=True)]
        rows += [
            f"{p:10.3f}{o:10.3f}{span:>18}{n:9d}"
            for p, o, span, n in zip(self.predicted, self.observed, spans, self.count, strict=True)
        ]
        verdict = "could be chance" if self.calibrated else "is more than chance"
        rows.append(f"calibration error {self.error:.4f}, Brier score {self.brier:.4f}")
        rows.append(
            f"right probabilities would show {self.chance[0]:.4f}, up to {self.chance[1]:.4f} "
            f"(95 %): this error {verdict}"
        )
        return "\n".join(rows)


def _flat(probability: ArrayLike, truth: ArrayLike, bins: int) -> tuple[Array, Array]:
    refuse_made(as_count(bins, "bins", least=1), f"bins={bins}")
    p, t = as_numbers(probability, "probabilities").ravel(), as_numbers(truth, "truth").ravel()
    if p.shape != t.shape or len(p) == 0:
        raise ValueError(f"{len(p)} probabilities for {len(t)} parts")
    wrong = np.flatnonzero(~((p >= -ROUNDING) & (p <= 1 + ROUNDING)) | ((t != 0) & (t != 1)))
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(f"part {k} has probability {p[k]} and truth {t[k]}; expected 0..1, 0 or 1")
    return p, t
