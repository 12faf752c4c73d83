"""Whether probabilities mean what they say: predicted against observed, bin by bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.limits import check
from mlestruct.metrics import wilson
from mlestruct.results import Shown
from mlestruct.structures.base import Array, Ints, as_count, as_numbers, refuse_made

ROUNDING = 1e-6  # of what inference calls a probability
DRAWS = 2000  # of what chance alone would do
SHARP, LEAST = 2.0, 1e-12  # log of the largest factor; the smallest probability
TINY = 1e-300  # what no sum of probabilities falls below
MANY = 8  # units from which what parts of one have in common is told


@dataclass(frozen=True)
class Calibration(Shown):
    """Parts by predicted probability, in bins: means, shares that came true, counts.

    ``brier`` is the mean of (probability − outcome)². Empty bins are left out. ``noise`` is the
    standard deviation of every bin's observed share if its probabilities were right and parts
    independent. ``swing`` is what moves together by chance: how far the parts of each unit (an
    example, where there are 8) were off in sum, bin by bin, and what ``noise`` has beyond these.

    >>> Calibration.of([0.1, 0.1, 0.9], [0, 1, 1]).observed.tolist()
    [0.5, 1.0]
    """

    predicted: Array
    observed: Array
    count: Ints
    brier: float
    noise: Array
    swing: Array

    @classmethod
    def of(
        cls,
        probability: ArrayLike,
        truth: ArrayLike,
        bins: int = 10,
        unit: Ints | None = None,
        *,
        rare: bool = False,
    ) -> Calibration:
        """Probabilities against what came true (0 or 1), in bins of equal width.

        ``unit`` numbers the independent unit of every part from 0 (default: each is one). Where
        nearly all parts are improbable, equal width would put them into one bin: of ``rare`` ones
        each bin expects as many hits.
        """
        refuse_made(as_count(bins, "bins", least=1), f"bins={bins}")
        p, t = as_numbers(probability, "probabilities").ravel(), as_numbers(truth, "truth").ravel()
        if p.shape != t.shape or len(p) == 0:
            raise ValueError(f"{len(p)} probabilities for {len(t)} parts")
        wrong = np.flatnonzero(~((p >= -ROUNDING) & (p <= 1 + ROUNDING)) | ((t != 0) & (t != 1)))
        if len(wrong):
            here = f"part {wrong[0]} has probability {p[wrong[0]]} and truth {t[wrong[0]]}"
            raise ValueError(f"{here}; expected 0..1, 0 or 1")
        place = np.clip((p * bins).astype(np.int64), 0, bins - 1)
        if rare:
            order = np.argsort(p, kind="stable")
            share = np.cumsum(p[order]) / max(float(p.sum()), TINY)
            place[order] = np.minimum((bins * (share - 1e-12)).astype(np.int64), bins - 1)
        place = np.unique(place, return_inverse=True)[1]
        count = np.bincount(place)
        predicted, observed = (np.bincount(place, weights=v) / count for v in (p, t))
        p = np.clip(p, 0.0, 1.0)
        spread = np.sqrt(np.bincount(place, weights=p * (1.0 - p)))
        swing = np.diag(spread)
        if unit is not None and len(np.unique(unit)) >= MANY:
            swing = np.zeros((int(unit.max()) + 1, len(count)))
            np.add.at(swing, (unit, place), t - p)
            rest = np.maximum(spread**2 - (swing**2).sum(axis=0), 0.0)
            swing = np.vstack([swing, np.diag(np.sqrt(rest))])
        brier = float(np.mean((p - t) ** 2))
        return cls(predicted, observed, count, brier, spread / count, swing)

    @property
    def interval(self) -> tuple[Array, Array]:
        """Wilson's 95 % interval of every observed share.

        Where parts of one unit come true together, a bin counts as so many fewer.
        """
        alone = np.maximum((self.noise * self.count) ** 2, TINY)
        together = (self.swing**2).sum(axis=0) / alone
        return wilson(self.observed, self.count / np.maximum(together, 1.0))

    @property
    def error(self) -> float:
        """Expected calibration error (ECE): |predicted − observed| averaged over parts."""
        return float(self.count @ np.abs(self.predicted - self.observed) / self.count.sum())

    @property
    def chance(self) -> tuple[float, float]:
        """(mean, 95 % point) of the calibration error that right probabilities would show.

        By chance alone: with few parts the error is never near 0. Units are independent, and what
        each was off by might as well have been of the other sign or another size.
        """
        draws = np.random.default_rng(0).standard_normal((DRAWS, len(self.swing)))
        errors = np.abs(draws @ self.swing).sum(axis=1) / self.count.sum()
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


def calibration(model: Any, given: Any, bins: int) -> Calibration:
    """Of a fitted model's probabilities of these examples, which are the independent units."""
    refuse_made(as_count(bins, "bins", least=1), f"bins={bins}")
    batch, scores = model._scored(given, given.outcomes)
    seen_in_targets(batch.target)  # refuses before any inference
    found = model._marginals(batch, scores).tau
    if np.isnan(found).all():
        check()
    tau, truth, unit = list[Array](), list[Array](), list[Ints]()
    for m, x in enumerate(given.X):
        structure, flat = batch.structure(m), found[batch.coordinates(m)]
        target = np.where(np.isnan(flat), np.nan, batch.target[batch.coordinates(m)])
        tau.append(model.shape(x, structure, flat).ravel())
        truth.append(model.shape(x, structure, target).ravel())
        unit.append(np.full(tau[m].size, m))
    every, of = np.concatenate(truth), np.concatenate(unit)
    known = seen_in_targets(every)
    return Calibration.of(np.concatenate(tau)[known], every[known], bins, of[known])


def sharpness(model: Any, given: Any) -> float:
    """The factor of all weights with the best mean log score; ``model`` is changed on the way."""
    from scipy.optimize import minimize_scalar

    coef = model.coef_

    def loss(power: float) -> float:
        model.coef_ = np.exp(power) * coef
        batch, scores = model._scored(given, given.outcomes)
        known = seen_in_targets(batch.target)  # refuses before any inference
        tau = np.clip(model._marginals(batch, scores).tau, LEAST, 1.0 - LEAST)
        check()
        right = np.where(batch.target > 0.5, tau, 1.0 - tau)[known]
        return -float(np.log(right).mean())

    how: Any = {"xatol": 1e-3}
    best = minimize_scalar(loss, bounds=(-SHARP, SHARP), method="bounded", options=how)
    return float(np.exp(best.x))


def seen_in_targets(target: Array) -> NDArray[np.bool_]:
    """Which coordinates were seen; a ValueError where none was."""
    known = ~np.isnan(target)
    if not known.any():
        raise ValueError("nothing in y is known: there is nothing to compare probabilities with")
    return known
