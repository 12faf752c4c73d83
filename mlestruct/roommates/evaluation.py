"""Judging a model on pairs it did not learn from, beside a simpler one: ranks, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct import Batch
from mlestruct.estimators import Calibration
from mlestruct.estimators.examples import Given
from mlestruct.features import Pairs
from mlestruct.results import Shown
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints

OTHERS, LARGEST = 10, 20_000  # pairs not observed, for every observed one and in all
NEWTON = 8  # steps, from nothing
FEW = 20  # pairs below which no comparison is worth more than its error


RULES = {
    "random": "guessing",
    "logistic": "a logistic regression on pairs, learned from the same people one pair at a time",
}


@dataclass(frozen=True)
class Evaluation(Shown):
    """How well held-out pairs rank among all that were possible.

    ``auc``: the chance that a true pair ranks above another pair of its cohort, by ``marginal``,
    by ``score``, and by the simpler rules that ``RULES`` puts into words. ``auc_error`` are their
    standard errors, each pair with its two people being one unit; ``auc_lead`` is by how much the
    model's marginals are above each simpler rule, and ``auc_lead_error`` that difference's error.
    ``top[k]``: the share of people whose partner is among their k most probable; ``top_error``,
    ``top_random``. ``calibration``: how often pairs of some probability came about. ``learned`` of
    the ``pairs`` were learned from.
    """

    auc: dict[str, float]
    auc_error: dict[str, float]
    auc_lead: dict[str, float]
    auc_lead_error: dict[str, float]
    top: dict[int, float]
    top_error: dict[int, float]
    top_random: dict[int, float]
    calibration: Calibration
    pairs: int
    learned: int
    notes: list[str]

    @property
    def few(self) -> bool:
        """Whether there are too few pairs to compare anything by."""
        return self.pairs < FEW

    def columns(self) -> dict[str, list[Any]]:
        """A row for each measure, beside its error and its value at random."""
        rows: list[tuple[Any, ...]] = [
            (f"AUC by {name}", value, self.auc_error.get(name, 0.0), self.auc["random"])
            for name, value in self.auc.items()
        ]
        rows += [
            (f"partner among {k}", share, self.top_error[k], self.top_random[k])
            for k, share in self.top.items()
        ]
        names = "measure", "value", "error", "random"
        return {n: [row[k] for row in rows] for k, n in enumerate(names)}

    def remarks(self) -> list[str]:
        return [self.count(), *self._compared(), *self.notes]

    def count(self) -> str:
        """How many pairs, and whether they were learned from."""
        told = f"{self.pairs} pairs, none of them learned from"
        if self.learned:
            told = f"{self.pairs} pairs, of which {self.learned} WERE LEARNED FROM: no fair test"
        return told + "; too few to compare anything by" * self.few

    def _compared(self) -> list[str]:
        return [
            f"  {self.auc[name]:.3f} by {words}: the model's marginals are "
            f"{self.auc_lead[name]:+.3f} ± {self.auc_lead_error[name]:.3f} beside it"
            for name, words in RULES.items()
        ]


def evaluate(
    batch: Batch[Matching],
    cohorts: Sequence[Any],
    values: dict[str, Array],
    tops: Sequence[int],
    learned: int,
    notes: list[str],
) -> Evaluation:
    """Judge ``values`` of all pairs by name, of which some came about: the batch's outcomes.

    Areas are averaged over cohorts, one for each example, weighted by their pairs.
    """
    assert batch.target is not None
    true = batch.target > 0.5
    sizes = np.array([batch.structure(m).n_nodes for m in range(len(batch))])
    first, people = np.cumsum(sizes) - sizes, int(sizes.sum())
    low, high = np.concatenate([batch.structure(m).ends + at for m, at in enumerate(first)]).T
    group = np.repeat(np.arange(len(batch)), np.diff(batch.offsets))
    numbers: dict[Any, int] = {}
    cohort = np.array([numbers.setdefault(own, len(numbers)) for own in cohorts])[group]
    tau = values["marginal"]
    values = values | {"random": 0.0 * tau}
    areas, pulls = dict.fromkeys(values, 0.0), {name: np.zeros(len(tau)) for name in values}
    for name, value in values.items():
        for number in range(len(numbers)):
            mine = cohort == number
            area, pull = _area(value[mine], true[mine], low[mine], high[mine])
            share = 2.0 * len(pull) / people
            areas[name] += share * area
            pulls[name][mine & true] = share * pull
    errors = {name: _error(pull[true]) for name, pull in pulls.items() if name != "random"}
    mean = np.zeros(people)
    mean[low[true]] = mean[high[true]] = tau[true]  # of everybody's own pair
    rank = np.full(people, 0.5)
    for end in (low, high):  # a tie counts half, and everybody's own pair is one
        ahead = (tau > mean[end]) + 0.5 * (tau == mean[end])
        rank += np.bincount(end, ahead, people)
    hits = {k: np.mean([rank[end[true]] <= k for end in (low, high)], axis=0) for k in tops}
    others = np.repeat(sizes - 1, sizes)
    return Evaluation(
        auc=areas,
        auc_error=errors,
        auc_lead={name: areas["marginal"] - areas[name] for name in RULES},
        auc_lead_error={name: _error((pulls["marginal"] - pulls[name])[true]) for name in RULES},
        top={k: float(hit.mean()) for k, hit in hits.items()},
        top_error={
            k: float(hit.std(ddof=1) / np.sqrt(len(hit))) if len(hit) > 1 else float("nan")
            for k, hit in hits.items()
        },
        top_random={k: float(np.minimum(1.0, k / others).mean()) for k in tops},
        calibration=Calibration.of(tau, true.astype(float), bins=8, unit=group, rare=True),
        pairs=people // 2,
        learned=learned,
        notes=notes,
    )


def _area(value: Array, true: NDArray[np.bool_], low: Ints, high: Ints) -> tuple[float, Array]:
    """The area under the curve of a cohort's pairs, and how far each true pair pulls it.

    The area is a ratio of sums in which a true pair's weight stands for itself, and for its two
    people in the other pairs: the slopes by these weights are what it pulls.
    """
    seen, others = value[true], int((~true).sum())
    if not others:
        return 0.5, np.zeros(len(seen))
    above = (_below(seen, value) - _below(seen, seen)) / others
    area = float(above.mean())
    lost = np.where(true, 0.0, 1.0 - _below(value, seen) / len(seen) - area)
    size = int(high.max()) + 1
    people = np.bincount(low, lost, size) + np.bincount(high, lost, size)
    return area, (above - area) / len(seen) + (people[low[true]] + people[high[true]]) / others


def _below(values: Array, among: Array) -> Array:
    """How many of ``among`` are below each value; ties count half."""
    ordered = np.sort(among)
    ends = (ordered.searchsorted(values, side) for side in ("left", "right"))
    return np.asarray(sum(ends) / 2.0)


def _error(pull: Array) -> float:
    """The infinitesimal jackknife's standard error of a sum; NaN of a single pair."""
    n = len(pull)
    return float(np.sqrt(n / (n - 1) * (pull**2).sum())) if n > 1 else float("nan")


def logistic(batch: Batch[Any], features: Pairs) -> Array:
    """The baseline that looks at one pair at a time: is it one of those observed, or another?

    A logistic regression with a small ridge, on all observed pairs and at most ``OTHERS`` times as
    many others, drawn from a fixed seed. Its constant is left out: it ranks nobody.
    """
    rng, rows, hits = np.random.default_rng(0), [], []
    for m in range(len(batch)):
        structure, own = batch.structure(m), features.select(np.array([m]))
        assert batch.target is not None
        true = np.flatnonzero(batch.target[batch.coordinates(m)] > 0.5)
        count = min(OTHERS * len(true), LARGEST // max(len(batch), 1), structure.size)
        drawn = np.setdiff1d(rng.choice(structure.size, count, replace=False), true)
        k = np.concatenate([true, drawn])
        rows.append(own.rows(*structure.nodes_of(k)))
        hits.append(np.arange(len(k)) < len(true))
    X, y = np.concatenate(rows), np.concatenate(hits).astype(float)
    X = np.hstack([X, np.ones((len(X), 1))])
    theta = np.zeros(X.shape[1])
    for _ in range(NEWTON):
        p = 1.0 / (1.0 + np.exp(-np.clip(X @ theta, -30.0, 30.0)))
        H = np.eye(len(theta)) + (X.T * (p * (1.0 - p))) @ X
        theta = theta + np.linalg.solve(H, X.T @ (y - p) - theta)
    return np.asarray(theta[:-1])


def marks(given: Given) -> Ints:
    """A digest of every pair, of 64 bits: the group, both ids, and what both answered.

    So a pair that was learned from is known again, and next year's people with this year's ids
    are not taken for them; nobody can be read out of a file that holds these numbers.
    """
    found = []
    for (people, group), pairs in zip(given.X, given.outcomes, strict=True):
        for pair in group.members[pairs].tolist():
            both = sorted((str(people.ids[row]), people.codes[row].tolist()) for row in pair)
            text = repr(([str(part) for part in group.key], both)).encode()
            found.append(int.from_bytes(sha256(text).digest()[:8], "little", signed=True))
    return np.array(found, dtype=np.int64)
