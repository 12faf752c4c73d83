"""The exact log-likelihood of observed outcomes, summed or annealed, to compare models by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlestruct import limits
from mlestruct.inference.exact import exact
from mlestruct.statistics.affordability import affordable
from mlestruct.statistics.annealing import annealed, ready
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch, pinned

REACH = 3.92  # standard errors that a 95 % interval is wide


@dataclass(frozen=True)
class Evidence:
    """Every example's log-likelihood, and how far the ends of its 95 % interval are below, above.

    Where all outcomes were summed there is no such distance; else the interval is that of annealed
    importance sampling, tested and not proven. Errors of examples are independent. An example for
    which there was no time has infinite distances, and its number means nothing.
    """

    each: Array
    below: Array
    above: Array

    @classmethod
    def of(cls, batch: Batch[Any], scores: Array, rng: np.random.Generator) -> Evidence:
        """At these scores; a ValueError where the structures can neither be summed nor annealed."""
        for one in (batch, pinned(batch)) if batch.partly else (batch,):
            _refuse(one, scores)
        log_z, below, above = _log_z(batch, scores, rng)
        weight, reached = batch.weight, batch.observed(scores)
        if batch.partly:
            reached, *more = _log_z(pinned(batch), scores, rng)
            below, above = np.hypot(below, more[1]), np.hypot(above, more[0])
        return cls(weight * (reached - log_z), weight * above, weight * below)

    @property
    def value(self) -> float:
        """The log-likelihood of all examples."""
        return float(self.each.sum())

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval: the squared distances to its ends add up over examples."""
        ends = np.sqrt((self.below**2).sum()), np.sqrt((self.above**2).sum())
        return self.value - float(ends[0]), self.value + float(ends[1])

    @property
    def summed(self) -> bool:
        """Whether every example's outcomes were summed."""
        return not (self.below.any() or self.above.any())

    def beside(self, other: Evidence) -> tuple[float, float]:
        """By how much the same examples are more probable here, and the error of that.

        The error is that of a sum of differences between examples, which are the units; how exact
        each of the two is counts besides.
        """
        gain, n = self.each - other.each, len(self.each)
        between = n * float(gain.var(ddof=1)) if n > 1 else np.inf
        widths = [(one.below + one.above) / REACH for one in (self, other)]
        return float(gain.sum()), float(np.sqrt(between + sum((w**2).sum() for w in widths)))

    def __str__(self) -> str:
        if self.summed:
            return f"log-likelihood {self.value:.2f}, all outcomes summed"
        low, high = self.interval
        return (
            f"log-likelihood {self.value:.2f}, tested 95 % interval [{low:.2f}, {high:.2f}] "
            "(annealed importance sampling)"
        )


def _refuse(batch: Batch[Any], scores: Array) -> None:
    """A ValueError for structures that can neither be summed nor annealed, before any work."""
    for structure, members in batch.groups():
        if not affordable((structure,)):
            ready(structure, batch.rows(scores, members)[0])


def _log_z(
    batch: Batch[Any], scores: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """log Z of every example, and how far the ends of its interval are below and above it."""
    log_z, low, high = (np.empty(len(batch)) for _ in range(3))
    for structure, members in batch.groups():
        rows = batch.rows(scores, members)
        if affordable((structure,)):
            some = batch.select(members)
            found = exact(some, rows.ravel()).log_z
            known = ~np.isnan(found)  # of others a limit of time was reached before their turn
            log_z[members] = np.where(known, found, [float(row.max()) for row in rows])
            low[members] = np.where(known, found, -np.inf)
            high[members] = np.where(known, found, np.inf)
            continue
        for m, score in zip(members.tolist(), rows, strict=True):
            log_z[m], low[m], high[m] = annealed(structure, score, rng)[:3]
    open_ = int(np.isinf(high).sum())
    if open_:
        limits.note(f"nothing is known of the log-likelihood of {open_} of {len(batch)} examples")
    return log_z, log_z - low, high - log_z
